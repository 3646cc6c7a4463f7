import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.search import AroundIncumbent, MultiStart, Neighbourhood, SearchOptions, inside
from plumbline.spaces.stepped import Stepped, on_steps

BOX = torch.tensor([[32.0, -7.0], [512.0, -1.0]], dtype=torch.float64)
STEPS = torch.tensor([32.0, 0.0], dtype=torch.float64)
NOTHING = History(BOX[:0], BOX[:0, :1])


def test_points_are_put_on_the_nearest_step_and_others_left_alone() -> None:
    X = torch.tensor([[33.0, -3.3], [49.0, -7.0], [511.0, -1.0], [600.0, 0.0]], dtype=torch.float64)
    assert on_steps(X, BOX, STEPS).tolist() == [[32.0, -3.3], [64.0, -7.0], [512.0, -1.0], [512.0, -1.0]]


def test_each_step_is_as_likely_those_at_the_ends_too() -> None:
    drawn = Stepped(BOX, STEPS).draw(16_000, NOTHING, Generator().manual_seed(0))
    values, counts = drawn[:, 0].unique(return_counts=True)
    assert values.tolist() == [32.0 * k for k in range(1, 17)]
    assert ((counts - 1000).abs() < 5 * 1000**0.5).all()
    assert len(drawn[:, 1].unique()) == 16_000


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 1000), st.floats(0.01, 0.99))
def test_bounds_off_the_steps_are_refused(low: float, step: float, number: int, off: float) -> None:
    steps = torch.tensor([step], dtype=torch.float64)
    Stepped(torch.tensor([[low], [low + number * step]], dtype=torch.float64), steps)
    with pytest.raises(PlumblineError, match=r"input 1: .* is no multiple of its step"):
        Stepped(torch.tensor([[low], [low + (number + off) * step]], dtype=torch.float64), steps)


@pytest.mark.parametrize("share", [None, 0.5])
def test_what_is_found_is_on_a_step(model: SingleTaskGP, bounds: Tensor, share: float | None) -> None:
    """The peak of the box itself is on no step."""
    space = Stepped(bounds, torch.tensor([0.8, 2.5], dtype=torch.float64))
    around = share and Neighbourhood(bounds.mean(0), AroundIncumbent(share=share))
    found = space.ends(
        UpperConfidenceBound(model, 4.0), MultiStart(1, SearchOptions(restarts=2, raw_samples=16), 1, around)
    )[0]
    counted = (found - bounds[0]) / space.steps
    torch.testing.assert_close(counted, counted.round(), rtol=0, atol=1e-12)
    assert inside(found, bounds).all()


@given(low=st.integers(32, 512), length=st.integers(0, 480))
def test_a_region_has_the_steps_that_lie_in_it_or_the_nearest_one(low: int, length: int) -> None:
    high = min(low + length, 512)
    region = torch.tensor([[low, -3.0], [high, -2.0]], dtype=torch.float64)
    cut = Stepped(BOX, STEPS).within(region, NOTHING, 1)
    drawn = cut.draw(60, NOTHING, Generator().manual_seed(0))
    assert inside(drawn[:, 1:], region[:, 1:]).all()
    expected = {32.0 * k for k in range(1, 17) if low <= 32 * k <= high}
    if expected:
        assert set(drawn[:, 0].tolist()) <= expected
        assert cut.bounds[:, 0].tolist() == [min(expected), max(expected)]
    else:
        (only,) = set(drawn[:, 0].tolist())
        assert abs(only - (low + high) / 2) <= 16.0


def test_steps_that_are_no_sums_of_powers_of_two_are_counted_right() -> None:
    box = torch.tensor([[0.5], [1.0]], dtype=torch.float64)
    space = Stepped(box, torch.tensor([0.1], dtype=torch.float64))
    cut = space.within(torch.tensor([[0.6], [0.8]], dtype=torch.float64), NOTHING, 1)
    assert cut.draw(90, History(box[:0], box[:0]), Generator()).unique().tolist() == pytest.approx([0.6, 0.7, 0.8])
