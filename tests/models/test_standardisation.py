"""Standardisation: mean zero and variance one in any unit, and one line where a float64 does not hold the squares."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.models.standardisation import ROUNDING, standardisation_of

BOX = torch.tensor([[-2.0, 0.0], [2.0, 10.0]], dtype=torch.float64)
numbers = st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=2, max_size=9).filter(
    lambda y: max(y) - min(y) > 1e-6
)


@given(numbers, st.integers(-400, 400))
def test_units_do_not_matter(y: list[float], power: int) -> None:
    """A power of two is a change of units without rounding."""
    plain = torch.tensor(y, dtype=torch.float64)
    scaled = plain * 2.0**power
    one, other = standardisation_of(BOX, plain), standardisation_of(BOX, scaled)
    assert torch.equal(one.outputs(plain), other.outputs(scaled))
    assert other.outputs(scaled).std().item() == pytest.approx(1.0)


@given(numbers, st.floats(1e-130, 1e130))
def test_small_spreads_are_scaled(y: list[float], unit: float) -> None:
    scaled = torch.tensor(y, dtype=torch.float64) * unit
    z = standardisation_of(BOX, scaled).outputs(scaled)
    assert (z.mean().abs().item(), z.std().item()) == pytest.approx((0.0, 1.0), abs=1e-9)


@given(st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda y: y == 0 or abs(y) > 1e-100), st.integers(1, 9))
def test_equal_observations_become_zero(value: float, n: int) -> None:
    y = torch.full((n,), value, dtype=torch.float64)
    unit = standardisation_of(BOX, y)
    assert unit.scale == 1.0
    assert unit.outputs(y).abs().max().item() <= ROUNDING * abs(value)


def test_what_differs_by_rounding_is_equal() -> None:
    y = 1.0 + torch.tensor([0.0, 1.0, 2.0, 1.0], dtype=torch.float64) * 2**-52
    assert standardisation_of(BOX, y).scale == 1.0
    assert standardisation_of(BOX, y + torch.arange(4) * 1e-13).scale < 1e-12


@pytest.mark.parametrize("least", [0.0, 0.5, 2.0])
def test_a_least_spread_is_kept(least: float) -> None:
    y = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    assert standardisation_of(BOX, y, least).scale == 1.0  # the standard deviation is one too
    assert standardisation_of(BOX, y / 4, least).scale == (0.25 if least < 0.25 else 1.0)


@pytest.mark.parametrize(
    ("value", "what"), [(1e300, "large"), (-1.7e308, "large"), (1e-300, "small"), (-5e-324, "small")]
)
def test_what_cannot_be_squared_is_refused(value: float, what: str) -> None:
    y = torch.tensor([value, 0.0, value / 2], dtype=torch.float64)
    with pytest.raises(PlumblineError, match=f"^observations of [0-9.e+-]+ are too {what} for a surrogate: scale the"):
        standardisation_of(BOX, y)
