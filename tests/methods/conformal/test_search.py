"""Langevin chains: where they may go, and where they end."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from plumbline.core.numbers import Array
from plumbline.methods.base import methods
from plumbline.methods.conformal.method import ConformalOptions
from plumbline.methods.conformal.search import (
    LangevinOptions,
    Objective,
    askable,
    langevin,
    reflect,
    starts,
    wall_force,
)
from plumbline.study.methods_and_tasks import load_methods_and_tasks

coordinates = st.lists(st.floats(-50, 50), min_size=1, max_size=6)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def centre(chains: int, q: int = 1, dim: int = 2) -> Tensor:
    return torch.full((chains, q, dim), 0.5, dtype=torch.float64)


def walk(
    objective: Callable[[Tensor], tuple[Tensor, Tensor]],
    first: Tensor,
    options: LangevinOptions,
    generator: torch.Generator,
    after_step: Callable[[Tensor], None] = lambda visited: None,
) -> Tensor:
    """The iterates of one search, `steps x chains x q x d`."""

    def in_arrays(U: Array) -> tuple[Array, Array]:
        value, gradient = objective(torch.from_numpy(U[0]))
        return value.numpy()[None], gradient.numpy()[None]

    visited = langevin(
        in_arrays, first.numpy()[None], options, [generator], lambda some: after_step(torch.from_numpy(some[0]))
    )
    return torch.from_numpy(visited[0])


def flat(U: Tensor) -> Tensor:
    return 0 * U.sum(dim=(-2, -1))


def differentiated(objective: Objective) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """An objective with its gradient by automatic differentiation."""

    def with_gradient(U: Tensor) -> tuple[Tensor, Tensor]:
        U = U.detach().requires_grad_()
        value = objective(U)
        (gradient,) = torch.autograd.grad(value.sum(), U)
        return value.detach(), gradient

    return with_gradient


@given(coordinates)
def test_reflections_end_inside(values: list[float]) -> None:
    U = reflect(np.array(values))
    assert (U >= 0).all()
    assert (U <= 1).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_inside_nothing_is_reflected(values: list[float]) -> None:
    U = np.array(values)
    np.testing.assert_allclose(reflect(U), U, rtol=0, atol=1e-15)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_point_beyond_a_face_comes_back_as_far(position: float, beyond: float) -> None:
    U = reflect(np.array([1 + beyond, -beyond, 2 + position]))
    assert U.tolist() == pytest.approx([1 - beyond, beyond, position], abs=1e-12)


@pytest.mark.parametrize("curvature", [200.0, 600.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_chains_on_a_quadratic_end_as_a_gaussian(curvature: float, temperature: float) -> None:
    """Of variance temperature / curvature, over 1 - step * curvature / 2 for steps that are not small."""
    n, step = 6_000, 5e-4
    options = LangevinOptions(chains=n, steps=60, learning_rate=step, temperature=temperature)

    def objective(U: Tensor) -> tuple[Tensor, Tensor]:
        away = U - 0.5
        return -0.5 * curvature * away.square().sum(dim=(-2, -1)), -curvature * away

    last = walk(objective, centre(n, 1, 1), options, stream())[-1].flatten()
    expected = temperature / curvature / (1 - step * curvature / 2)
    # From the mean, the variance comes within (1 - step * curvature)^(2 * steps) of its limit.
    expected *= 1 - (1 - step * curvature) ** (2 * options.steps)
    assert last.var().item() == pytest.approx(expected, rel=4.5 * math.sqrt(2 / n))
    assert last.mean().item() == pytest.approx(0.5, abs=4.5 * math.sqrt(expected / n))


def test_chains_on_a_plain_spread_evenly() -> None:
    options = LangevinOptions(chains=2_000, steps=100, learning_rate=0.05, temperature=1.0)
    last = walk(differentiated(flat), centre(2_000, 1, 1), options, stream())[-1].flatten()
    counts = torch.histc(last, 4, 0.0, 1.0)
    assert (counts - 500).abs().max() < 4.5 * math.sqrt(500 * 0.75)


def test_without_temperature_chains_climb() -> None:
    options = LangevinOptions(temperature=0.0, learning_rate=0.1, steps=200, burn_in=0)
    summit = torch.tensor([0.2, 0.9], dtype=torch.float64)
    last = walk(differentiated(lambda U: -(U - summit).square().sum(dim=(-2, -1))), centre(3), options, stream())[-1]
    torch.testing.assert_close(last, summit.expand(3, 1, 2), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("bounds", "face"), [("clamp", True), ("reflect", False)])
def test_bounds_hold_chains_at_a_face_or_bounce_them_off(bounds: str, face: bool) -> None:
    options = LangevinOptions(bounds=bounds, learning_rate=0.3, steps=20, burn_in=0)
    places = []
    last = walk(
        differentiated(lambda U: 2 * U.sum(dim=(-2, -1))),
        centre(4),
        options,
        stream(),
        lambda visited: places.append(visited[-1]),
    )[-1]
    visited = torch.stack(places)
    assert ((visited >= 0) & (visited <= 1)).all()
    assert bool((last == 1.0).all()) == face


@pytest.mark.parametrize(("steps", "burn_in", "calls"), [(10, 4, 6), (10, 0, 10), (5, 5, 0), (5, 9, 0)])
def test_only_iterates_since_the_burn_in_are_told(steps: int, burn_in: int, calls: int) -> None:
    seen: list[Tensor] = []
    options = LangevinOptions(steps=steps, burn_in=burn_in, temperature=0.1)
    last = walk(differentiated(flat), centre(3, 2), options, stream(), lambda visited: seen.append(visited.clone()))[-1]
    assert [part.shape for part in seen] == [(t + 1, 3, 2, 2) for t in range(calls)]
    if calls:
        assert torch.equal(seen[-1][-1], last)
        assert torch.equal(seen[-1][0], seen[0][0]), "what was visited stays"


def test_a_gradient_that_is_no_number_leaves_the_step_to_the_noise() -> None:
    last = walk(differentiated(lambda U: (U - U).sqrt().sum(dim=(-2, -1))), centre(3), LangevinOptions(), stream())
    assert torch.isfinite(last).all()
    torch.testing.assert_close(last, walk(differentiated(flat), centre(3), LangevinOptions(), stream()))


def test_same_generator_same_chains() -> None:
    runs = [walk(differentiated(flat), centre(3), LangevinOptions(), stream(seed)) for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert not runs[0].requires_grad


def test_starts_are_in_the_cube_and_owe_nothing_to_the_global_stream() -> None:
    options = LangevinOptions(chains=5, raw_samples=16)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(starts(lambda U: U.sum(dim=(-2, -1)), 3, 2, options, stream()))
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*found)
    assert found[0].shape == (5, 2, 3)
    assert ((found[0] >= 0) & (found[0] <= 1)).all()
    assert not torch.equal(found[0], starts(lambda U: U.sum(dim=(-2, -1)), 3, 2, options, stream(1)))


def test_starts_are_better_than_chance() -> None:
    options = LangevinOptions(chains=8, raw_samples=256)
    height = torch.stack(
        [starts(lambda U: 5 * U.sum(dim=(-2, -1)), 2, 1, options, stream(seed)).mean() for seed in range(5)]
    )
    assert height.mean() > 0.6


def test_there_are_as_many_starts_as_chains_even_with_fewer_raw_samples() -> None:
    assert len(starts(flat, 2, 1, LangevinOptions(chains=6, raw_samples=2), stream())) == 6


PUBLISHED = LangevinOptions(
    steps=99, burn_in=31, half_period=25, friction=0.1, cooled=True, bounds="walls", raw_samples=128, asks_for="best"
)
"""What the published code does at the paper's settings: a hundred rounds, of which the last takes no step."""


