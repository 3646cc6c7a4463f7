"""Methods for several outcomes: one model an outcome, joint forecasts, hypervolume."""

import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from exact_gpytorch import gpytorch_model
from situations import BOX, QUICK, QUICK_CONFORMAL, REF_POINT, Situation, ask, box, objective, outcomes_of, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.forecasts.predictive import JointGaussianPredictive
from plumbline.methods.base import Domain, Method, build_method
from plumbline.methods.conformal.density_ratio import no_shift
from plumbline.methods.conformal.method import ConformalMethod, conformal_predictor, standardised
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.methods.gp.single_outcome import gaussian_predictor
from plumbline.models.gp.fit import ModelOptions, fit_outcomes
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table

OPTIONS = {"ehvi": QUICK, "nehvi": QUICK, "cehvi": QUICK_CONFORMAL, "cnehvi": {**QUICK_CONFORMAL, "fronts": 4}}
CONFORMAL = ["cehvi", "cnehvi"]
PLACES = {"box": box(10, outcomes=2), "table": table(20, 10, outcomes=2)}


def make(name: str, place: Situation) -> Method:
    return build_method(name, OPTIONS[name], place.domain)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", OPTIONS)
def test_two_outcomes_are_asked_for_and_forecast_together(name: str, where: str) -> None:
    """A batch: single points are asked for in the contract of all methods."""
    place, q = PLACES[where], 3
    proposal = ask(make(name, place), place.history, q)
    assert proposal.X.shape == (q, 2)
    assert ((BOX[0] <= proposal.X) & (BOX[1] >= proposal.X)).all()
    assert proposal.predict is not None
    forecast = proposal.predict(proposal.X)
    assert isinstance(forecast, ConformalPredictive if name in CONFORMAL else JointGaussianPredictive)
    y = objective(proposal.X, 2)
    for result in (forecast.log_prob(y), forecast.covers(y, 0.2), forecast.width(0.2)):
        assert result.shape == (q,)


@pytest.mark.parametrize("name", OPTIONS)
def test_without_a_reference_point_the_error_says_so(name: str) -> None:
    place = Situation(Domain(Box(BOX)), PLACES["box"].history)
    with pytest.raises(PlumblineError, match="is for several objectives; this problem has one objective") as caught:
        make(name, place)
    assert {"cei", "cnei"} <= set(str(caught.value).replace(",", "").split())


@pytest.mark.parametrize("name", OPTIONS)
def test_each_outcome_has_a_model_of_its_own(name: str) -> None:
    """Forecasts of the two outcomes are those of two methods of one outcome."""
    place = PLACES["box"]
    X = rows(4, 9)
    predictor = make(name, place).predictor(place.history)
    assert predictor is not None
    forecast = predictor(X)
    for i, process in enumerate(fit_outcomes(place.history, BOX, getattr(make(name, place).options, "model"))):  # noqa: B009
        with torch.no_grad():
            alone = gpytorch_model(process).posterior(X, observation_noise=True)
        torch.testing.assert_close(forecast.mean[:, i], alone.mean.squeeze(-1))
        torch.testing.assert_close(forecast.sd[:, i], alone.variance.sqrt().squeeze(-1))


@pytest.mark.parametrize("name", CONFORMAL)
def test_predictions_from_data_alone_know_no_shift(name: str) -> None:
    predictor = make(name, PLACES["box"]).predictor(PLACES["box"].history)
    assert predictor is not None
    forecast = predictor(rows(3, 9))
    assert isinstance(forecast, ConformalPredictive)
    torch.testing.assert_close(forecast.weights, torch.full((3, 1, 11), 1 / 11, dtype=torch.float64))


def volume(Y: torch.Tensor, ref_point: torch.Tensor) -> float:
    return Hypervolume(ref_point).compute(Y[is_non_dominated(Y)])


