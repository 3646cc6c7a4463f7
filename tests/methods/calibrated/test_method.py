import numpy as np
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from situations import BOX, QUICK, Situation, ask, box, objective, rows, table
from torch.special import ndtr

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Method, Proposal, build_method
from plumbline.methods.calibrated.recalibration import SCALE_BOUNDS, recalibrated_scale
from plumbline.methods.calibrated.splits import forecast_cdf
from plumbline.methods.gp.single_outcome import ExpectedImprovementMethod
from plumbline.models.gp.fit import ModelOptions, fit_each, fit_process
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned
from plumbline.spaces.box import Box


def calibrated(place: Situation, **options) -> Method:
    given = {"name": options.pop("base", "ucb"), "options": options.pop("base_options", QUICK)}
    return build_method("calibrated", {"base": given, **options}, place.domain)


@pytest.mark.parametrize(("place", "q"), [(box(), 1), (table(), 2)], ids=["box-q1", "table-q2"])
@pytest.mark.parametrize("base", ["ei", "ucb", "nei"])
def test_without_a_recalibrator_it_is_the_base_method(place: Situation, base: str, q: int) -> None:
    plain = ask(build_method(base, QUICK, place.domain), place.history, q)
    wrapped = ask(calibrated(place, base=base, recalibrator="none"), place.history, q)
    assert torch.equal(wrapped.X, plain.X)
    assert wrapped.notes == {"sd_scale": 1.0}
    points = rows(4, 9)
    torch.testing.assert_close(wrapped.predict(points).mean, plain.predict(points).mean, rtol=1e-12, atol=0)
    torch.testing.assert_close(wrapped.predict(points).sd, plain.predict(points).sd, rtol=1e-12, atol=0)


