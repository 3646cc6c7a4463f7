"""Comparisons as a LaTeX table."""

from math import inf, nan

import pandas as pd
import pytest

from plumbline.analysis.comparisons.latex import floating_table
from plumbline.analysis.comparisons.numbers import WHY_OPEN

ROW = {
    "method": "ei",
    "seeds": 3,
    "value": 1.5,
    "low": 1.0,
    "high": 2.0,
    "difference": -0.5,
    "difference_low": -1.0,
    "difference_high": 0.0,
    "p": 0.04,
    "p_corrected": 0.08,
    "among_best": False,
}


def cells(**changes: object) -> list[str]:
    text = floating_table(["method"], {"regret": pd.DataFrame([ROW | changes])}, "words")
    (line,) = (line for line in text.splitlines() if line.startswith("ei"))
    return line.removesuffix(" \\\\").split(" & ")


def test_an_estimate_has_its_interval() -> None:
    assert cells()[2:4] == ["$1.5$ $[1, 2]$", "$-0.5$ $[-1, 0]$"]


@pytest.mark.parametrize("ends", [(-inf, inf), (1.0, inf), (-inf, 2.0)])
@pytest.mark.parametrize("of", ["", "difference_"])
def test_an_open_interval_has_no_numbers_and_the_caption_says_why(of: str, ends: tuple[float, float]) -> None:
    row = ROW | {f"{of}low": ends[0], f"{of}high": ends[1]}
    assert cells(**row)[3 if of else 2] == ("$-0.5$ [--]" if of else "$1.5$ [--]")
    text = floating_table(["method"], {"regret": pd.DataFrame([row])}, "Words.")
    assert f"\\caption{{Words. [--]: {WHY_OPEN}.}}" in text
    assert "\\infty" not in text
    assert "\\caption{Words.}" in floating_table(["method"], {"regret": pd.DataFrame([ROW])}, "Words.")


@pytest.mark.parametrize("absent", [{"low": nan, "high": nan}, {"difference_low": nan, "difference_high": nan}])
def test_one_seed_has_no_interval(absent: dict[str, float]) -> None:
    found = cells(seeds=1, p=nan, p_corrected=nan, **absent)
    assert "nan" not in " ".join(found)
    assert found[2 if "low" in absent else 3] in ("$1.5$", "$-0.5$")
