"""How often verdicts err: samples of seeds drawn where the truth is known.

docs/results/verdict-rule.md has the table.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.statistics.exact import Median
from plumbline.statistics.inference import TAIL, Inference
from plumbline.statistics.means import Mean

Array = NDArray[np.float64]

SEEDS = (4, 5, 7, 10, 16, 25, 50)


class Population(NamedTuple):
    """Differences between two methods, seed by seed.

    Attributes:
        draw: maps a generator and a number of seeds to differences.
        mean, median: of them.
        deviation: their standard deviation.
    """

    draw: Callable[[np.random.Generator, int], Array]
    mean: float
    median: float
    deviation: float


def _stuck(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal(n) + 5.0 * (rng.random(n) < 1 / 6)


POPULATIONS: Mapping[str, Population] = MappingProxyType(
    {
        "normal": Population(lambda rng, n: rng.standard_normal(n), 0.0, 0.0, 1.0),
        "heavy tails": Population(lambda rng, n: rng.standard_t(3, n), 0.0, 0.0, np.sqrt(3.0)),
        "both skewed": Population(
            lambda rng, n: np.exp(rng.standard_normal(n)) - np.exp(rng.standard_normal(n)),
            0.0,
            0.0,
            np.sqrt(2 * np.e * (np.e - 1)),
        ),
        "one in six stuck": Population(_stuck, 5 / 6, 0.25335, np.sqrt(1 + 25 * 5 / 36)),
        "lognormal": Population(
            lambda rng, n: np.exp(rng.standard_normal(n)), np.exp(0.5), 1.0, np.sqrt(np.e * (np.e - 1))
        ),
    }
)
"""Student's with three degrees of freedom; the difference of two lognormal values; normal ones of which every sixth
is five deviations up; a lognormal value."""


def rates(population: Population, seeds: int, repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Return how often a test of level .05 finds an effect where there is none, on each side, and where there is one.

    Args:
        population: of differences.
        seeds: in a sample.
        repetitions: samples.
        rng: of the draws.

    Returns:
        Shares of samples: `above` and `below`, whose mean is said to be above or below the true one; `seen`, whose mean
        is said to be above a threshold one deviation lower; `median above` and `median below`, as of the mean.
    """
    found = dict.fromkeys(("above", "below", "seen", "median above", "median below"), 0)
    for number in range(repetitions):
        values = population.draw(rng, seeds)
        mean, median = Mean(values, f"{number}"), Median(values)
        found["above"] += _rejects(mean, population.mean, +1)
        found["below"] += _rejects(mean, population.mean, -1)
        found["seen"] += _rejects(mean, population.mean - population.deviation, +1)
        found["median above"] += _rejects(median, population.median, +1)
        found["median below"] += _rejects(median, population.median, -1)
    return {name: count / repetitions for name, count in found.items()}


def _rejects(found: Inference, threshold: float, sign: int) -> bool:
    return (found.p_above(threshold) if sign > 0 else found.p_below(threshold)) <= TAIL


def error_rates(repetitions: int, seeds: tuple[int, ...] = SEEDS) -> pd.DataFrame:
    """Return the rates of each population and number of seeds, a row each."""
    rows = []
    for name, population in POPULATIONS.items():
        for n in seeds:
            rng = np.random.default_rng([n, repetitions])
            rows.append({"differences": name, "seeds": n, **rates(population, n, repetitions, rng)})
    return pd.DataFrame(rows)


COLUMNS = ("above", "below", "seen", "median above", "median below")


def markdown(table: pd.DataFrame) -> str:
    """Return a table of `error_rates` as Markdown, in percent."""
    lines = ["| differences | seeds | mean too high | too low | effect seen | median too high | too low |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    for row in table.to_dict("records"):
        cells = [row["differences"], str(row["seeds"]), *(f"{100 * row[name]:.1f}" for name in COLUMNS)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
