"""How often verdicts err: the table of the page is what the code gives, and truths are true."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from error_rates import COLUMNS, POPULATIONS, SEEDS, error_rates, markdown, rates

PAGE = Path(__file__).parents[2] / "docs" / "results" / "verdict-rule.md"


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    """The table of the page, as shares."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(rf"\| ({names()}) \|", line)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = [[one[0], int(one[1]), *(float(cell) / 100 for cell in one[2:])] for one in cells]
    return pd.DataFrame(rows, columns=["differences", "seeds", *COLUMNS])


def names() -> str:
    return "|".join(map(re.escape, POPULATIONS))


@pytest.mark.parametrize("name", POPULATIONS)
def test_populations_are_what_they_are_said_to_be(name: str) -> None:
    population = POPULATIONS[name]
    values = population.draw(np.random.default_rng(0), 400_000)
    assert values.mean() == pytest.approx(population.mean, abs=5 * population.deviation / np.sqrt(400_000))
    assert np.median(values) == pytest.approx(population.median, abs=0.01)
    # Heavy tails have no fourth moment: their deviation converges slowly.
    assert values.std() == pytest.approx(population.deviation, rel=0.1)


def test_the_page_has_every_population_and_number_of_seeds(committed: pd.DataFrame) -> None:
    pairs = list(committed[["differences", "seeds"]].itertuples(index=False, name=None))
    assert pairs == [(name, seeds) for name in POPULATIONS for seeds in SEEDS]


def test_the_page_is_printed_by_the_code(committed: pd.DataFrame) -> None:
    assert PAGE.read_text(encoding="utf-8").count(markdown(committed)) == 1


@pytest.mark.parametrize(("name", "seeds"), [("normal", 5), ("lognormal", 10), ("one in six stuck", 7)])
def test_rates_are_those_of_the_page(committed: pd.DataFrame, name: str, seeds: int) -> None:
    times = 100
    found = rates(POPULATIONS[name], seeds, times, np.random.default_rng(1))
    (expected,) = committed[(committed["differences"] == name) & (committed["seeds"] == seeds)].to_dict("records")
    for one in COLUMNS:
        share = max(expected[one], 0.005)
        assert found[one] == pytest.approx(expected[one], abs=4 * np.sqrt(share * (1 - share) / times)), one


def test_a_row_a_population_and_number_of_seeds() -> None:
    found = error_rates(2, seeds=(4, 5))
    assert len(found) == 2 * len(POPULATIONS)
    assert found.columns.tolist() == ["differences", "seeds", *COLUMNS]
    assert found.equals(error_rates(2, seeds=(4, 5)))
    assert found[list(COLUMNS)].isin([0.0, 0.5, 1.0]).all(axis=None)
