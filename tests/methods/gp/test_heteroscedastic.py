import io

import numpy as np
import pytest
import torch
from scipy.stats import norm
from situations import BOX, QUICK, Situation, ask, box, objective, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, Method, build_method
from plumbline.methods.composed import Round
from plumbline.methods.gp.heteroscedastic import pending_batch, times_observed
from plumbline.models.gp.heteroscedastic import fit_heteroscedastic
from plumbline.spaces.box import Box

NAMES = ["risk-averse-ucb", "penalised-ei"]


def noisy(X: torch.Tensor, seed: int) -> torch.Tensor:
    """Return the objective with a noise that grows from 1 to 16 along the first input."""
    eps = torch.randn(len(X), 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return objective(X) + (X[:, :1] + 6) * eps


def with_replicates() -> Situation:
    X = rows(6, 0).repeat(4, 1)
    return Situation(Domain(Box(BOX)), History(X, noisy(X, 1), len(X)))


def build(name: str, place: Situation, **options) -> Method:
    return build_method(name, {**QUICK, **options}, place.domain)


def points(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize(
    ("queries", "q", "again"),
    [
        ((), 1, None),
        ((1,), 1, (1,)),
        ((1, 1), 1, (1,)),
        ((1, 1, 1), 1, None),
        ((1, 1, 1, 2), 1, (2,)),
        ((1, 1, 1, 2, 2, 2), 1, None),
        ((1, 1, 1, 2, 2, 2, 1), 1, None),  # chosen once more of its own accord, it was observed often enough
        ((1, 2), 2, (1, 2)),
        ((1, 2, 1, 2), 2, (1, 2)),
        ((1, 2, 1, 2, 1, 2), 2, None),
        ((1, 2, 1, 2, 1, 2, 1, 3), 2, (1, 3)),  # until the least observed of the batch is done
    ],
)
def test_asks_again_until_there_are_replicates_enough(queries: tuple, q: int, again: tuple | None) -> None:
    batch = pending_batch(points(*queries), q, replicates=3)
    assert (batch if again is None else batch.flatten().tolist()) == (again if again is None else list(again))


def test_counts_rows_that_are_exactly_equal() -> None:
    assert times_observed(points(1, 2), points(1, 2, 1, 1 + 1e-15)) == 1
    assert times_observed(points(1), points(1, 2, 1)) == 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("q", [1, 3])
def test_own_queries_are_replicated_in_a_box_and_the_initial_points_are_not(name: str, q: int) -> None:
    place = box()
    method = build(name, place, replicates=2)
    history = place.history
    batches, counts = [], []
    for seed in range(5):
        proposal = ask(method, history, q, seed)
        assert proposal.predict is not None
        batches.append(proposal.X)
        counts.append(proposal.notes["replicate"])
        history = history.join(proposal.X, noisy(proposal.X, seed))
        resumed = build(name, place, replicates=2)
        file = io.BytesIO()
        torch.save(method.state_dict(), file)
        file.seek(0)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        method = resumed
    assert counts == [1, 2, 1, 2, 1]
    assert torch.equal(batches[0], batches[1])
    assert torch.equal(batches[2], batches[3])
    assert not torch.equal(batches[1], batches[2])
    seen = {tuple(row) for row in place.history.X.tolist()}
    assert not seen & {tuple(row) for batch in batches for row in batch.tolist()}


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_table_are_asked_for_once(name: str) -> None:
    place = table()
    method = build(name, place)
    history = place.history
    for seed in range(3):
        X = ask(method, history, 2, seed).X
        history = history.join(X, objective(X))
    assert len(torch.unique(history.X, dim=0)) == len(history)


@pytest.mark.parametrize("coefficient", [0.0, 1.0, 0.1])
def test_risk_averse_bound_by_hand(coefficient: float) -> None:
    place = with_replicates()
    options = {"coefficient": coefficient, "sqrt_beta": 1.5, "sqrt_beta_noise": 0.5}
    proposal = ask(build("risk-averse-ucb", place, **options), place.history, 1)
    X = rows(5, 9)
    model = fit_heteroscedastic(place.history.X, place.history.Y, BOX, build("ei", place).options.model)
    with torch.no_grad():
        latent, log_noise = model.mean.model.posterior(X), model.log_noise.model.posterior(X)
        upper = latent.mean + 1.5 * latent.variance.sqrt()
        lower = (log_noise.mean - 0.5 * log_noise.variance.sqrt()).exp()
    torch.testing.assert_close(proposal.acquisition(X), (upper - coefficient * lower).squeeze(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_penalised_improvement_by_hand(beta: float) -> None:
    place = with_replicates()
    proposal = ask(build("penalised-ei", place, beta=beta), place.history, 1)
    X = rows(5, 9)
    model = fit_heteroscedastic(place.history.X, place.history.Y, BOX, build("ei", place).options.model)
    with torch.no_grad():
        best = model.mean.model.posterior(place.history.X).mean.max().item()
        latent, noise = model.mean.model.posterior(X), model.noise_variance(X).numpy()
    mean, sd = latent.mean.flatten().numpy(), latent.variance.sqrt().flatten().numpy()
    u = (mean - best) / sd
    expected = beta * sd * (u * norm.cdf(u) + norm.pdf(u)) - (1 - beta) * np.sqrt(noise)
    np.testing.assert_allclose(proposal.acquisition(X), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_equal_points_is_worth_what_one_is(name: str) -> None:
    place = with_replicates()
    method = build(name, place, mc_samples=4096)
    model = method.fit(place.history)
    one, three = (
        method.utility(
            model, Round(place.history, place.history, place.domain.space, q, torch.Generator().manual_seed(0))
        )
        for q in (1, 3)
    )
    X = rows(4, 9).unsqueeze(-2)
    with torch.no_grad():
        torch.testing.assert_close(three(X.expand(-1, 3, -1)), one(X), rtol=0.02, atol=0.1)


def test_more_aversion_means_less_noise() -> None:
    place = with_replicates()
    bold, wary = (
        ask(
            build("risk-averse-ucb", place, coefficient=c, search={"restarts": 4, "raw_samples": 64}), place.history, 1
        ).X
        for c in (0.0, 100.0)
    )
    model = build("risk-averse-ucb", place).fit(place.history)
    with torch.no_grad():
        assert model.noise_variance_lower(wary, 2) < model.noise_variance_lower(bold, 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", [with_replicates(), box()], ids=["replicates", "none"])
def test_predictions_hold_the_noise_of_the_place(name: str, place: Situation) -> None:
    method = build(name, place)
    forecast = ask(method, place.history, 1).predict(rows(5, 9))
    model = method.fit(place.history)
    with torch.no_grad():
        latent = model.mean.model.posterior(rows(5, 9))
        variance = latent.variance.squeeze(-1) + model.noise_variance(rows(5, 9))
    torch.testing.assert_close(forecast.mean, latent.mean.squeeze(-1))
    torch.testing.assert_close(forecast.sd, variance.sqrt())
    torch.testing.assert_close(method.predictor(place.history)(rows(5, 9)).sd, forecast.sd)


@pytest.mark.parametrize("name", NAMES)
def test_one_observation_is_enough_to_go_on(name: str) -> None:
    place = box(n=1)
    assert torch.isfinite(ask(build(name, place), place.history, 1).X).all()


def test_weights_are_checked() -> None:
    with pytest.raises(PlumblineError, match=r"method 'penalised-ei': beta: .*1"):
        build("penalised-ei", box(), beta=1.5)