def fixed_process(history: History, lengthscale: float, noise: float) -> GP:
    at = Hyperparameters(0.0, BOX.new_tensor([noise]), 1.0, BOX.new_tensor([lengthscale] * 2))
    return conditioned(history.X, history.Y, BOX, "rbf", at)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("recalibrator", ["gp", "isotonic"])
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_an_overconfident_model_is_widened(
    monkeypatch: pytest.MonkeyPatch, recalibrator: str, splits: str, refit: bool
) -> None:
    X = rows(24, 3)
    noisy = objective(X) + 20 * torch.randn(24, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    place = Situation(Domain(Box(BOX)), History(X, noisy))
    process = fixed_process(place.history, lengthscale=0.5, noise=0.1)
    method = calibrated(place, splits=splits, recalibrator=recalibrator, refit=refit)
    monkeypatch.setattr(method.base, "fit", lambda data: fixed_process(data, lengthscale=0.5, noise=0.1))
    monkeypatch.setattr(
        method.base, "fit_each", lambda X, Y, near: [None] * len(X)
    )  # the models of the splits are as bad
    proposal = ask(method, place.history, 1)
    scale = proposal.notes["sd_scale"]
    assert 1.2 < scale <= SCALE_BOUNDS[1]
    if not refit:
        assert scale == recalibrated_scale(forecast_cdf(process, splits).numpy(), recalibrator)
    points = rows(5, 8)
    plain = method.base.predictive(process)(points)
    torch.testing.assert_close(proposal.predict(points).mean, plain.mean, rtol=1e-9, atol=0)
    torch.testing.assert_close(proposal.predict(points).sd, scale * plain.sd, rtol=1e-6, atol=0)


@pytest.mark.parametrize("refit", [True, False])
def test_an_underconfident_model_is_narrowed(monkeypatch: pytest.MonkeyPatch, refit: bool) -> None:
    X = rows(24, 3)
    place = Situation(Domain(Box(BOX)), History(X, objective(X)))
    method = calibrated(place, refit=refit)
    monkeypatch.setattr(method.base, "fit", lambda data: fixed_process(data, lengthscale=0.5, noise=1.0))
    assert SCALE_BOUNDS[0] <= ask(method, place.history, 1).notes["sd_scale"] < 0.8


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
@pytest.mark.parametrize("base", ["ei", "ucb", "pi"])
def test_by_default_a_model_is_trained_on_each_split(base: str, splits: str) -> None:
    """The factor is that of forecasts by processes fitted to each split, one by one."""
    n = 7
    place = box(n=n)
    model = {"kernel": "rbf", "priors": "none", "ard": False}
    options, X, Y = ModelOptions(**model), place.history.X, place.history.Y
    near = fit_process(X, Y, BOX, options) if splits == "leave-one-out" else None
    values = []
    for i in range(n) if splits == "leave-one-out" else range(2, n):
        train = [j for j in range(n) if j != i] if splits == "leave-one-out" else list(range(i))
        (process,) = fit_each(X[train].unsqueeze(0), Y[train].unsqueeze(0), BOX, options, near=near)
        mean, variance = process.posterior_moments(X[i : i + 1], joint=False)
        values.append(ndtr((Y[i] - mean) / (variance + process.noise_variance).sqrt()).item())
    found = ask(calibrated(place, base=base, base_options={**QUICK, "model": model}, splits=splits), place.history, 1)
    # Forecasts that are made at once have sums in another order.
    assert found.notes["sd_scale"] == pytest.approx(recalibrated_scale(np.array(values), "gp"), rel=1e-8)


def test_a_split_that_cannot_be_fitted_is_an_event_and_keeps_the_hyperparameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = box(n=6)
    method = calibrated(place)
    fit = method.base.fit

    def of_all_data(data: History) -> GP:
        if len(data) < 6:
            raise ModelFittingError("no number")
        return fit(data)

    monkeypatch.setattr(method.base, "fit", of_all_data)
    monkeypatch.setattr(method.base, "fit_each", lambda X, Y, near: [None] * len(X))
    question = AskRequest(method, place.history, 1, torch.Generator().manual_seed(5))
    proposal = question.ask()
    assert isinstance(proposal, Proposal)
    assert "SplitNotFittedWarning" in question.events
    closed = ask(calibrated(place, refit=False), place.history, 1)
    assert proposal.notes["sd_scale"] == closed.notes["sd_scale"]


def test_data_that_no_model_fits_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box(n=6)
    method = calibrated(place)

    def nothing(data: History) -> GP:
        raise ModelFittingError("no number")

    monkeypatch.setattr(method.base, "fit", nothing)
    with pytest.raises(ModelFittingError):
        ask(method, place.history, 1)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_few_observations(n: int, splits: str, refit: bool) -> None:
    place = box(n=n)
    proposal = ask(calibrated(place, splits=splits, refit=refit), place.history, 1)
    assert torch.isfinite(proposal.X).all()
    if splits == "time-series" and n <= 2:
        assert proposal.notes["sd_scale"] == 1.0  # nothing was forecast yet


def test_base_options_are_checked() -> None:
    with pytest.raises(PlumblineError, match="base 'ucb': unknown field 'alhpa': did you mean 'alpha'"):
        calibrated(box(), base_options={"alhpa": 0.1})


def test_base_must_have_a_model() -> None:
    with pytest.raises(PlumblineError, match=r"base 'random' does not provide 'steps' .*: use .*\bei\b"):
        calibrated(box(), base="random", base_options={})


def test_a_base_with_a_fit_of_its_own_is_asked_by_it_for_every_split() -> None:
    """A method that others add may fit in its own way: the splits are to be fitted likewise."""
    sizes = []

    class Stiff(ExpectedImprovementMethod):
        def fit(self, data: History) -> GP:
            sizes.append(len(data))
            return fixed_process(data, 0.3, 0.01)

    place = box(n=6)
    method = calibrated(place, base="ei")
    assert None not in method.base.fit_each(place.history.X.unsqueeze(0), place.history.Y.unsqueeze(0))
    method.base = Stiff(place.domain, method.base.options)
    method.fit(place.history)
    assert sizes == [6] + [5] * 6
