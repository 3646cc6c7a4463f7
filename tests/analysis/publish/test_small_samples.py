"""The paper's seeds against ours: which claims are in the figure, and what a bar says."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.publish.small_samples import LETTERS, draw_small_samples, small_samples, write_small_samples
from plumbline.study.verdicts import with_shape


def row(claim: str, pattern: float, **changes: Any) -> dict[str, Any]:
    return {
        "claim": claim,
        "role": "primary",
        "test": f"test of {claim}",
        "seeds": 50,
        "paper_seeds": 5,
        "pattern": pattern,
        "chance": 0.25,
        "favourable": 0.6,
        "verdict": "reproduced",
        **changes,
    }


@pytest.fixture
def claims() -> pd.DataFrame:
    return pd.DataFrame(
        [
            row("L10", 0.2, verdict="not reproduced"),
            row("L2", 0.9, favourable=0.7),
            row("L2", 0.9, favourable=0.4, seeds=49),
            row("L2", 0.9, role="secondary", favourable=0.1),
            row("C1", np.nan),
            row("L3", 0.1, chance=0.5, test="a name of a test that is far too long to stand beside a bar"),
            row("L4", 0.004, chance=np.nan),
        ]
    )


def test_a_row_a_claim_with_few_seeds_as_one_counts(claims: pd.DataFrame) -> None:
    found = small_samples(claims)
    assert found["claim"].tolist() == ["L2", "L3", "L4", "L10"]
    assert found["favourable"].tolist() == [0.4, 0.6, 0.6, 0.6]
    assert found["seeds"].tolist() == [49, 50, 50, 50]


def test_papers_stand_in_the_order_that_is_asked_for(claims: pd.DataFrame) -> None:
    both = pd.concat([claims, claims[claims["claim"] == "L2"].assign(claim="A3")])
    assert small_samples(both)["claim"].tolist() == ["A3", "L2", "L3", "L4", "L10"]
    assert small_samples(both, ["L3", "A1", "L2"])["claim"].tolist() == ["L2", "L3", "L4", "L10", "A3"]
    assert small_samples(both, ["L1"])["claim"].tolist() == ["L2", "L3", "L4", "L10", "A3"]


def test_bars_are_as_long_as_the_shares(claims: pd.DataFrame) -> None:
    ax = draw_small_samples(small_samples(claims)).axes[0]
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    assert widths == pytest.approx({0: 0.9, 1: 0.1, 2: 0.004, 3: 0.2})
    numbers = {text.get_text(): text.get_position()[0] for text in ax.texts if "%" in text.get_text()}
    at = {"90%": 0.915, "10%": 0.115, "below 1%": 0.019, "20%": 0.265}
    assert numbers == pytest.approx(at), "at the end of the bar, or beyond the tick beside it"


def test_nothing_of_a_name_is_cut_and_words_say_the_verdict(claims: pd.DataFrame) -> None:
    ax = draw_small_samples(small_samples(claims)).axes[0]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels[0] == "L2: test of L2"
    assert labels[1].replace("\n", " ") == "L3: a name of a test that is far too long to stand beside a bar"
    assert max(map(len, labels[1].split("\n"))) <= LETTERS
    words = [text.get_text() for text in ax.texts]
    assert [words.count(with_shape(verdict)) for verdict in ("reproduced", "not reproduced")] == [3, 1]
    assert [words.count(seeds) for seeds in ("5 of 49", "5 of 50")] == [1, 3]


def test_it_is_written_where_there_is_something_to_see(claims: pd.DataFrame, tmp_path: Path) -> None:
    write_small_samples(claims, tmp_path / "seen.png")
    write_small_samples(claims[claims["claim"] == "C1"], tmp_path / "nothing.png")
    assert [path.name for path in tmp_path.iterdir()] == ["seen.png"]
