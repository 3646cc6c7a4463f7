"""What the pages of results say in numbers is on file with the reference results.

A number is looked for, rounded as it is written and of either sign, among those of the claims and the experiments that
its paragraph names, and of the experiment whose figure stands above: in their tables, among the means and medians of
their runs and the means after the first query, and among the mean differences of two methods, seed by seed. An interval
is looked for as a whole: of a claim, of a table that has them, or of such a difference by Student's t. Of 100 intervals
with one end changed in its last digit a few are still found, of 100 single numbers some 50: a paragraph that is out of
date is seen by all of its numbers together.
"""

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from plumbline.analysis.publish.reference import read_claims
from plumbline.analysis.verdicts.judge import RUNS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results" / "reference"
PAGES = sorted((ROOT / "docs").glob("results-*.md"))

CLAIMS = read_claims(REFERENCE / "claims.csv")

BLOCK = re.compile(r"\n\s*\n|\n(?=\* |\||## )")
"""Between paragraphs, points of a list, rows of a table and headings."""

FIGURE = re.compile(r"!\[.*\]\(.*/reference/([\w-]+)/")
CAPTION = re.compile(r"\*[^*\s].*[^*]\*", re.DOTALL)
SOURCE = re.compile(r"\b(?:[KCLAS]\d+|(?:AABO|CBO|LOCBO|CAL|BOWH)-(?:[A-Z]|\d)[\w-]*)\b")

NUMBER = r"-?(?:\d+\.\d+|\.\d+|\d+)"
INTERVAL = re.compile(rf"\((?:[^()]*?[\s,;])?({NUMBER})(%?) to ({NUMBER})%?(?=[^()]*\))")
DECIMAL = re.compile(r"(?<![\w.^])-?\d*\.\d+(?![\d%]|e\d)")

WITHOUT_RUNS = {
    "AABO-F2-hartmann",
    "AABO-F4",
    "AABO-X1",
    "AABO-X2",
    "AABO-X2-lasso",
    "CBO-F7",
    "CBO-X3-judged",
    "CBO-X3-noise",
    "LOCBO-F4-50",
    "LOCBO-X2",
    "LOCBO-X3",
    "LOCBO-X7",
}
"""Experiments kept when runs were kept for claims alone: not all that is said of differences can be looked up."""

ELSEWHERE: dict[str, dict[str, str]] = {
    "results-approximation.md": {"3.322": "the maximum of Hartmann's function", ".005": "what counts as alike in A3"},
    "results-calibrated.md": {".343": "the probability of .7 cubed"},
    "results-conformal.md": {
        "level .92": "1 - 1/sqrt(n)",
        "level .887": "1 - 1/sqrt(n)",
        "level .83": "1 - 1/sqrt(n)",
        "level .871": "1 - 1/sqrt(n)",
    },
    "results-practice.md": {".0001": "a tolerance", "With .01 it": "a tolerance"},
}
"""Numbers of a page that no run has, as they stand there, and what they are of."""


class Paragraph(NamedTuple):
    """A paragraph, and the claims and experiments that its numbers may be of."""

    text: str
    sources: frozenset[str]


def paragraphs(page: Path) -> Iterator[Paragraph]:
    """Yield the paragraphs of a page; those of figures and captions are none."""
    above = ""
    for block in BLOCK.split(page.read_text(encoding="utf-8")):
        text = " ".join(block.split())
        if figure := FIGURE.match(text):
            above = figure[1]
        elif text and not CAPTION.fullmatch(text):
            yield Paragraph(text, frozenset({above, *SOURCE.findall(text)} - {""}))


def methods_without_runs(name: str) -> set[str]:
    """Return the methods of an experiment's table of which no run is kept."""
    table = REFERENCE / name / f"{name}-table.csv"
    runs = REFERENCE / RUNS.format(name)
    shown = set(pd.read_csv(table).get("method", ())) if table.is_file() else set()
    return shown - (set(pd.read_parquet(runs)["method"]) if runs.is_file() else set())


