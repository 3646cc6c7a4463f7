"""Learned density ratios against known ones, and their limits."""

import math
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from ratio_cases import differentiable, network
from scipy.stats import spearmanr
from torch import nn
from torch.nn.functional import softplus
from torch.nn.utils import parameters_to_vector

from plumbline.methods.conformal.density_ratio import (
    RatioClassifier,
    RatioClassifiers,
    RatioOptions,
    fit_ratio,
    no_shift,
    weights_at,
    weights_with_vjp,
)

SD = 0.1


def gaussian(mean: float, n: int, seed: int, dim: int = 1) -> torch.Tensor:
    return mean + SD * torch.randn(n, dim, generator=stream(seed), dtype=torch.float64)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(dim: int, options: RatioOptions, seed: int = 0) -> RatioClassifier:
    """A classifier before its first update."""
    return RatioClassifier(RatioClassifiers.drawn(dim, options, stream(seed)))


def trained(steps: int = 60, **options) -> RatioClassifier:
    options = RatioOptions(steps=steps, hidden=16, learning_rate=1e-2, ema=1.0, **options)
    return fit_ratio(gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2), options, stream())


@pytest.mark.slow
def test_the_log_ratio_of_two_gaussians_is_learned() -> None:
    """It is linear: (mean' - mean) (x - middle) / sd^2, 20 (x - 0.5) here; also where the classes differ in size."""
    options = RatioOptions(steps=300, learning_rate=3e-3, ema=1.0)
    ratio = fit_ratio(gaussian(0.45, 3_000, 0), gaussian(0.55, 1_000, 1), options, stream())
    grid = torch.linspace(0.3, 0.7, 41, dtype=torch.float64)[:, None]
    with torch.no_grad():
        found = ratio(grid)
    expected = 10 * (grid[:, 0] - 0.5)
    assert spearmanr(found, expected).statistic > 0.98
    assert (found - expected).square().mean().sqrt() < 0.35


def test_the_moving_average_starts_where_there_is_no_shift() -> None:
    ratio = drawn(3, RatioOptions())
    U = torch.rand(4, 2, 3, generator=stream(), dtype=torch.float64)
    assert torch.equal(ratio(U), torch.zeros(4, 2).double())
    assert torch.equal(no_shift(U), torch.zeros(4, 2).double())


def test_a_moving_average_that_does_not_move_says_that_there_is_no_shift() -> None:
    U = torch.rand(4, 2, 2, generator=stream(), dtype=torch.float64)
    options = RatioOptions(ema=0.0, steps=20, learning_rate=0.1)
    ratio = fit_ratio(gaussian(0.4, 9, 0, 2), gaussian(0.6, 8, 1, 2), options, stream())
    assert torch.equal(ratio(U), torch.zeros(4, 2).double())


@pytest.mark.parametrize(("n", "m"), [(20, 50), (40, 30), (30, 30)])
def test_published_class_weights_are_those_of_its_loss(n: int, m: int) -> None:
    """Binary cross-entropy over all rows, each query's times (n - m) / m: less than nothing where queries are more."""
    data, queries = gaussian(0.4, n, 0, 2), gaussian(0.6, m, 1, 2)
    options = RatioOptions(hidden=6, ema=1.0, classes="published", weight_decay=0.0, learning_rate=1e-3)
    mine = drawn(2, options)
    theirs = network(mine.parameters, 2, 6).requires_grad_(requires_grad=True)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-3)
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([(n - m) / m]).double())
    labels = torch.cat([torch.zeros(n), torch.ones(m)]).double()[:, None]
    for _ in range(30):
        mine.update(data, queries)
        adam.zero_grad()
        loss(theirs(2 * torch.cat([data, queries]) - 1), labels).backward()
        adam.step()
    torch.testing.assert_close(
        mine.parameters, parameters_to_vector(theirs.parameters()).detach(), rtol=1e-8, atol=1e-8
    )


