"""BoTorch's own loop: its model, its search and its forecasts."""

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from peers_cases import hill, on_a_hill
from situations import ask, box, rows

from plumbline.core.history import History
from plumbline.methods.base import build_method
from plumbline.methods.peers.botorch_loop import BoTorchLoopOptions, fit, log_improvement, predictions

QUICK = {"num_restarts": 2, "raw_samples": 32}


def test_the_model_is_in_the_units_of_the_problem() -> None:
    place = box(20)
    forecast = predictions(fit(place.history, place.domain.bounds))(place.history.X)
    torch.testing.assert_close(forecast.mean, place.history.Y[:, 0], atol=1.0, rtol=0.0)
    assert (forecast.sd > 0).all()


def test_forecasts_are_of_observations() -> None:
    """With noise of standard deviation 10 the forecast's is about 10, that of the function's mean much less."""
    X = rows(80, 0)
    noise = 10 * torch.randn(80, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = fit(History(X, hill(X) + noise, 80), box().domain.bounds)
    forecast = predictions(model)(X)
    assert forecast.sd.median().item() == pytest.approx(10, rel=0.3)
    assert model.posterior(X).variance.sqrt().median() < 6


def test_one_point_has_the_closed_form_and_a_batch_draws() -> None:
    place = box()
    model, best = fit(place.history, place.domain.bounds), place.history.Y.max()
    assert isinstance(log_improvement(model, best, 1), LogExpectedImprovement)
    assert isinstance(log_improvement(model, best, 2), qLogExpectedImprovement)


def test_the_proposal_maximises_its_acquisition_function() -> None:
    place = box(10)
    proposal = ask(build_method("botorch-loop", {}, place.domain), place.history, 1)
    assert proposal.acquisition is not None
    assert proposal.acquisition(proposal.X).item() >= proposal.acquisition(rows(500, 3)).max().item()
    assert set(proposal.seconds) == {"fit", "acquire"}


@pytest.mark.slow
def test_a_few_rounds_find_the_maximum() -> None:
    method, history = build_method("botorch-loop", QUICK, box().domain), on_a_hill(5)
    for seed in range(8):
        X = ask(method, history, 1, seed).X
        history = history.join(X, hill(X))
    assert history.Y[:5].max() < -0.4
    assert history.Y.max() > -0.05


@pytest.mark.slow
def test_predictions_are_from_the_history_alone() -> None:
    place = box(10)
    method = build_method("botorch-loop", QUICK, place.domain)
    predict = method.predictor(place.history)
    proposal = ask(method, place.history, 1)
    assert predict is not None
    assert proposal.predict is not None
    torch.testing.assert_close(predict(place.history.X).mean, proposal.predict(place.history.X).mean)
    nothing = History(place.history.X, torch.full_like(place.history.Y, torch.nan), 10)
    assert method.predictor(nothing) is None


@pytest.mark.slow
def test_failed_evaluations_are_left_out() -> None:
    place = box(10)
    Y = place.history.Y.clone()
    Y[4] = torch.nan
    rest = [i for i in range(10) if i != 4]
    method = build_method("botorch-loop", QUICK, place.domain)
    with_it, without = History(place.history.X, Y, 10), History(place.history.X[rest], Y[rest], 9)
    assert torch.equal(ask(method, with_it, 1).X, ask(method, without, 1).X)


def test_the_search_is_that_of_the_tutorials() -> None:
    assert BoTorchLoopOptions().model_dump() == {"num_restarts": 10, "raw_samples": 512}
