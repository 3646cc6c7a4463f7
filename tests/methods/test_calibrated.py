import pytest
import torch
from situations import BOX, QUICK, Situation, ask, box, objective, rows, table

from plumbline.calibration.recalibration import SCALE_BOUNDS, recalibrated_scale
from plumbline.calibration.splits import forecast_cdf
from plumbline.errors import PlumblineError
from plumbline.history import History
from plumbline.methods.base import Domain, Method, build_method
from plumbline.models.exact_process import ExactProcess, conditioned
from plumbline.models.marginal_likelihood import Hyperparameters
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


def fixed_process(history: History, lengthscale: float, noise: float) -> ExactProcess:
    at = Hyperparameters(0.0, BOX.new_tensor([noise]), 1.0, BOX.new_tensor([lengthscale]))
    return conditioned(history.X, history.Y, BOX, "rbf", at)


@pytest.mark.parametrize("recalibrator", ["gp", "isotonic"])
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_an_overconfident_model_is_widened(monkeypatch: pytest.MonkeyPatch, recalibrator: str, splits: str) -> None:
    X = rows(24, 3)
    noisy = objective(X) + 20 * torch.randn(24, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    place = Situation(Domain(Box(BOX)), History(X, noisy))
    process = fixed_process(place.history, lengthscale=0.5, noise=0.1)
    method = calibrated(place, splits=splits, recalibrator=recalibrator)
    monkeypatch.setattr(method.base, "fit", lambda data: process)
    proposal = ask(method, place.history, 1)
    scale = proposal.notes["sd_scale"]
    assert 1.2 < scale <= SCALE_BOUNDS[1]
    assert scale == recalibrated_scale(forecast_cdf(process, splits).numpy(), recalibrator)
    points = rows(5, 8)
    plain = method.base.predictive(process)(points)
    torch.testing.assert_close(proposal.predict(points).mean, plain.mean, rtol=1e-9, atol=0)
    torch.testing.assert_close(proposal.predict(points).sd, scale * plain.sd, rtol=1e-6, atol=0)


def test_an_underconfident_model_is_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows(24, 3)
    place = Situation(Domain(Box(BOX)), History(X, objective(X)))
    process = fixed_process(place.history, lengthscale=0.5, noise=1.0)
    method = calibrated(place)
    monkeypatch.setattr(method.base, "fit", lambda data: process)
    assert SCALE_BOUNDS[0] <= ask(method, place.history, 1).notes["sd_scale"] < 0.8


@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_refits_on_every_split(splits: str) -> None:
    place = box(n=5)
    proposal = ask(calibrated(place, splits=splits, refit=True), place.history, 1)
    assert torch.isfinite(proposal.X).all()
    assert SCALE_BOUNDS[0] <= proposal.notes["sd_scale"] <= SCALE_BOUNDS[1]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("splits", ["leave-one-out", "time-series"])
def test_few_observations(n: int, splits: str) -> None:
    place = box(n=n)
    proposal = ask(calibrated(place, splits=splits), place.history, 1)
    assert torch.isfinite(proposal.X).all()
    if splits == "time-series" and n <= 2:
        assert proposal.notes["sd_scale"] == 1.0  # nothing was forecast yet


def test_base_options_are_checked() -> None:
    with pytest.raises(PlumblineError, match="base 'ucb': unknown field 'alhpa': did you mean 'alpha'"):
        calibrated(box(), base_options={"alhpa": 0.1})


def test_base_must_have_a_model() -> None:
    with pytest.raises(PlumblineError, match=r"wraps a method with an exact Gaussian process .*, and 'random' is none"):
        calibrated(box(), base="random", base_options={})
