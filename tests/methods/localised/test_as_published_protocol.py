"""What an observation's coverage is judged by, against processes written out."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from situations import BOX, QUICK, ask, box, objective, rows
from torch import Tensor

from plumbline.methods.base import build_method
from plumbline.methods.localised.as_published import under_protocol
from plumbline.methods.localised.online import OnlineMethod
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP

Array = NDArray[np.float64]
NEW, Y_NEW = rows(2, 11), torch.tensor([261.0, 188.0], dtype=torch.float64)


def process() -> GP:
    place = box()
    return fit_process(place.history.X, place.history.Y, BOX, ModelOptions(priors="none", ard=False))


def matern(A: Array, B: Array, lengthscale: float) -> Array:
    r = np.sqrt(5) * np.linalg.norm(A[:, None] - B[None], axis=-1) / lengthscale
    return (1 + r + r**2 / 3) * np.exp(-r)


def written_out(of: GP, X: Tensor, y: Tensor, at: Tensor) -> tuple[Array, Array]:
    """Return mean and standard deviation of observations at points, of standardised data `y`, by a plain inverse."""
    low, width = BOX[0].numpy(), (BOX[1] - BOX[0]).numpy()
    U, V = ((points.numpy() - low) / width for points in (X, at))
    length = float(of.at.lengthscale)
    inverse = np.linalg.inv(of.at.outputscale * matern(U, U, length) + float(of.noise) * np.eye(len(U)))
    cross = of.at.outputscale * matern(V, U, length)
    mean = of.at.constant + cross @ inverse @ (y.numpy() - of.at.constant)
    variance = of.at.outputscale + float(of.noise) - np.sum((cross @ inverse) * cross, axis=-1)
    return mean, np.sqrt(variance)


def standardised(y: Tensor) -> Tensor:
    return (y - y.mean()) / y.std()


def scores(coverage_protocol: Any, y: Tensor = Y_NEW) -> Array:
    """Return how far what is judged is from what it is judged by, in standard deviations."""
    of, stand_ins = under_protocol(coverage_protocol, process(), NEW, y)
    mean, variance = of.posterior_moments(NEW, joint=False)
    sd = (variance + of.noise_variance).sqrt()
    return ((stand_ins - mean) / sd).numpy()


def test_before_is_the_forecast_that_was_made() -> None:
    of, history = process(), box().history
    mean, sd = written_out(of, history.X, standardised(history.Y[:, 0]), NEW)
    y = (Y_NEW - history.Y.mean()) / history.Y.std()
    assert scores("before") == pytest.approx((y.numpy() - mean) / sd, rel=1e-6)


def test_standardised_with_it_moves_the_observation_and_leaves_the_forecast() -> None:
    of, history = process(), box().history
    mean, sd = written_out(of, history.X, standardised(history.Y[:, 0]), NEW)
    everything = standardised(torch.cat([history.Y[:, 0], Y_NEW]))
    assert scores("standardised-with-it") == pytest.approx((everything[-2:].numpy() - mean) / sd, rel=1e-6)


def test_conditioned_on_it_is_the_forecast_of_what_is_known() -> None:
    of, history = process(), box().history
    everything = standardised(torch.cat([history.Y[:, 0], Y_NEW]))
    mean, sd = written_out(of, torch.cat([history.X, NEW]), everything, NEW)
    assert scores("conditioned-on-it") == pytest.approx((everything[-2:].numpy() - mean) / sd, rel=1e-6)
    assert (np.abs(scores("conditioned-on-it")) < np.abs(scores("before"))).all()


@pytest.mark.parametrize("coverage_protocol", ["before", "standardised-with-it", "conditioned-on-it"])
def test_what_failed_is_neither_judged_nor_judges(coverage_protocol: Any) -> None:
    one = torch.stack([Y_NEW[0], torch.tensor(math.nan).double()])
    found = scores(coverage_protocol, one)
    assert np.isnan(found[1])
    of, y = under_protocol(coverage_protocol, process(), NEW[:1], Y_NEW[:1])
    mean, variance = of.posterior_moments(NEW[:1], joint=False)
    assert found[0] == pytest.approx(float((y - mean) / (variance + of.noise_variance).sqrt()))


def make(coverage_protocol: str, name: str, **options: Any) -> OnlineMethod:
    method = build_method(
        name, {**QUICK, "coverage_protocol": coverage_protocol, "online": {"eta0": 0.1}, **options}, box().domain
    )
    assert isinstance(method, OnlineMethod)
    return method


@pytest.mark.parametrize("coverage_protocol", ["before", "standardised-with-it", "conditioned-on-it"])
def test_thresholds_move_by_what_is_judged(coverage_protocol: Any) -> None:
    """Over observations further and further away, the threshold says which were found to be covered."""
    history = box().history
    for far in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0):
        method = make(coverage_protocol, "locbo", alpha=0.4)
        proposal = ask(method, history, 1)
        forecast = proposal.predict(proposal.X)  # type: ignore[misc]
        y = forecast.mean + far * forecast.model_sd  # type: ignore[attr-defined, union-attr]
        method.tell(proposal.X, y.unsqueeze(-1))
        of, stand_in = under_protocol(
            coverage_protocol, fit_process(history.X, history.Y, BOX, method.options.model), proposal.X, y
        )
        mean, variance = of.posterior_moments(proposal.X, joint=False)
        z = float((stand_in - mean) / (variance + of.noise_variance).sqrt())
        missed = 2 * norm.sf(abs(z)) < 0.4
        assert float(method.threshold.constants) == pytest.approx(0.4 + 0.1 * (0.4 - missed))


def test_quantiles_are_judged_likewise() -> None:
    history = box().history
    method = make("conditioned-on-it", "ocbo", levels=3)
    proposal = ask(method, history, 1)
    y = objective(proposal.X) + 200
    method.tell(proposal.X, y)
    of, _ = under_protocol(
        "conditioned-on-it", fit_process(history.X, history.Y, BOX, method.options.model), proposal.X, y[0]
    )
    mean, variance = of.posterior_moments(proposal.X, joint=False)
    level = norm.cdf(float((y - mean) / (variance + of.noise_variance).sqrt()))
    events = np.array([level <= target for target in (0.25, 0.5, 0.75)])
    expected = np.array([0.25, 0.5, 0.75]) + 0.1 * (np.array([0.25, 0.5, 0.75]) - events)
    assert method.threshold.constants.tolist() == pytest.approx(expected.tolist())
