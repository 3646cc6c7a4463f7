"""Criteria of exact processes against the marginal likelihood and against processes that leave a datum out."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from exact_cases import data, made

from plumbline.models.gp.criteria import bayesian_information, leave_one_out_density, log_likelihood
from plumbline.models.gp.fit import ModelOptions
from plumbline.models.gp.likelihood import Covariances, DataSets
from plumbline.models.gp.process import GP, conditioned

OPTIONS = ModelOptions()


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("known", [False, True])
def test_the_likelihood_is_that_which_is_maximised(kernel: str, known: bool) -> None:
    process = made(kernel, known)
    constant, noise, outputscale, lengthscale = process.at
    at = Covariances(noise.numpy()[None], np.array([[outputscale]]), lengthscale.numpy()[None])
    data_set = DataSets(process.U.numpy()[None], process.y.numpy()[None], constant)
    (expected,), _, _ = data_set.log_likelihoods(at, process.kernel)
    assert log_likelihood(process, OPTIONS) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "fitted"),
    [
        (ModelOptions(), 4),  # constant, noise, two lengthscales
        (ModelOptions(priors="none"), 5),  # and an output scale
        (ModelOptions(priors="none", ard=False), 4),
        (ModelOptions(priors="conformal", lengthscale=0.2), 3),
    ],
    ids=str,
)
def test_each_fitted_hyperparameter_costs_half_a_logarithm(options: ModelOptions, fitted: int) -> None:
    process = made()
    cost = log_likelihood(process, options) - bayesian_information(process, options)
    assert cost == pytest.approx(0.5 * fitted * math.log(9))


def without(process: GP, i: int) -> GP:
    rest = torch.arange(len(process.y)) != i
    return replace(process, U=process.U[rest], y=process.y[rest])


@pytest.mark.parametrize("kernel", ["rbf", "matern12"])
def test_leave_one_out_densities_are_those_of_the_others(kernel: str) -> None:
    process = made(kernel)
    X, Y = data()
    total = 0.0
    for i in range(len(Y)):
        mean, variance = without(process, i).posterior_moments(X[i : i + 1], joint=False)
        forecast = torch.distributions.Normal(mean, (variance + process.noise_variance).sqrt())
        total += float(forecast.log_prob(Y[i])) + math.log(process.standardisation.scale)
    assert leave_one_out_density(process, OPTIONS) == pytest.approx(total, rel=1e-9)


def test_a_single_observation_has_a_density() -> None:
    process = made()
    X, Y = data(1)
    alone = conditioned(X, Y, torch.stack([X[0] - 1, X[0] + 1]), "rbf", process.at)
    expected = torch.distributions.Normal(process.at.constant, math.sqrt(process.at.outputscale + float(process.noise)))
    density = float(expected.log_prob(alone.y[0]))
    assert leave_one_out_density(alone, OPTIONS) == pytest.approx(density)
    assert log_likelihood(alone, OPTIONS) == bayesian_information(alone, OPTIONS) == pytest.approx(density)
