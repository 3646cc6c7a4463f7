"""The unrolled threshold against its recursion, and its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.methods.localised.thresholds import FLOOR, OnlineOptions, OnlineThreshold, thresholds_together

LOCAL = OnlineOptions(kappa=2.0, lengthscale=0.7, forgetting=0.1, eta0=0.3)


def after(options: OnlineOptions, misses: list[bool], alpha: float = 0.2, seed: int = 0) -> OnlineThreshold:
    X = torch.rand(len(misses), 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    threshold = OnlineThreshold.start(options, torch.tensor([alpha], dtype=torch.float64), 2)
    for x, missed in zip(X, misses, strict=True):
        threshold = threshold.update(x, happened(missed))
    return threshold


def happened(*events: bool) -> torch.Tensor:
    return torch.tensor(events, dtype=torch.float64)


@settings(max_examples=30)
@given(st.lists(st.booleans(), min_size=1, max_size=15), st.floats(0.0, 3.0), st.floats(0.0, 0.5), st.floats(0.0, 1.0))
def test_the_kernel_sum_is_the_recursion(misses: list[bool], kappa: float, forgetting: float, decay: float) -> None:
    """Eq. 27 by the letter: functions of x, one on top of the other."""
    options = OnlineOptions(kappa=kappa, lengthscale=0.7, forgetting=forgetting, decay=decay, eta0=0.3)
    threshold = after(options, misses)
    where = torch.tensor([0.3, 0.9], dtype=torch.float64)
    c, g = 0.2, 0.0
    for t, (x, missed) in enumerate(zip(threshold.centres, misses, strict=True), start=1):
        eta = 0.3 * t**-decay
        k = kappa * math.exp(-float((x - where).square().sum()) / 0.7**2)
        c += eta * (0.2 - missed)
        g = (1 - forgetting * eta) * g + eta * (0.2 - missed) * k
    assert threshold.unclipped(where).item() == pytest.approx(c + g, abs=1e-10)


def test_before_any_round_it_is_alpha() -> None:
    threshold = OnlineThreshold.start(LOCAL, torch.tensor([0.3, 0.4], dtype=torch.float64), 2)
    assert threshold(torch.rand(5, 2, dtype=torch.float64)).tolist() == [[0.3, 0.4]] * 5


def test_a_miss_lowers_it_most_where_it_happened() -> None:
    x = torch.tensor([0.5, 0.5], dtype=torch.float64)
    options = OnlineOptions(kappa=1.0, lengthscale=0.2, eta0=0.1)
    threshold = OnlineThreshold.start(options, torch.tensor([0.2], dtype=torch.float64), 2).update(x, happened(True))
    here, far = threshold(torch.stack([x, x + 5])).squeeze(-1).tolist()
    assert here < far < 0.2


def test_a_flat_kernel_is_one_threshold_everywhere() -> None:
    threshold = after(OnlineOptions(kappa=2.0, lengthscale=math.inf, eta0=0.01), [True, False, False])
    values = threshold(torch.rand(7, 2, dtype=torch.float64) * 100)
    torch.testing.assert_close(values, values[:1].expand(7, 1))


def test_it_is_kept_in_its_range() -> None:
    X = torch.rand(4, 2, dtype=torch.float64)
    low, high = after(LOCAL, [True] * 12), after(LOCAL.model_copy(update={"eta0": 5.0}), [False] * 12)
    assert (low.unclipped(X) < 0).all()
    assert low(X).tolist() == [[FLOOR]] * 4
    assert (high.unclipped(X) > 1).all()
    assert high(X).tolist() == [[1.0]] * 4


@pytest.mark.slow
def test_long_run_miscoverage_is_alpha_without_localisation() -> None:
    """A forecaster that is always twice too sure: online, misses come to one in five all the same."""
    generator = torch.Generator().manual_seed(0)
    options = OnlineOptions(eta0=0.05, decay=0.0)
    threshold, misses = OnlineThreshold.start(options, torch.tensor([0.2], dtype=torch.float64), 1), 0
    x = torch.zeros(1, dtype=torch.float64)
    rounds = 2_000
    for _ in range(rounds):
        half = -torch.special.ndtri(threshold(x) / 2)
        missed = bool((2 * torch.randn((), generator=generator, dtype=torch.float64)).abs() > half)
        misses += missed
        threshold = threshold.update(x, happened(missed))
    assert misses / rounds == pytest.approx(0.2, abs=0.02)


def test_learning_rates_can_be_counted_from_another_round() -> None:
    later = OnlineOptions(eta0=0.3, decay=0.5, counted_from=2)
    assert [later.learning_rate(t) for t in (1, 2)] == pytest.approx([0.3 * t**-0.5 for t in (2, 3)])
    assert OnlineOptions(eta0=0.3).learning_rate(1) == 0.3


def test_a_learning_rate_beyond_lemma_1_is_refused() -> None:
    with pytest.raises(PlumblineError, match="Lemma 1"):
        after(OnlineOptions(eta0=2.0, forgetting=0.5), [True])


def test_several_thresholds_are_as_many_single_ones() -> None:
    X = torch.rand(6, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    events = torch.rand(6, 2, generator=torch.Generator().manual_seed(4)).round().double()
    targets = torch.tensor([0.1, 0.6], dtype=torch.float64)
    both = OnlineThreshold.start(LOCAL, targets, 2)
    singles = [OnlineThreshold.start(LOCAL, target.unsqueeze(0), 2) for target in targets]
    for x, event in zip(X, events, strict=True):
        both = both.update(x, event)
        singles = [single.update(x, event[i : i + 1]) for i, single in enumerate(singles)]
    where = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    torch.testing.assert_close(both.unclipped(where), torch.cat([one.unclipped(where) for one in singles], dim=-1))


def test_its_state_brings_it_back() -> None:
    threshold = after(LOCAL, [True, False, True])
    again = OnlineThreshold.start(LOCAL, threshold.targets, 2).restored(threshold.state())
    X = torch.rand(4, 2, dtype=torch.float64)
    assert torch.equal(again.update(X[0], happened(True))(X), threshold.update(X[0], happened(True))(X))


def test_its_gradient_is_that_of_finite_differences() -> None:
    threshold = after(LOCAL, [True, False, True, False])
    X = torch.rand(3, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    low, width = np.array([[[-1.0, 0.0]]]), np.array([[[2.0, 0.5]]])
    arrays = replace(threshold.arrays, low=low, width=width)
    values, vjp = arrays.unclipped_with_vjp(X.numpy()[None])
    located = (X - torch.from_numpy(low[0])) / torch.from_numpy(width[0])
    torch.testing.assert_close(torch.from_numpy(values[0]), threshold.unclipped(located), rtol=1e-14, atol=0.0)
    gradient = vjp(np.ones_like(values))[0]
    for j in range(2):
        step = np.zeros((1, 1, 2))
        step[..., j] = 1e-6
        ends = [arrays.unclipped_with_vjp(X.numpy() + side * step)[0][0, :, 0] for side in (1, -1)]
        np.testing.assert_allclose(gradient[:, j], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-9)


@given(
    m=st.integers(1, 4), rounds=st.integers(0, 6), M=st.integers(1, 3), d=st.integers(1, 3), seed=st.integers(0, 999)
)
@settings(max_examples=30)
def test_no_digit_of_a_function_depends_on_its_company(m: int, rounds: int, M: int, d: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    options = OnlineOptions(eta0=0.1, kappa=2.0, lengthscale=0.5)
    parts = []
    for _ in range(m):
        threshold = OnlineThreshold.start(options, torch.linspace(0.2, 0.8, M).double(), d)
        for _ in range(rounds):
            events = torch.from_numpy(generator.integers(0, 2, M).astype(float))
            threshold = threshold.update(torch.from_numpy(generator.random(d)), events)
        parts.append(threshold.arrays)
    X, grad = generator.random((m, 5, d)), generator.random((m, 5, M))
    joint = thresholds_together(parts)
    values, vjp = joint.unclipped_with_vjp(X)
    gradient = vjp(grad)
    for i, part in enumerate(parts):
        for alone in (part, joint.only([i])):
            its_values, its_vjp = alone.unclipped_with_vjp(X[i : i + 1])
            assert np.array_equal(its_values[0], values[i])
            assert np.array_equal(its_vjp(grad[i : i + 1])[0], gradient[i])
