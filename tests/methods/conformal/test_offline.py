"""Offline forecasts: queries from a distribution of their own, sets of any kind."""

from pathlib import Path
from typing import Any

import pytest
import torch
from situations import BOX, Situation, ask, box, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.base import Domain, Method, build_method
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem


def make(place: Situation, **options: Any) -> Method:
    return build_method("offline", options, place.domain)


@pytest.fixture(scope="module")
def shifted() -> Situation:
    """The problem with known densities, and thirty data from the first of them."""
    generator = torch.Generator().manual_seed(0)
    problem = build_problem("hartmann3-shift", {"shift": 0.2}, Context(data=Path(), generator=generator))
    domain = Domain(problem.space, problem.outcomes, problem.shift)
    assert domain.shift is not None
    X = domain.shift.source(30, generator)
    Y = problem.function(X, noise=False)[:, None]
    return Situation(domain, History(X, Y + 0.05 * torch.randn(30, 1, generator=generator, dtype=torch.float64)))


def forecast(place: Situation, q: int = 3, **options: Any) -> tuple[torch.Tensor, Any]:
    proposal = ask(make(place, **options), place.history, q)
    assert proposal.predict is not None
    return proposal.X, proposal.predict(proposal.X)


def test_credible_sets_are_the_gaussians() -> None:
    _, predictive = forecast(box(), sets="credible")
    assert type(predictive) is GaussianPredictive
    assert type(make(box(), sets="credible").predictor(box().history)(rows(2, 3))) is GaussianPredictive


def test_both_kinds_of_sets_are_of_one_model() -> None:
    X, credible = forecast(box(), sets="credible")
    same, conformal = forecast(box(), sets="conformal")
    assert torch.equal(X, same)
    torch.testing.assert_close(conformal.mean, credible.mean)
    torch.testing.assert_close(conformal.sd, credible.sd)
    y = conformal.mean + 0.2
    torch.testing.assert_close(conformal.log_prob(y), credible.log_prob(y))


def test_without_a_density_ratio_all_weigh_alike(shifted: Situation) -> None:
    _, predictive = forecast(shifted)
    assert isinstance(predictive, ConformalPredictive)
    torch.testing.assert_close(predictive.weights, torch.full((3, 1, 31), 1 / 31, dtype=torch.float64))


def test_the_oracle_knows_the_densities(shifted: Situation) -> None:
    X, predictive = forecast(shifted, density_ratio="oracle")
    shift = shifted.domain.shift
    assert shift is not None
    for x, weights in zip(X, predictive.weights[:, 0], strict=True):
        logs = shift.log_ratio(torch.cat([shifted.history.X, x[None]]))  # type: ignore[attr-defined]
        torch.testing.assert_close(weights, torch.softmax(logs, dim=-1))


def test_the_classifier_comes_near_the_oracle(shifted: Situation) -> None:
    ratio = {"ema": 1.0, "learning_rate": 3e-3, "steps": 60}
    X, oracle = forecast(shifted, q=20, density_ratio="oracle")
    proposal = ask(make(shifted, density_ratio="classifier", ratio=ratio), shifted.history, 20)
    assert proposal.predict is not None
    learned = proposal.predict(X)
    # So few data are soon known by heart: the training stops early.
    pairs = torch.stack([oracle.weights.flatten().log(), learned.weights.flatten().log()])
    assert pairs.corrcoef()[0, 1] > 0.9


def test_predictions_from_data_alone_know_no_shift(shifted: Situation) -> None:
    predictor = make(shifted, density_ratio="oracle").predictor(shifted.history)
    assert predictor is not None
    predictive = predictor(shifted.history.X[:2])
    torch.testing.assert_close(predictive.weights, torch.full((2, 1, 31), 1 / 31, dtype=torch.float64))


@pytest.mark.parametrize("place", [box(), table()], ids=["box", "table"])
def test_an_oracle_without_densities_is_an_error(place: Situation) -> None:
    with pytest.raises(PlumblineError, match="needs a problem with known densities, such as hartmann3-shift"):
        ask(make(place, density_ratio="oracle"), place.history, 1)


def test_queries_are_drawn_from_the_problems_own_distribution(shifted: Situation) -> None:
    X = ask(make(shifted, sets="credible"), shifted.history, 4_000).X
    shift = shifted.domain.shift
    assert shift is not None
    expected = shift.target(4_000, torch.Generator().manual_seed(1))
    assert (X.mean(dim=0) - expected.mean(dim=0)).abs().max() < 4.5 * (2 * 0.15**2 / 4_000) ** 0.5
    assert (X.mean(dim=0) > shifted.history.X.mean(dim=0)).all()


@pytest.mark.parametrize("sets", ["credible", "conformal"])
def test_failed_evaluations_are_left_out(sets: str) -> None:
    place = box()
    failed = torch.full((2, 1), torch.nan, dtype=torch.float64)
    method = make(place, sets=sets)
    expected = method.predictor(place.history)(rows(3, 4))
    found = method.predictor(place.history.join(rows(2, 9), failed))(rows(3, 4))
    torch.testing.assert_close(found.mean, expected.mean)
    torch.testing.assert_close(found.sd, expected.sd)


def test_conformal_sets_are_of_points_in_the_cube() -> None:
    with pytest.raises(PlumblineError, match="leave `inputs: cube`"):
        make(box(), model={"inputs": "raw"})
    assert type(make(box(), sets="credible", model={"inputs": "raw"}).predictor(box().history)(rows(2, 3)))


def test_queries_are_uniform_without_one() -> None:
    X = ask(make(box(), sets="credible"), box().history, 4_000).X
    U = (X - BOX[0]) / (BOX[1] - BOX[0])
    assert ((U >= 0) & (U <= 1)).all()
    assert (U.mean(dim=0) - 0.5).abs().max() < 4.5 * (1 / 12 / 4_000) ** 0.5


def test_a_tables_queries_are_rows_that_are_left() -> None:
    place = table(20, 6)
    X = ask(make(place, sets="credible"), place.history, 14).X
    assert {tuple(row) for row in X.tolist()} == {
        tuple(row) for row in place.domain.space.remaining(place.history).tolist()
    }


def test_relaxed_and_randomised_sets_are_passed_on() -> None:
    _, predictive = forecast(box(), tau=0.5, randomised=True)
    assert (predictive.tau, predictive.randomised) == (0.5, True)
    covered = predictive.covers(predictive.mean, 0.3)
    assert ((covered > 0) & (covered < 1)).all()
    alone = make(box(), tau=0.5, randomised=True).predictor(box().history)
    assert alone is not None
    assert (alone(rows(2, 3)).tau, alone(rows(2, 3)).randomised) == (0.5, True)  # type: ignore[attr-defined]


@pytest.mark.parametrize("extra", [{"tau": 0.1}, {"randomised": True}, {"density_ratio": "classifier"}])
def test_credible_sets_have_no_conformal_options(extra: dict[str, Any]) -> None:
    with pytest.raises(PlumblineError, match="are for `sets: conformal`"):
        make(box(), sets="credible", **extra)


@pytest.mark.parametrize(
    ("wrong", "field"), [({"tau": -1.0}, "tau"), ({"draws": 0}, "draws"), ({"sets": "wide"}, "sets")]
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(PlumblineError, match=field):
        make(box(), **wrong)