def paired(values: pd.DataFrame) -> np.ndarray:
    """Return mean, low and high of the differences of all pairs of methods, by Student's t: `pairs x 3`.

    Args:
        values: a row a seed and a column a method.
    """
    first, second = np.triu_indices(values.shape[1], 1)
    apart = values.to_numpy()[:, first] - values.to_numpy()[:, second]
    apart = apart[:, np.isfinite(apart).all(axis=0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of differences that are all the same
        interval = ttest_1samp(apart, 0.0).confidence_interval()
    return np.stack([apart.mean(axis=0), interval.low, interval.high], axis=1)


@cache
def of_experiment(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of an experiment that is kept, and its intervals: `n`, `m x 2`."""
    numbers, intervals = [np.empty(0)], [np.empty((0, 2))]
    table = REFERENCE / name / f"{name}-table.csv"
    if table.is_file():
        kept = pd.read_csv(table)
        numbers.append(kept.select_dtypes("number").to_numpy(dtype=float).ravel())
        ends = [[low, low.replace("low", "high", 1)] for low in kept if low.split()[0] == "low"]
        intervals += [kept[pair].to_numpy(dtype=float) for pair in ends]
    curves = REFERENCE / name / f"{name}-curves.parquet"
    if curves.is_file():
        numbers.append(pd.read_parquet(curves).query("iteration == 1")["mean"].to_numpy())
    if (REFERENCE / RUNS.format(name)).is_file():
        runs = pd.read_parquet(REFERENCE / RUNS.format(name))
        for _, some in runs.groupby(["task", "metric"]):
            for of in ("last", "mean", "median"):
                values = some.pivot_table(index="seed", columns="method", values=of)
                numbers += [values.mean().to_numpy(), values.median().to_numpy()]
                if len(values) > 2:
                    found = paired(values)
                    numbers.append(found[:, 0])
                    intervals.append(found[:, 1:])
    return np.concatenate(numbers), np.concatenate(intervals)


@cache
def on_file(sources: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of all numbers of these claims and experiments in order, and their intervals: `n`, `m x 2`."""
    named = CLAIMS["claim"].isin(sources) | CLAIMS["experiments"].map(
        lambda names: not sources.isdisjoint(names.split())
    )
    found = [of_experiment(name) for name in sorted(sources)]
    columns = ["ours", "low", "high", "median", "favourable", "detectable", "pattern", "chance"]
    numbers = [CLAIMS.loc[named, columns].to_numpy(dtype=float).ravel(), *(one for one, _ in found)]
    intervals = [CLAIMS.loc[named, ["low", "high"]].to_numpy(dtype=float), *(of for _, of in found)]
    sizes = np.unique(np.abs(np.concatenate(numbers)))
    return sizes[np.isfinite(sizes)], np.concatenate(intervals)


def rounds_to(numbers: np.ndarray, written: str, unit: float = 1.0) -> np.ndarray:
    """Return which numbers, in some unit, may be written so."""
    half = 0.5001 * 10.0 ** -len(written.partition(".")[2])
    return np.abs(numbers / unit - float(written)) <= half


def interval_is_on_file(low: str, high: str, intervals: np.ndarray, *, percent: bool) -> bool:
    """Return whether an interval is there, or that of the same difference the other way round; one in percent is of a
    share, or of a ratio less one."""
    unit = 0.01 if percent else 1.0
    ways = (intervals, intervals - 1) if percent else (intervals, -intervals[:, ::-1])
    return any(bool((rounds_to(one[:, 0], low, unit) & rounds_to(one[:, 1], high, unit)).any()) for one in ways)


def decimals(text: str) -> list[str]:
    """Return the numbers of a text that have decimals and are of no interval."""
    return DECIMAL.findall(INTERVAL.sub("", SOURCE.sub("", text)))


def unknown_of(paragraph: Paragraph) -> list[str]:
    """Return what a paragraph says in numbers and is not on file."""
    sizes, intervals = on_file(paragraph.sources)
    unknown = [
        f"({low} to {high})"
        for low, percent, high in INTERVAL.findall(paragraph.text)
        if not interval_is_on_file(low, high, intervals, percent=bool(percent))
    ]
    return unknown + [one for one in decimals(paragraph.text) if not rounds_to(sizes, one.lstrip("-")).any()]


CASES = [pytest.param(page.name, one, id=f"{page.stem}-{one.text[:30]}") for page in PAGES for one in paragraphs(page)]


@pytest.mark.parametrize(("page", "paragraph"), CASES)
def test_numbers_are_on_file(page: str, paragraph: Paragraph) -> None:
    text = paragraph.text
    for known in ELSEWHERE.get(page, {}):
        text = re.sub(rf"(?<!\d){re.escape(known)}(?!\d)", "", text)
    unknown = unknown_of(Paragraph(text, paragraph.sources))
    if unknown and paragraph.sources & WITHOUT_RUNS:
        pytest.skip(f"no runs on file of {unknown}")
    assert unknown == [], text


def test_experiments_without_runs_have_none_of_some_method() -> None:
    """Whoever keeps one of them anew takes it from the list."""
    assert [name for name in sorted(WITHOUT_RUNS) if not methods_without_runs(name)] == []


def test_numbers_of_elsewhere_are_still_said() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert [one for one in ELSEWHERE.get(page.name, {}) if one not in text] == []
    assert set(ELSEWHERE) <= {page.name for page in PAGES}


def test_what_is_changed_is_seen() -> None:
    """Each interval that is found, with its upper end farther by one in the last digit, is not, but for a few."""
    found = seen = 0
    for page in PAGES:
        for paragraph in paragraphs(page):
            _, intervals = on_file(paragraph.sources)
            for low, percent, high in INTERVAL.findall(paragraph.text):
                digits = len(high.partition(".")[2])
                changed = f"{float(high) + 10.0**-digits:.{digits}f}"
                if interval_is_on_file(low, high, intervals, percent=bool(percent)):
                    found += 1
                    seen += not interval_is_on_file(low, changed, intervals, percent=bool(percent))
    assert found > 80
    assert seen / found > 0.95
