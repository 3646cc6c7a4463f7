from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import norm
from situations import LINE, QUICK, Situation, ask, box, on_a_line, recommend, stream_of_its_own, table

from plumbline.acquisition.confidence_schedule import ConfidenceSchedule
from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.methods.composed import Round
from plumbline.methods.gp.single_outcome import improvement_threshold
from plumbline.models.gp.fit import KNOWN_NOISE_FLOOR
from plumbline.models.gp.process import GP
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table
from plumbline.spaces.with_gradient import Differentiated

EVERY = ["ei", "logei", "plug-in-ei", "pi", "ucb", "nei", "ts", "kg", "kg-sgd", "mes", "jes", "pes"]
"""Methods of one exact process that are no portfolio."""


@pytest.mark.parametrize(
    ("options", "n", "alpha"),
    [
        ({}, 9, 0.05),
        ({"alpha": 0.2}, 9, 0.2),
        ({"alpha": "1/sqrt(n)"}, 16, 0.25),
        ({"alpha": "1/sqrt(n)"}, 10_000, 0.01),
        ({"alpha": "max(.05, 1/sqrt(n))"}, 10_000, 0.05),
    ],
)
def test_sqrt_beta_is_the_upper_end_of_the_interval(options: dict, n: int, alpha: float) -> None:
    method = build_method("ucb", options, Domain(Box(LINE)))
    assert method.sqrt_beta(n) == pytest.approx(norm.ppf(1 - alpha / 2))


def test_given_sqrt_beta_wins() -> None:
    method = build_method("ucb", {"alpha": 0.3, "sqrt_beta": 1.25}, Domain(Box(LINE)))
    assert method.sqrt_beta(5) == 1.25


@pytest.mark.parametrize("options", [{"alpha": 0.2}, {"sqrt_beta": 3.0}, {"alpha": "1/sqrt(n)"}])
def test_ucb_is_mean_plus_deviations_of_the_latent_function(options: dict) -> None:
    place = on_a_line()
    method = build_method("ucb", {**QUICK, **options}, place.domain)
    proposal = ask(method, place.history, 1)
    model = method.fit(place.history).model
    with torch.no_grad():
        latent = model.posterior(place.history.X)
        expected = latent.mean + method.sqrt_beta(5) * latent.variance.sqrt()
    torch.testing.assert_close(proposal.acquisition(place.history.X), expected.squeeze(-1), rtol=1e-5, atol=1e-5)


def test_the_theoretical_schedule_counts_what_was_asked_for() -> None:
    place = on_a_line()
    options = {**QUICK, "sqrt_beta": 2.0, "schedule": {"delta": 0.2}}
    method = build_method("ucb", options, place.domain)
    schedule = ConfidenceSchedule(delta=0.2)
    assert method.sqrt_beta(5, 3) == schedule.sqrt_beta(4, 1)
    history = History(place.history.X, place.history.Y, initial=2)
    mean, variance = method.fit(history).posterior_moments(history.X, joint=False)
    found = ask(method, history, 1).acquisition(history.X)
    torch.testing.assert_close(found, mean + schedule.sqrt_beta(4, 1) * variance.sqrt(), rtol=1e-5, atol=1e-5)


def test_a_tables_schedule_counts_its_rows() -> None:
    place = table(size=20)
    assert build_method("ucb", {"schedule": {}}, place.domain).sqrt_beta(6, 1) == ConfidenceSchedule().sqrt_beta(
        2, 2, 20
    )


@pytest.mark.parametrize("name", EVERY)
def test_the_point_of_greatest_mean_is_recommended_anywhere_in_a_box(name: str) -> None:
    place = on_a_line()
    method = build_method(name, {**QUICK}, place.domain)
    X = recommend(method, place.history)
    grid = torch.linspace(0, 1, 1001, dtype=torch.float64).unsqueeze(-1)
    (of_grid, _), (found, _) = (
        method.fit(place.history).posterior_moments(points, joint=False) for points in (grid, X)
    )
    assert float(found) >= float(of_grid.max()) - 1e-6
    assert not (place.history.X == X).any()