def hill(U: Tensor) -> Tensor:
    return 20 * U.sum(dim=(-2, -1)) + torch.sin(9 * U).sum(dim=(-2, -1))


def transcribed(objective: Objective, U: Tensor, generator: torch.Generator, steps: int) -> list[Tensor]:
    """The published walk, read off its code (88f337f): the iterates that it keeps.

    The loss is minus the objective summed over chains, plus a hundred times two mean sigmoids. A buffer loses a tenth,
    then the step along the loss, then gains noise; the learning rate is torch's cosine schedule.
    """
    first, d = 1e-3, U.shape[-1]
    U = U.clone().requires_grad_()
    clock = torch.optim.SGD([U], lr=first)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(clock, T_max=steps // 4, eta_min=first / 16)
    buffer, heat, kept = torch.zeros_like(U), 1e-3 / math.sqrt(d), []
    for s in range(steps):
        if s >= 32:
            kept.append(U.detach().clone())
        if s == steps - 1:
            break
        outside = torch.sigmoid(-U / 1e-2).mean() + torch.sigmoid((U - 1) / 1e-2).mean()
        (slope,) = torch.autograd.grad(-objective(U).sum() + 100 * outside, U)
        rate = clock.param_groups[0]["lr"]
        noise = math.sqrt(2 * rate * 0.1 * heat) * torch.randn(U.shape, generator=generator, dtype=U.dtype)
        with torch.no_grad():
            buffer = 0.9 * buffer - rate * slope + noise
            U += buffer
        U.grad = torch.zeros_like(U)
        clock.step()
        schedule.step()
    return kept


def test_all_departures_together_are_the_published_walk() -> None:
    start = 0.9 + 0.1 * torch.rand(5, 2, 3, generator=stream(3), dtype=torch.float64)
    told: list[Tensor] = []
    visited = walk(differentiated(hill), start, PUBLISHED, stream(1), lambda so_far: told.append(so_far[-1]))
    expected = transcribed(hill, start, stream(1), 100)
    assert len(told) == len(expected) == 68
    torch.testing.assert_close(torch.stack(told), torch.stack(expected), rtol=1e-9, atol=1e-12)
    assert (visited > 1).any(), "chains go through soft walls"


@pytest.mark.parametrize("name", ["cei-code", "cnei-code", "cucb-code"])
def test_the_library_has_methods_with_the_published_walk(name: str) -> None:
    ref = load_methods_and_tasks(Path(__file__).parents[3] / "config").methods[name].ref
    options = methods[ref.name].options.model_validate(ref.options)
    assert isinstance(options, ConformalOptions)
    assert options.search == PUBLISHED
    assert options.posterior.maximum == "outside"


def test_the_rate_falls_to_a_sixteenth_and_rises_again() -> None:
    rates = [PUBLISHED.rate(step) for step in range(101)]
    assert [rates[step] for step in (0, 25, 50, 75, 100)] == pytest.approx([1e-3, 1e-3 / 16] * 2 + [1e-3])
    assert sum(rates[:100]) / 100 == pytest.approx(0.53e-3, rel=0.01)
    assert {LangevinOptions(learning_rate=0.2).rate(step) for step in range(9)} == {0.2}


def test_with_friction_a_steady_push_moves_chains_by_ten_times_the_rate() -> None:
    options = LangevinOptions(steps=120, friction=0.1, temperature=0.0, learning_rate=1e-5)
    visited = walk(lambda U: (flat(U), torch.ones_like(U)), centre(1), options, stream())
    torch.testing.assert_close(visited[-1] - visited[-2], torch.full((1, 1, 2), 1e-4).double(), rtol=1e-4, atol=0)


def test_a_velocity_bounces_with_its_chain() -> None:
    """A push at the first step alone: what is left of it moves the chain on as it would without faces, folded up."""
    pushes = iter([30.0, *[0.0] * 19])
    options = LangevinOptions(steps=20, friction=0.05, temperature=0.0, learning_rate=0.01)

    def once(U: Tensor) -> tuple[Tensor, Tensor]:
        return flat(U), torch.full_like(U, next(pushes))

    visited = walk(once, centre(1, 1, 1), options, stream()).flatten()
    free = 0.5 + (0.3 * 0.95 ** torch.arange(20.0, dtype=torch.float64)).cumsum(0)
    torch.testing.assert_close(visited, torch.from_numpy(reflect(free.numpy())))


@pytest.mark.parametrize("dim", [1, 4, 20])
def test_cooled_noise_has_a_norm_that_does_not_grow_as_fast(dim: int) -> None:
    assert LangevinOptions(cooled=True).temperature_in(dim) == pytest.approx(1e-3 / math.sqrt(dim))
    assert LangevinOptions().temperature_in(dim) == 1e-3


def test_walls_push_as_the_slope_of_their_penalty() -> None:
    U = (0.5 + 0.53 * torch.linspace(-1, 1, 12, dtype=torch.float64)).view(2, 3, 2).requires_grad_()
    penalty = 100 * (torch.sigmoid(-U / 0.01).mean() + torch.sigmoid((U - 1) / 0.01).mean())
    (slope,) = torch.autograd.grad(penalty, U)
    # Two searches: the means are of one.
    found = wall_force(torch.stack([U.detach(), U.detach() + 1]).numpy())
    torch.testing.assert_close(torch.from_numpy(found[0]), -slope, rtol=1e-9, atol=1e-12)
    assert np.abs(wall_force(np.array([[[[-0.6, 0.5, 1.6]]]]))).max() < 1e-15


def test_what_may_be_asked_for_is_an_end_or_all_inside_since_the_burn_in() -> None:
    visited = torch.tensor([0.1, 0.2, 1.3, 0.4, -0.2], dtype=torch.float64).view(5, 1, 1, 1).expand(5, 2, 1, 3).clone()
    visited[3, 1, 0, 2] = 1.001
    first = centre(2, 1, 3)
    best = LangevinOptions(burn_in=1, asks_for="best")
    states, chains = askable(first, visited, best)
    assert states[:, 0, 0].tolist() == [0.2, 0.2, 0.4]
    assert chains.tolist() == [0, 1, 0]
    states, chains = askable(first, visited[4:], best.model_copy(update={"burn_in": 0}))
    assert torch.equal(states, first)
    assert chains.tolist() == [0, 1]
    states, chains = askable(first, visited, LangevinOptions())
    assert states.unique().tolist() == [0.0]
    assert chains.tolist() == [0, 1]


def test_no_friction_at_all_is_refused() -> None:
    with pytest.raises(ValidationError, match="friction"):
        LangevinOptions(friction=0.0)