def test_the_moving_average_moves_by_its_weight() -> None:
    ratio = drawn(2, RatioOptions(ema=0.25, hidden=4))
    expected = torch.zeros_like(ratio.parameters)
    for _ in range(3):
        ratio.update(gaussian(0.4, 5, 0, 2), gaussian(0.6, 5, 1, 2))
        expected = 0.75 * expected + 0.25 * ratio.parameters
    torch.testing.assert_close(ratio.averaged, expected)


def test_without_an_average_the_newest_parameters_count() -> None:
    ratio = trained(5)
    U = torch.rand(6, 2, generator=stream(), dtype=torch.float64)
    torch.testing.assert_close(ratio(U), network(ratio.parameters, 2, 16)(2 * U - 1).squeeze(-1))


def test_classes_that_are_apart_are_clipped_and_finite() -> None:
    options = RatioOptions(steps=400, learning_rate=5e-2, ema=1.0, clip=50.0)
    data, queries = gaussian(-2.0, 30, 0, 2), gaussian(3.0, 30, 1, 2)
    ratio = fit_ratio(data, queries, options, stream())
    with torch.no_grad():
        assert torch.equal(ratio(data), torch.full((30,), -math.log(50.0), dtype=torch.float64))
        assert torch.equal(ratio(queries), torch.full((30,), math.log(50.0), dtype=torch.float64))
    assert ratio.clipped(torch.cat([data, queries])) == 1.0


def test_the_clipped_share_is_counted() -> None:
    ratio = trained(400, clip=3.0)
    U = torch.rand(50, 2, generator=stream(5), dtype=torch.float64)
    raw = network(ratio.averaged, 2, 16)(2 * U - 1).squeeze(-1)
    share = (raw.abs() >= math.log(3.0)).double().mean().item()
    assert 0 < share < 1
    assert ratio.clipped(U) == share
    assert trained(0).clipped(U) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(30, 30), (12, 40)])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-4, 1e-1])
def test_updates_are_those_of_automatic_differentiation_and_torchs_adam(n: int, m: int, weight_decay: float) -> None:
    """Over 100 updates on new samples each time, as on Langevin chains."""
    options = RatioOptions(weight_decay=weight_decay)
    ratio = drawn(3, options)
    reference, averaged = (network(ratio.parameters, 3, options.hidden).requires_grad_() for _ in range(2))
    for parameter in averaged.parameters():
        nn.init.zeros_(parameter)
    adam = torch.optim.Adam(reference.parameters(), lr=options.learning_rate, weight_decay=weight_decay)
    for step in range(100):
        data, queries = gaussian(0.4, n, step, 3), gaussian(0.5, m, 1_000 + step, 3)
        ratio.update(data, queries)
        loss = softplus(reference(2 * data - 1)).mean() + softplus(-reference(2 * queries - 1)).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            for old, new in zip(averaged.parameters(), reference.parameters(), strict=True):
                old.lerp_(new, options.ema)
    for found, expected in [(ratio.parameters, reference), (ratio.averaged, averaged)]:
        torch.testing.assert_close(found, parameters_to_vector(expected.parameters()).detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 4])
def test_first_parameters_are_uniform_layer_by_layer(dim: int) -> None:
    """Weights, then biases, of each layer, within one over the root of its inputs: torch's own rule."""
    generator, hidden = stream(3), 8
    expected = [
        (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) / math.sqrt(inputs)
        for inputs, outputs in [(dim, hidden), (hidden, hidden), (hidden, 1)]
        for shape in [(outputs, inputs), (outputs,)]
    ]
    found = drawn(dim, RatioOptions(hidden=hidden), 3).parameters
    torch.testing.assert_close(found, torch.cat([part.flatten() for part in expected]))


def test_training_lowers_the_loss() -> None:
    data, queries = gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2)

    def loss(ratio: RatioClassifier) -> float:
        with torch.no_grad():
            return (torch.sigmoid(ratio(data)).mean() + torch.sigmoid(-ratio(queries)).mean()).item()

    assert loss(trained(100)) < loss(trained(10)) < loss(trained(0))