def test_a_failed_evaluation_is_never_recommended() -> None:
    X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    Y = torch.tensor([[1.0], [torch.nan], [2.0]], dtype=torch.float64)
    method = build_method("random", {}, Domain(Box(LINE)))
    assert method.recommend(History(X, Y), torch.Generator()).tolist() == [[0.9]]
    with pytest.raises(PlumblineError, match="nothing to recommend"):
        method.recommend(History(X, torch.full_like(Y, torch.nan)), torch.Generator())


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_the_plug_in_incumbent_is_the_greatest_mean_at_observed_points(jitter: float) -> None:
    X = torch.linspace(0, 1, 30, dtype=torch.float64).unsqueeze(-1)
    noise = torch.randn(30, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    place = Situation(Domain(Box(LINE)), History(X, torch.sin(6 * X) + 0.5 * noise))
    plug_in, plain = (build_method(name, {**QUICK, "jitter": jitter}, place.domain) for name in ("plug-in-ei", "ei"))
    process = plug_in.fit(place.history)
    mean, _ = process.posterior_moments(X, joint=False)
    spread = place.history.Y.std()
    assert plug_in.threshold(process, place.history).item() == pytest.approx((mean.max() + jitter * spread).item())
    assert plug_in.threshold(process, place.history) < plain.threshold(process, place.history)


@pytest.mark.parametrize("name", ["ei", "logei", "pi", "ucb"])
def test_finds_the_maximiser_of_the_utility_written_out(name: str) -> None:
    place = on_a_line()
    method = build_method(name, {"search": {"restarts": 4, "raw_samples": 64}}, place.domain)
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64).unsqueeze(-1)
    model = method.fit(place.history).model
    with torch.no_grad():
        posterior = model.posterior(grid.unsqueeze(-2))  # each by itself: no covariance of all with all
    mean, sd = posterior.mean.flatten().numpy(), posterior.variance.sqrt().flatten().numpy()
    u = (mean - place.history.Y.max().item()) / sd
    utility = {
        "ei": sd * (u * norm.cdf(u) + norm.pdf(u)),
        "logei": sd * (u * norm.cdf(u) + norm.pdf(u)),
        "pi": u,
        "ucb": mean + norm.ppf(0.975) * sd,
    }[name]
    assert ask(method, place.history, 1).X.item() == pytest.approx(grid[int(np.argmax(utility))].item(), abs=2e-3)


