"""What a difference between two methods is due to, by the rule of the protocol."""

import numpy as np
import pytest

from plumbline.analysis.publish.estimates import Estimate
from plumbline.analysis.publish.two_searches import TwoSearches
from plumbline.statistics.means import Mean


def about(value: float, reach: float) -> Estimate:
    return Estimate(value, value - reach, value + reach)


@pytest.mark.parametrize(
    ("own", "shared", "change", "cause"),
    [
        (about(1.0, 0.5), about(0.1, 0.3), about(0.9, 0.5), "search"),
        (about(1.0, 0.5), about(-0.2, 0.1), about(1.2, 0.5), "search"),
        (about(1.0, 0.5), about(0.9, 0.3), about(0.1, 0.5), "utility"),
        (about(1.0, 0.2), about(0.4, 0.1), about(0.6, 0.2), "search and utility"),
        (about(1.0, 0.5), about(0.6, 0.7), about(0.4, 0.3), "open"),
        (about(1.0, 0.5), about(0.4, 0.6), about(0.6, 0.7), "open"),
        (about(0.3, 0.5), about(2.0, 0.1), about(-1.7, 0.1), "open"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_cause(own: Estimate, shared: Estimate, change: Estimate, cause: str, sign: int) -> None:
    parts = (own, shared, change) if sign > 0 else (-own, -shared, -change)
    assert TwoSearches(*parts).cause == cause


@pytest.mark.slow
def test_errors_of_the_rule() -> None:
    """With no difference of the utilities it seldom names them, and with no change by the search seldom the search."""
    generator = np.random.default_rng(0)
    named = {"utility": 0, "search": 0}
    for trial in range(400):
        base, noise = generator.normal(size=(2, 10))
        for what, own, shared in (("utility", base + 1.5, noise), ("search", base + 1.5, base + 1.5 + 0.3 * noise)):
            found = []
            for i, values in enumerate((own, shared, own - shared)):
                mean = Mean(values, f"{trial} {what} {i}")
                found.append(Estimate(mean.value, *mean.interval()))
            named[what] += what in TwoSearches(*found).cause
    assert named["utility"] / 400 < 0.04
    assert named["search"] / 400 < 0.02
