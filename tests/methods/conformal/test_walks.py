"""Chains that learn a density ratio: where they walk, what they learn from, and several searches together."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gp_cases import BOUNDS, made_process
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from plumbline.methods.conformal.acquisition import ConformalAcquisition, ConformalPosteriorOptions, Integrand
from plumbline.methods.conformal.density_ratio import RatioClassifier, RatioClassifiers, RatioOptions, no_shift
from plumbline.methods.conformal.expectation import UpperBound
from plumbline.methods.conformal.search import LangevinOptions, reflect
from plumbline.methods.conformal.walks import Chains, Walk, draw_rows, leaders, walked

REGION = torch.stack([BOUNDS[0] + 0.5, BOUNDS[1] - 1.0])


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chains(seed: int = 0, n: int = 9, region: Tensor = BOUNDS, q: int = 1, **options: float | str) -> Chains:
    integrand = Integrand(UpperBound(), optimistic=True, spread=2.0)
    acquisition = ConformalAcquisition(
        [made_process(n, seed=seed)], integrand, no_shift, 0.3, ConformalPosteriorOptions(candidates=16), seed
    )
    return Chains(
        acquisition,
        Walk(region, BOUNDS),
        RatioClassifiers.drawn(2, RatioOptions(hidden=8, ema=0.5, learning_rate=0.1), stream(seed)),
        torch.rand(3, q, 2, generator=stream(seed), dtype=torch.float64),
        LangevinOptions(chains=3, **{"steps": 6, "burn_in": 2, "learning_rate": 0.01, **options}),
        stream(seed),
    )


def test_rows_are_drawn_with_replacement() -> None:
    rows = np.arange(12.0).reshape(2, 3, 2)
    drawn = draw_rows(rows, 60, [stream(0), stream(1)])
    assert drawn.shape == (2, 60, 2)
    for mine, own, seed in zip(drawn, rows, (0, 1), strict=True):
        assert {tuple(row) for row in mine.tolist()} == {tuple(row) for row in own.tolist()}
        assert np.array_equal(mine, own[torch.randint(3, (60,), generator=stream(seed))])


def test_gradients_in_a_region_are_in_units_of_the_region() -> None:
    """One step without noise."""
    start = chains(region=REGION, steps=1, burn_in=0, temperature=0.0)
    (found,) = walked([start])
    low, high = (REGION - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    inside = low + (high - low) * start.first
    _, gradient = start.acquisition.value_and_gradient_in_cube(inside)
    expected = reflect((start.first + 0.01 * (high - low) * gradient).numpy())
    torch.testing.assert_close(found.states[0], torch.from_numpy(expected))
    assert not torch.equal(found.states[0], start.first)


def test_the_classifier_learns_from_data_and_iterates_since_the_burn_in() -> None:
    """In a region as well, where iterates are mapped to the models' cube."""
    for q in (1, 2):
        start = chains(region=REGION, q=q, asks_for="best")
        (found,) = walked([start])
        again, generator, data = start.classifier, stream(0), start.acquisition.processes[0].U.numpy()
        visited = found.states[0].view(-1, 3, q, 2)  # all are inside of the cube
        for step in range(6):
            torch.randn(3, q, 2, generator=generator, dtype=torch.float64)
            if step >= 2:
                rows = draw_rows(visited[: step - 1].reshape(1, -1, 2).numpy(), len(data), [generator])
                again.update(data[None], start.walk.in_domain(torch.from_numpy(rows)).numpy())
        learned = found.acquisition.log_ratio
        assert isinstance(learned, RatioClassifier)
        assert learned.arrays.steps == again.steps == 4
        assert np.array_equal(learned.arrays.averaged, again.averaged)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    n=st.integers(2, 20),
    regions=st.lists(st.booleans(), min_size=2, max_size=6),
    bounds=st.sampled_from(["reflect", "clamp", "walls"]),
    friction=st.sampled_from([1.0, 0.1]),
    asks_for=st.sampled_from(["end", "best"]),
)
def test_no_digit_of_a_search_depends_on_its_company(
    n: int, regions: list[bool], bounds: str, friction: float, asks_for: str
) -> None:
    options = {"bounds": bounds, "friction": friction, "asks_for": asks_for, "learning_rate": 0.1}

    def searches() -> list[Chains]:
        made = [chains(seed, n, REGION if region else BOUNDS, **options) for seed, region in enumerate(regions)]
        return [replace(one, generator=stream(seed)) for seed, one in enumerate(made)]

    apart, together = searches(), searches()
    for alone, one, joint in zip(apart, together, walked(together), strict=True):
        (found,) = walked([alone])
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(joint.states, found.states, strict=True))
        assert torch.equal(one.generator.get_state(), alone.generator.get_state())
        U = torch.rand(4, 1, 2, generator=stream(0), dtype=torch.float64)
        assert torch.equal(joint.acquisition.values_in_cube(U), found.acquisition.values_in_cube(U))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12))
def test_each_chain_is_led_by_its_best_state(states: list[tuple[int, int]]) -> None:
    chains, values = (torch.tensor(column) for column in zip(*states, strict=True))
    led = leaders(values.double(), chains)
    best = {chain: max(value for other, value in states if other == chain) for chain, _ in states}
    assert dict(zip(chains[led].tolist(), values[led].tolist(), strict=True)) == best
    assert values[led].tolist() == sorted(best.values(), reverse=True)