@pytest.mark.parametrize("jitter", [0.0, 0.01, 0.5])
def test_jitter_is_in_standard_deviations_of_the_observations(jitter: float) -> None:
    place = on_a_line()
    y = place.history.Y.flatten().numpy()
    best = y.max() + jitter * y.std(ddof=1)
    assert improvement_threshold(place.history, jitter).item() == pytest.approx(best)
    method = build_method("ei", {**QUICK, "jitter": jitter}, place.domain)
    X = torch.tensor([[0.1], [0.2], [0.62]], dtype=torch.float64)
    model = method.fit(place.history).model
    with torch.no_grad():
        posterior = model.posterior(X)
    mean, sd = posterior.mean.flatten().numpy(), posterior.variance.sqrt().flatten().numpy()
    u = (mean - best) / sd
    found = ask(method, place.history, 1).acquisition(X)
    np.testing.assert_allclose(found, sd * (u * norm.cdf(u) + norm.pdf(u)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("name", ["ei", "logei", "pi", "ucb", "nei"])
def test_a_search_is_told_which_utilities_may_be_zero_in_much_of_a_space(name: str, q: int) -> None:
    place = on_a_line()
    method = build_method(name, QUICK, place.domain)
    round = Round(place.history, place.history, place.domain.space, q, torch.Generator().manual_seed(0))
    utility = method.utility(method.fit(place.history), round)
    assert isinstance(utility, Differentiated)
    assert utility.nonnegative == (name == "ei" or (name == "pi" and q > 1))


@pytest.mark.parametrize("name", EVERY)
def test_one_observation_is_enough_to_go_on(name: str) -> None:
    place = box(n=1)
    X = ask(build_method(name, QUICK, place.domain), place.history, 1).X
    assert torch.isfinite(X).all()


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("place", [box(), table()], ids=["box", "table"])
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_constant_objective_is_no_end(name: str, place: Situation, q: int) -> None:
    flat = History(place.history.X, torch.full_like(place.history.Y, 7.0), place.history.initial)
    X = ask(build_method(name, QUICK, place.domain), flat, q).X
    assert X.shape == (q, 2)
    assert torch.isfinite(X).all()
    low, high = place.domain.bounds
    assert ((low <= X) & (high >= X)).all()
    if isinstance(place.domain.space, Table):
        left = {tuple(row) for row in place.domain.space.remaining(flat).tolist()}
        assert len({tuple(row) for row in X.tolist()} & left) == q


def test_prediction_is_of_observations_not_of_the_latent_function() -> None:
    place = on_a_line()
    method = build_method("ucb", QUICK, place.domain)
    model = method.fit(place.history).model
    with torch.no_grad():
        posterior = model.posterior(place.history.X, observation_noise=True)
    predictive = ask(method, place.history, 1).predict(place.history.X)
    torch.testing.assert_close(predictive.sd, posterior.variance.sqrt().squeeze(-1))
    torch.testing.assert_close(predictive.mean, posterior.mean.squeeze(-1))


def test_nested_option_errors_say_where() -> None:
    with pytest.raises(PlumblineError, match=r"method 'ei': model\.kernel: .*matern52"):
        build_method("ei", {"model": {"kernel": "cubic"}}, Domain(Box(LINE)))


def smooth(n: int = 12, noise_free: bool = True) -> Situation:
    """Observations of a parabola on a line, whose maximum is at 0.3."""
    X = LINE[0] + (LINE[1] - LINE[0]) * torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1)
    share = (X - LINE[0]) / (LINE[1] - LINE[0])
    return Situation(Domain(Box(LINE), noise_free=noise_free), History(X, -(share - 0.3).square(), n))


@pytest.mark.parametrize("name", ["ei", "logei", "plug-in-ei", "pi", "ucb", "nei"])
@pytest.mark.parametrize(("noise", "noise_free"), [("fitted", True), ("declared", True), ("declared", False)])
def test_noise_is_known_where_the_problem_declares_none_and_the_method_is_to_believe_it(
    name: str, noise: str, noise_free: bool
) -> None:
    place = smooth(noise_free=noise_free)
    method = build_method(name, {"model": {"noise": noise}}, place.domain)
    process = method.fit(place.history)
    (again,) = method.fit_each(place.history.X.unsqueeze(0), place.history.Y.unsqueeze(0))
    known = noise == "declared" and noise_free
    assert (float(process.noise) == KNOWN_NOISE_FLOOR) == known
    assert torch.isfinite(method.predictive(process)(place.history.X).sd).all()
    assert torch.equal(again.at.noise, process.at.noise)


def test_a_fitted_output_scale_follows_the_data() -> None:
    place = smooth()
    fixed, fitted = (
        build_method("logei", {"model": {"outputscale": scale}}, place.domain).fit(place.history).at.outputscale
        for scale in ("unit", "fitted")
    )
    assert fixed == 1.0
    assert fitted > 1.5  # a parabola rises beyond its data
    with pytest.raises(PlumblineError, match="outputscale"):
        build_method("logei", {"model": {"priors": "conformal", "outputscale": "fitted"}}, place.domain)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("name", ["ei", "logei", "plug-in-ei", "pi", "ucb", "nei"])
def test_a_search_around_the_incumbent_looks_around_the_point_of_greatest_mean(name: str, q: int) -> None:
    place = smooth()
    method = build_method(name, {**QUICK, "search": {**QUICK["search"], "around_incumbent": {}}}, place.domain)
    surrogate = method.fit(place.history)
    around = method.neighbourhood(surrogate, method.start_round(place.history, q, torch.Generator().manual_seed(0)))
    mean, _ = surrogate.posterior_moments(place.history.X, joint=False)
    assert torch.equal(around.incumbent, place.history.X[mean.argmax()])
    assert ask(method, place.history, q).X.shape == (q, 1)
    plain = build_method(name, QUICK, place.domain)
    assert plain.neighbourhood(surrogate, plain.start_round(place.history, q, torch.Generator().manual_seed(0))) is None


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("name", ["ei", "logei", "plug-in-ei", "pi", "ucb", "nei"])
def test_a_search_around_the_incumbent_is_the_same_for_the_same_seed_and_null_is_no_such_search(
    name: str, q: int
) -> None:
    place = smooth()

    def ends(**search: object) -> torch.Tensor:
        method = build_method(name, {**QUICK, "search": {**QUICK["search"], "raw_samples": 16, **search}}, place.domain)
        return ask(method, place.history, q).ends

    assert torch.equal(ends(around_incumbent={"share": 0.5}), ends(around_incumbent={"share": 0.5}))
    assert torch.equal(ends(around_incumbent=None), ends())
    assert not torch.equal(ends(around_incumbent={"share": 0.5}), ends())


def rough(seed: int) -> Situation:
    """A random function of 2, 4 or 6 inputs at 40 points, half of them close to the best of the others."""
    generator, dim = torch.Generator().manual_seed(seed), (2, 4, 6)[seed % 3]

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    frequencies, phases, amplitudes = 2 * drawn(dim, 200), 10 * drawn(200), drawn(200) / 10

    def function(X: torch.Tensor) -> torch.Tensor:
        return (X @ frequencies + phases).cos() @ amplitudes.unsqueeze(-1)

    far = torch.rand(20, dim, generator=generator, dtype=torch.float64)
    near = (far[function(far).argmax()] + 0.02 * drawn(20, dim)).clamp(0, 1)
    X = torch.cat([far, near])
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, dim)
    return Situation(Domain(Box(bounds), noise_free=True), History(X, function(X), 40))


