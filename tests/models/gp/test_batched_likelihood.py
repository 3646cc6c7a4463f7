"""Samples at once are what each is alone."""

import math

import numpy as np
import pytest
import torch
from exact_cases import CHOICES, standardised
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError

from plumbline.models.gp import batched_likelihood as likelihood_stack
from plumbline.models.gp.batched_likelihood import maximise_each, penalised_each, stack_of
from plumbline.models.gp.fit import ModelOptions, unknowns_of
from plumbline.models.gp.likelihood import Hyperparameters, Sample, Unknowns, maximise

SEEDS = range(5)


def some(n: int, d: int) -> list[Sample]:
    return [standardised(n, d, seed) for seed in SEEDS]


def places(unknowns: Unknowns, m: int, seed: int) -> np.ndarray:
    """Real numbers about those that fitting begins with."""
    moves = np.random.default_rng(seed).normal(size=(m, len(unknowns.start()))) / 4
    lows = [low for low, _ in unknowns.bounds()]
    return np.maximum(unknowns.start() + moves, lows)


@settings(max_examples=60)
@given(
    n=st.integers(1, 25),
    d=st.sampled_from([1, 2, 6]),
    options=st.sampled_from([*CHOICES, ModelOptions(priors="none", ard=False, lengthscale=0.3)]),
    seed=st.integers(0, 1000),
)
def test_each_has_the_value_and_the_gradient_that_it_has_alone(
    n: int, d: int, options: ModelOptions, seed: int
) -> None:
    samples, unknowns = some(n, d), unknowns_of(d, options)
    raw = places(unknowns, len(samples), seed)
    values, gradients = penalised_each(raw, unknowns, stack_of(samples), options.kernel)
    assert values.shape == (len(samples),)
    for sample, own, value, gradient in zip(samples, raw, values, gradients, strict=True):
        expected, slope = unknowns.penalised(own, sample, options.kernel)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8 * (1 + np.abs(slope).max()))


QUIET = ModelOptions(priors="none", kernel="rbf")


def test_a_covariance_without_a_factor_gets_jitter_and_the_others_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unknowns, samples = unknowns_of(1, QUIET), stack_of([standardised(12, 1), standardised(12, 1, 2)])
    alone = []

    class Noted(Sample):
        def log_likelihood(self, at: Hyperparameters, kernel: str) -> tuple[float, Hyperparameters]:
            alone.append(at)
            return super().log_likelihood(at, kernel)

    factor = torch.linalg.cholesky_ex

    def broken(covariance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        L, info = factor(covariance)
        return L, torch.tensor([0, 1]) if covariance.ndim == 3 else info

    monkeypatch.setattr(likelihood_stack, "Sample", Noted)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", broken)
    raw = np.stack([unknowns.start()] * 2)
    values, gradients = penalised_each(raw, unknowns, samples, "rbf")
    assert len(alone) == 1
    for i in range(2):
        value, gradient = unknowns.penalised(raw[i], Sample(samples.X[i], samples.y[i]), "rbf")
        assert values[i] == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(gradients[i], gradient, rtol=1e-7)


def test_where_there_is_no_number_it_is_nan_and_the_others_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hopeless(Sample):
        def log_likelihood(self, at: Hyperparameters, kernel: str) -> tuple[float, Hyperparameters]:
            raise NotPSDError("not here")

    unknowns = unknowns_of(1, QUIET)
    samples = stack_of([standardised(12, 1), standardised(12, 1)])
    samples.X[1] = math.nan
    monkeypatch.setattr(likelihood_stack, "Sample", Hopeless)
    values, gradients = penalised_each(np.stack([unknowns.start()] * 2), unknowns, samples, "rbf")
    assert math.isfinite(values[0])
    assert np.isfinite(gradients[0]).all()
    assert math.isnan(values[1])
    assert np.isnan(gradients[1]).all()
    found = maximise_each(unknowns, samples, "rbf")
    assert found[0] is not None
    assert found[1] is None


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_maxima_are_those_that_each_has_alone(options: ModelOptions) -> None:
    samples, unknowns = some(14, 2), unknowns_of(2, options)
    for sample, raw in zip(samples, maximise_each(unknowns, stack_of(samples), options.kernel), strict=True):

        def objective(at: np.ndarray, sample: Sample = sample) -> tuple[float, np.ndarray]:
            return unknowns.penalised(at, sample, options.kernel)

        alone, failed = maximise(objective, unknowns, np.random.default_rng(0))
        assert failed == []
        assert raw is not None
        assert objective(raw)[0] == pytest.approx(objective(alone)[0], abs=1e-7)


def test_a_part_of_a_stack_is_the_stack_of_that_part() -> None:
    samples = some(6, 2)
    stack, part = stack_of(samples), stack_of(samples[1:3])
    for whole, own in zip(vars(stack.only([1, 2])).values(), vars(part).values(), strict=True):
        assert torch.equal(whole, own)
    assert stack.only([0, 1, 2, 3, 4]) is stack