def test_the_utility_is_the_volume_gained_in_standard_units() -> None:
    place = PLACES["box"]
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    method = make("cehvi", place)
    assert isinstance(method, ConformalMethod)
    utility = method.integrand(models, place.history, 0.3, torch.Generator())
    Y = objective(rows(6, 11), 2) + torch.tensor([15.0, 0.2]).double()
    f = standardised(models, Y)[None, None]
    gained = volume(torch.cat([place.history.Y, Y]), REF_POINT) - volume(place.history.Y, REF_POINT)
    assert gained > 0
    scale = place.history.Y.std(dim=0).prod().item()
    assert utility.value(f, f).item() == pytest.approx(gained / scale, rel=1e-6)


def test_noisy_utilities_are_over_the_front_of_their_own_draw() -> None:
    place = PLACES["box"]
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    method = make("cnehvi", place)
    assert isinstance(method, ConformalMethod)
    utility = method.integrand(models, place.history, 0.3, torch.Generator().manual_seed(0))
    assert utility.baseline is not None
    values = utility.baseline.values
    assert values.shape == (16, 10, 2)
    ref_point = standardised(models, REF_POINT[None])[0]
    f = torch.tensor([[1.0, 1.0], [0.2, 2.0]]).double().expand(1, 16, 2, 2)
    found = utility.value(f, f)[0]
    for k in range(16):
        expected = volume(torch.cat([values[k], f[0, k]]), ref_point) - volume(values[k], ref_point)
        assert found[k].item() == pytest.approx(expected, abs=1e-8)
    assert len(set(found.tolist())) > 1


@pytest.mark.parametrize("name", OPTIONS)
def test_points_that_are_dominated_for_certain_are_worth_less(name: str) -> None:
    """In a table of one good row and one bad, the good one is chosen."""
    X = rows(200, 4)
    Y = objective(X, 2)
    height = ((Y - Y.mean(dim=0)) / Y.std(dim=0)).amin(dim=-1)
    good, bad = X[height.argmax()], X[(Y - REF_POINT).amin(dim=-1).argmin()]
    place = Situation(Domain(Table(BOX, torch.stack([bad, good])), outcomes_of(2)), PLACES["box"].history)
    assert torch.equal(ask(make(name, place), place.history, 1).X, good[None])


@pytest.mark.parametrize("name", ["ehvi", "nehvi", "cehvi"])
def test_sets_of_single_outcomes_are_those_of_methods_of_one_outcome(name: str) -> None:
    place, X = PLACES["box"], rows(40, 9)
    method = build_method(name, {**OPTIONS[name], "sets": "marginal"}, place.domain)
    predictor = method.predictor(place.history)
    assert predictor is not None
    forecast, y = predictor(X), objective(X, 2)
    models = fit_outcomes(place.history, BOX, getattr(method.options, "model"))  # noqa: B009
    if name in CONFORMAL:
        alone = [conformal_predictor([model], no_shift)(X) for model in models]
    else:
        alone = [gaussian_predictor(model)(X) for model in models]
    covered = torch.stack([one.covers(y[:, i], 0.3) for i, one in enumerate(alone)])
    torch.testing.assert_close(forecast.covers(y, 0.3), covered.mean(dim=0))
    assert {0.0, 0.5, 1.0} >= set(forecast.covers(y, 0.3).tolist())
    # An empty set leaves nothing, even of the whole line.
    volume = alone[0].width(0.3) * alone[1].width(0.3)
    torch.testing.assert_close(forecast.width(0.3), volume.nan_to_num(nan=0.0, posinf=torch.inf))
    torch.testing.assert_close(forecast.mean, torch.stack([one.mean for one in alone], dim=-1))
    joint = make(name, place).predictor(place.history)
    assert joint is not None
    torch.testing.assert_close(forecast.log_prob(y), joint(X).log_prob(y))


@pytest.mark.parametrize("name", ["ehvi", "cehvi"])
def test_how_sets_are_judged_changes_no_query(name: str) -> None:
    place = PLACES["box"]
    marginal = build_method(name, {**OPTIONS[name], "sets": "marginal"}, place.domain)
    assert torch.equal(ask(make(name, place), place.history, 1).X, ask(marginal, place.history, 1).X)