ROUGH_MODEL = {"noise": "declared", "outputscale": "fitted"}


@cache
def rough_and_fitted(seed: int) -> tuple[Situation, GP]:
    """A rough function and its surrogate, which all methods of one exact process share."""
    place = rough(seed)
    return place, build_method("ei", {"model": ROUGH_MODEL}, place.domain).fit(place.history)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ei", "logei", "plug-in-ei", "pi", "ucb", "nei"])
def test_a_search_around_the_incumbent_does_no_harm(name: str) -> None:
    """On 30 surrogates; docs/methods/acquisition-functions.md has the counts.

    A difference counts from a thousandth on: of a value, and of 1 where values are logarithms.
    """
    gains = []
    for seed in range(30):
        place, surrogate = rough_and_fitted(seed)
        plain, around = (
            build_method(name, {"model": ROUGH_MODEL, "search": {"around_incumbent": one}}, place.domain)
            for one in (None, {})
        )
        round = plain.start_round(place.history, 1, torch.Generator().manual_seed(seed))
        utility = plain.utility(surrogate, round)
        with stream_of_its_own(torch.Generator().manual_seed(seed)):
            found = [method.search(utility, surrogate, round).X.unsqueeze(0) for method in (plain, around)]
        with torch.no_grad():
            before, after = (float(utility(X)) for X in found)
        gains.append((after - before) / (1.0 if name in ("logei", "pi", "nei") else max(abs(before), abs(after))))
    better, worse = (sum(sign * gain > 1e-3 for gain in gains) for sign in (1, -1))
    assert worse <= min(1, better)


@pytest.mark.parametrize("name", ["ts", "kg", "mes", "cucb"])
def test_other_searches_have_no_such_option(name: str) -> None:
    with pytest.raises(PlumblineError, match="around_incumbent"):
        build_method(name, {"search": {"around_incumbent": {}}}, Domain(Box(LINE)))