def test_same_generator_same_classifier() -> None:
    U = torch.rand(6, 2, generator=stream(9), dtype=torch.float64)
    found = []
    for _ in range(2):
        torch.rand(3)  # the global stream does not count
        found.append(trained(20)(U).detach())
    assert torch.equal(*found)
    other = fit_ratio(
        gaussian(0.4, 60, 0, 2), gaussian(0.6, 40, 1, 2), RatioOptions(steps=20, ema=1.0, hidden=16), stream(1)
    )
    assert not torch.equal(found[0], other(U))


@pytest.mark.parametrize("clip", [20.0, 1e6])
def test_gradients_in_the_points_are_those_of_automatic_differentiation(clip: float) -> None:
    """Also where some ratios are clipped, and the gradients zero."""
    ratio = trained(60, clip=clip)
    U = torch.rand(20, 2, 2, generator=stream(2), dtype=torch.float64).requires_grad_()
    weights = torch.rand(20, 2, generator=stream(3), dtype=torch.float64)
    with torch.no_grad():
        value, vjp = ratio.with_vjp(U)
        (found,) = vjp(weights)
    ratios = differentiable(ratio, U)
    (expected,) = torch.autograd.grad((weights * ratios).sum(), U)
    torch.testing.assert_close(value, ratios.detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    assert found.abs().max() > 0.01
    assert bool((found == 0).all(dim=-1).any()) == (clip < 1e3)


def test_weights_pull_gradients_back_to_the_points() -> None:
    ratio, data = trained(30), gaussian(0.4, 7, 4, 2)
    U = torch.rand(4, 2, 2, generator=stream(2), dtype=torch.float64)
    weights, vjp = weights_with_vjp(ratio, data, U)
    assert torch.equal(weights, weights_at(ratio, data, U))
    torch.testing.assert_close(weights[..., -1:] / weights[..., :-1], (ratio(U)[..., None] - ratio(data)).exp())
    grad_ratio = torch.rand(4, 2, generator=stream(3), dtype=torch.float64)
    assert torch.equal(vjp(grad_ratio), ratio.with_vjp(U)[1](grad_ratio)[0])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**31),
    number=st.integers(2, 9),
    dim=st.integers(1, 6),
    hidden=st.sampled_from([1, 3, 16, 64]),
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    classes=st.sampled_from(["alike", "published"]),
)
def test_no_digit_of_a_classifier_depends_on_its_company(
    seed: int, number: int, dim: int, hidden: int, n: int, m: int, classes: Literal["alike", "published"]
) -> None:
    options = RatioOptions(hidden=hidden, ema=0.5, learning_rate=0.1, classes=classes, clip=2.0)
    random = np.random.default_rng(seed)
    apart = [RatioClassifiers.drawn(dim, options, stream(seed + i)) for i in range(number)]
    together = RatioClassifiers.together(apart)
    for _ in range(3):
        data, queries = random.random((number, n, dim)), random.random((number, m, dim))
        together.update(data, queries)
        for i, alone in enumerate(apart):
            alone.update(data[[i]], queries[[i]])
    U, weights = random.random((number, n + 1, dim)), random.random((number, n))
    value, vjp = together.with_vjp(U)
    for i, alone in enumerate(apart):
        theirs, back = alone.with_vjp(U[[i]])
        assert np.array_equal(value[[i]], theirs)
        assert np.array_equal(vjp(weights)[[i]], back(weights[[i]]))
        assert np.array_equal(together.only(i).with_vjp(U[[i]])[0], theirs)
        assert np.array_equal(together.parameters[i], alone.parameters[0])


@pytest.mark.parametrize("wrong", [{"clip": 1.0}, {"ema": -0.1}, {"ema": 1.5}, {"hidden": 0}, {"steps": -1}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        RatioOptions(**wrong)
