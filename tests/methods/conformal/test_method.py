"""Conformal methods: what they note and warn of, and how little a new one takes."""

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from situations import BOX, QUICK_CONFORMAL, Situation, ask, box, objective, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, Method, build_method
from plumbline.methods.conformal.acquisition import ConformalAcquisition, Integrand
from plumbline.methods.conformal.density_ratio import no_shift
from plumbline.methods.conformal.expectation import Improvement
from plumbline.methods.conformal.hypervolume import ConformalHypervolumeOptions, NoisyHypervolumeOptions
from plumbline.methods.conformal.method import (
    ConformalIncumbentOptions,
    ConformalMethod,
    ConformalOptions,
    FewEffectiveDataWarning,
    NoiseAtBoundWarning,
    SeparatedClassesWarning,
    UnboundedSetWarning,
    standardised,
    warn_of_noise_at_bound,
)
from plumbline.methods.conformal.search import LangevinOptions, WorthlessRowsWarning
from plumbline.methods.conformal.sets import ConformalPredictive
from plumbline.models.gp.fit import ModelOptions, fit_outcomes, fit_process
from plumbline.spaces.box import Box
from plumbline.spaces.table import Table

NAMES = ["cei", "cnei", "cucb"]


def make(name: str, place: Situation, **options: Any) -> Method:
    return build_method(name, {**QUICK_CONFORMAL, **options}, place.domain)


def noisy(n: int, domain: Domain | None = None, width: float = 1.0) -> Situation:
    """A situation whose fitted noise is at no bound; data in the lowest `width` of the box."""
    X = BOX[0] + width * (rows(n, 0) - BOX[0])
    eps = torch.randn(n, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return Situation(domain or Domain(Box(BOX)), History(X, objective(X) + 3 * eps))


def warned(method: Method, place: Situation, q: int = 1) -> tuple[set[type[Warning]], dict[str, float]]:
    """The kinds of warnings, and the notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = ask(method, place.history, q).notes
    return {warning.category for warning in caught}, notes


@pytest.mark.parametrize("name", NAMES)
def test_a_calm_round_warns_of_nothing(name: str) -> None:
    place = noisy(30)
    kinds, notes = warned(make(name, place), place)
    assert not kinds & {UnboundedSetWarning, SeparatedClassesWarning, FewEffectiveDataWarning, NoiseAtBoundWarning}
    assert set(notes) == {"alpha", "effective_sample_size", "own_weight", "unbounded_sets", "clipped_ratios"}
    assert notes["unbounded_sets"] == notes["clipped_ratios"] == 0.0
    assert 1 / 62 < notes["own_weight"] < 1 / 15
    assert 20 < notes["effective_sample_size"] <= 31


def test_a_level_below_the_querys_own_weight_is_warned_of() -> None:
    place = noisy(30)
    kinds, notes = warned(make("cucb", place, alpha=0.01), place)
    assert UnboundedSetWarning in kinds
    assert FewEffectiveDataWarning not in kinds
    assert notes["unbounded_sets"] == 1.0
    assert notes["own_weight"] > notes["alpha"] == 0.01
    forecast = ask(make("cucb", place, alpha=0.01), place.history, 1)
    assert forecast.predict is not None
    assert torch.isinf(forecast.predict(forecast.X).width(0.01)).all()


def test_classes_that_are_told_apart_are_warned_of() -> None:
    place = noisy(30)
    ratio = {"hidden": 8, "ema": 1.0, "learning_rate": 0.1, "clip": 1.01}
    kinds, notes = warned(make("cei", place, ratio=ratio), place)
    assert SeparatedClassesWarning in kinds
    assert 0 < notes["clipped_ratios"] <= 1


def test_weights_on_one_datum_are_warned_of() -> None:
    """Data in a corner, queries from a table elsewhere: the query is all that counts."""
    elsewhere = BOX[1] - 0.1 * (BOX[1] - BOX[0]) * torch.rand(10, 2, generator=torch.Generator().manual_seed(0))
    place = noisy(12, Domain(Table(BOX, elsewhere.double())), width=0.05)
    ratio = {"hidden": 16, "ema": 1.0, "learning_rate": 0.05, "steps": 300, "clip": 1e6}
    kinds, notes = warned(make("cucb", place, ratio=ratio), place)
    assert {FewEffectiveDataWarning, UnboundedSetWarning} <= kinds
    assert notes["effective_sample_size"] < 2
    assert notes["own_weight"] > 0.9


def test_noise_at_its_bound_is_warned_of() -> None:
    place = box(12)  # observed without noise
    kinds, _ = warned(make("cucb", place), place)
    assert NoiseAtBoundWarning in kinds


@pytest.mark.parametrize(("noise", "at_bound"), [(5e-4, True), (5.5e-4, False), (0.1, False), (0.4995, True)])
def test_noise_is_at_its_bound_within_a_hundredth(noise: float, at_bound: bool) -> None:
    place = noisy(8)
    options = ModelOptions(priors="conformal")
    fitted = fit_process(place.history.X, place.history.Y, BOX, options)
    process = replace(fitted, at=fitted.at._replace(noise=BOX.new_tensor([noise])))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_noise_at_bound([process], options)
    assert [warning.category for warning in caught] == [NoiseAtBoundWarning] * at_bound


@pytest.mark.parametrize(
    ("alpha", "n", "expected"),
    [("max(.05, 1/sqrt(n))", 16, 0.25), ("1/sqrt(n)", 25, 0.2), (0.3, 16, 0.3), ("max(.05, 1/sqrt(n))", 3, 0.5)],
)
def test_the_level_follows_its_schedule(alpha: str | float, n: int, expected: float) -> None:
    place = noisy(n)
    assert ask(make("cucb", place, alpha=alpha), place.history, 1).notes["alpha"] == pytest.approx(expected)


def test_defaults_are_the_papers() -> None:
    options = ConformalOptions()
    assert options.alpha == "max(.05, 1/sqrt(n))"
    assert options.model == ModelOptions(kernel="matern52", priors="conformal")
    assert (options.posterior.candidates, options.posterior.tau) == (256, 1e-2)
    search = options.search
    assert (search.chains, search.steps, search.learning_rate, search.temperature) == (5, 100, 1e-3, 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_from_data_alone_know_no_shift(name: str) -> None:
    place = noisy(9)
    predictor = make(name, place).predictor(place.history)
    assert predictor is not None
    forecast = predictor(rows(4, 7))
    assert isinstance(forecast, ConformalPredictive)
    torch.testing.assert_close(forecast.weights, torch.full((4, 1, 10), 0.1, dtype=torch.float64))


@pytest.mark.parametrize("place", [noisy(30), table(30, 20)], ids=["box", "table"])
def test_forecasts_of_queries_know_the_shift(place: Situation) -> None:
    ratio = {"hidden": 16, "ema": 1.0, "learning_rate": 0.01, "steps": 60}
    proposal = ask(make("cucb", place, ratio=ratio), place.history, 1)
    assert proposal.predict is not None
    forecast = proposal.predict(proposal.X)
    assert isinstance(forecast, ConformalPredictive)
    assert forecast.weights.std() > 1e-4
    assert forecast.weights[0, 0, -1].item() == pytest.approx(proposal.notes["own_weight"])


def far_table(n: int) -> Situation:
    """Data in a corner, rows elsewhere."""
    elsewhere = BOX[1] - 0.1 * (BOX[1] - BOX[0]) * torch.rand(n, 2, generator=torch.Generator().manual_seed(0))
    return noisy(12, Domain(Table(BOX, elsewhere.double())), width=0.05)


MASKED = {
    "ratio": {"hidden": 16, "ema": 1.0, "learning_rate": 0.05, "steps": 300, "clip": 1e6},
    "posterior": {"candidates": 16, "tau": 1e-6},
}


def test_rows_that_are_all_masked_are_told_apart_by_what_they_would_be_worth() -> None:
    place = far_table(10)
    kinds, _ = warned(make("cucb", place, **MASKED), place)
    assert WorthlessRowsWarning in kinds
    proposal = ask(make("cucb", place, **MASKED), place.history, 1)
    assert proposal.acquisition is not None
    assert isinstance(place.domain.space, Table)
    worth = proposal.acquisition(place.domain.space.rows)
    assert len(worth.unique()) == 10
    assert torch.equal(proposal.X[0], place.domain.space.rows[worth.argmax()])


@pytest.mark.slow
def test_by_chance_any_of_the_masked_rows_comes_first() -> None:
    place = far_table(5)
    method = make("cucb", place, **MASKED, worthless="chance")
    asked = {tuple(method.ask(place.history, 1, torch.Generator().manual_seed(i)).X[0].tolist()) for i in range(12)}
    assert len(asked) > 2
    proposal = ask(method, place.history, 1)
    assert proposal.acquisition is not None
    assert proposal.acquisition(proposal.X).item() == 0.0


def test_where_rows_differ_in_worth_their_order_does_not_matter() -> None:
    place = table(30, 20)
    assert isinstance(place.domain.space, Table)
    turned = replace(place.domain, space=Table(BOX, place.domain.space.rows.flip(0)))
    first = ask(make("cucb", place), place.history, 1)
    other = ask(make("cucb", Situation(turned, place.history)), place.history, 1)
    assert first.X.shape == other.X.shape == (1, 2)
    assert first.acquisition is not None
    worth = first.acquisition(place.domain.space.rows)
    assert torch.equal(first.X[0], place.domain.space.rows[worth.argmax()])


def test_randomised_sets_cover_by_the_probability_of_their_coin() -> None:
    place = noisy(12)
    plain, randomised = (
        make("cucb", place, randomised=randomised).predictor(place.history) for randomised in (False, True)
    )
    assert plain is not None
    assert randomised is not None
    X = rows(200, 5)
    y = objective(X).squeeze(-1)
    assert set(plain(X).covers(y, 0.3).tolist()) <= {0.0, 1.0}
    assert (randomised(X).covers(y, 0.3) <= plain(X).covers(y, 0.3)).all()
    assert ((randomised(X).covers(y, 0.3) > 0) & (randomised(X).covers(y, 0.3) < 1)).any()


def test_a_stale_model_knows_the_initial_design_alone() -> None:
    place = noisy(20)
    begun = History(place.history.X, place.history.Y, 8)
    first = History(place.history.X[:8], place.history.Y[:8], 8)
    stale = make("cei", place, stale=True, ratio={**QUICK_CONFORMAL["ratio"], "ema": 0.0})
    now, then = ask(stale, begun, 1), ask(stale, first, 1)
    assert torch.equal(now.X, then.X)
    assert now.notes == then.notes
    assert now.notes["alpha"] == pytest.approx(8**-0.5)
    assert now.notes["effective_sample_size"] == pytest.approx(9.0)
    assert not torch.equal(now.X, ask(make("cei", place), begun, 1).X)


def test_an_incumbent_of_a_share_is_in_units_of_that_share() -> None:
    place = noisy(12)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    method = make("cei", place, incumbent_share=0.75)
    assert isinstance(method, ConformalMethod)
    bests = []
    for seed in range(6):
        utility = method.integrand(models, place.history, 0.3, torch.Generator().manual_seed(seed))
        assert isinstance(utility.value, Improvement)
        some = place.history.Y[torch.randperm(12, generator=torch.Generator().manual_seed(seed))[:9]]
        bests.append(utility.value.best.item())
        assert bests[-1] == pytest.approx(((some.max() - some.mean()) / some.std()).item())
    assert len(set(bests)) > 1


def test_a_noisy_baseline_of_a_share_is_the_best_of_that_share_in_each_draw() -> None:
    place = noisy(12)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    every, some = (make("cnei", place, incumbent_share=share) for share in (1.0, 0.25))
    assert isinstance(every, ConformalMethod)
    assert isinstance(some, ConformalMethod)
    whole, part = (one.integrand(models, place.history, 0.3, torch.Generator().manual_seed(0)) for one in (every, some))
    assert isinstance(whole.value, Improvement)
    assert isinstance(part.value, Improvement)
    assert whole.baseline is not None
    assert (part.value.best <= whole.value.best).all()
    assert (part.value.best < whole.value.best).any()
    assert torch.isin(part.value.best, whole.baseline.values).all()


@pytest.mark.parametrize(
    ("share", "n", "rows"),
    [
        (0.75, 9, 6),
        (0.75, 10, 7),
        (0.75, 12, 9),
        (0.75, 3, 2),
        (0.7, 10, 7),
        (0.9, 10, 9),
        (0.25, 4, None),
        (1.0, 9, None),
    ],
)
def test_a_share_leaves_out_as_many_as_scikit_learns_split(share: float, n: int, rows: int | None) -> None:
    """`ceil(test_size n)` rows are left out; 1 - .7 and 1 - .9 are no exact tenths."""
    subset = ConformalIncumbentOptions(incumbent_share=share).subset(n, torch.Generator().manual_seed(0))
    assert (None if subset is None else len(subset.unique())) == rows


def test_incumbents_are_the_rows_of_the_best_of_each_draw() -> None:
    place = noisy(12)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    for share in (1.0, 0.75):
        method = make("cnei", place, incumbent_share=share)
        assert isinstance(method, ConformalMethod)
        utility = method.integrand(models, place.history, 0.3, torch.Generator().manual_seed(0))
        assert isinstance(utility.value, Improvement)
        assert utility.baseline is not None
        assert utility.baseline.incumbents is not None
        values = utility.baseline.values[..., 0]
        assert torch.equal(values.gather(1, utility.baseline.incumbents[:, None])[:, 0], utility.value.best)
        assert (utility.value.best < values.amax(dim=-1)).any() == (share < 1)


def test_the_published_search_has_constant_labels() -> None:
    for options in (ConformalOptions(variant="code"), ConformalOptions(variant=("constant-labels",))):
        assert options.posterior.labels_in_gradient == "constant"
    assert ConformalOptions(variant="code").posterior.maximum == "outside"
    assert ConformalOptions().posterior.labels_in_gradient == "moving"


def test_constant_labels_are_refused_where_values_are_climbed() -> None:
    with pytest.raises(ValueError, match="`polish` climbs by the gradient of the values"):
        ConformalOptions(variant=("constant-labels",), search=LangevinOptions(polish=50))


def test_constant_labels_are_refused_where_fronts_are_drawn() -> None:
    code = NoisyHypervolumeOptions(variant="code")
    assert (code.posterior.labels_in_gradient, code.posterior.maximum) == ("moving", "outside")
    assert ConformalHypervolumeOptions(variant="code").posterior.labels_in_gradient == "constant"
    with pytest.raises(ValueError, match="constant labels have no gradient here"):
        NoisyHypervolumeOptions(variant=("constant-labels",))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("q", [1, 2])
def test_constant_labels_change_gradients_alone(name: str, q: int) -> None:
    place = noisy(20)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    values, gradients = [], []
    for variant in ("paper", ["constant-labels"]):
        method = make(name, place, variant=variant)
        assert isinstance(method, ConformalMethod)
        integrand = method.integrand(models, place.history, 0.3, torch.Generator().manual_seed(0))
        acquisition = ConformalAcquisition(models, integrand, no_shift, 0.3, method.options.posterior, 1)
        best = place.history.X[place.history.Y.argmax()]
        X = (best + 0.1 * (rows(6, 2) - best)).view(-1, q, 2).requires_grad_()
        value = acquisition(X)
        values.append(value.detach())
        gradients.append(torch.autograd.grad(value.sum(), X)[0])
    assert torch.equal(*values)
    assert not torch.allclose(*gradients)


def test_the_loop_is_inherited() -> None:
    from plumbline.methods.base import methods

    for name in NAMES:
        built = methods[name].build
        assert isinstance(built, type)
        assert issubclass(built, ConformalMethod)
        assert (
            set(vars(built)) & {"ask", "propose", "fit", "utility", "search", "predictive", "forecast", "notes"}
            == set()
        )


class Probability(ConformalMethod):
    """Conformal probability of improvement, smoothed."""

    def integrand(self, models: Any, data: History, alpha: float, generator: torch.Generator) -> Integrand:
        best = standardised(models, data.Y).max()
        return Integrand(lambda f, mean: torch.sigmoid(50 * (f.squeeze(-1).amax(dim=-1) - best)))


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("place", [noisy(8), table()], ids=["box", "table"])
def test_a_new_acquisition_takes_under_20_lines(place: Situation, q: int, register: Callable[..., None]) -> None:
    assert len(inspect.getsource(Probability).splitlines()) < 20
    register("method", "cpi", Probability, "plumbline.methods.conformal.method", ConformalOptions)
    proposal = ask(build_method("cpi", QUICK_CONFORMAL, place.domain), place.history, q)
    assert proposal.X.shape == (q, 2)
    assert proposal.acquisition is not None
    values = proposal.acquisition(rows(5, 3))
    assert ((values >= 0) & (values <= 1)).all()


def test_improvement_is_over_the_best_observation_plus_jitter() -> None:
    place = noisy(10)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    best = ((place.history.Y - place.history.Y.mean()) / place.history.Y.std()).max().item()
    f = torch.tensor([best - 1, best + 0.4, best + 2]).double()[None, :, None, None]
    for jitter in (0.0, 0.5):
        method = make("cei", place, jitter=jitter)
        assert isinstance(method, ConformalMethod)
        utility = method.integrand(models, place.history, 0.3, torch.Generator())
        expected = [0.0, max(0.4 - jitter, 0.0), 2 - jitter]
        assert utility.value(f, f).squeeze().tolist() == pytest.approx(expected, abs=1e-6)


def test_noisy_improvement_is_over_each_draws_own_best() -> None:
    place = noisy(10)
    models = fit_outcomes(place.history, BOX, ModelOptions(priors="conformal"))
    method = make("cnei", place)
    assert isinstance(method, ConformalMethod)
    utility = method.integrand(models, place.history, 0.3, torch.Generator().manual_seed(0))
    assert utility.baseline is not None
    best = utility.baseline.values.squeeze(-1).amax(dim=-1)
    assert len(set(best.tolist())) == 16
    f = (best + 0.25)[None, :, None, None]
    torch.testing.assert_close(utility.value(f, f), torch.full((1, 16), 0.25, dtype=torch.float64))


def test_the_bound_is_wilsons() -> None:
    """`mean + |mean - f|` over the optimistic half, f spread by `sqrt_beta sqrt(pi / 2)`."""
    place = noisy(10)
    method = make("cucb", place)
    assert isinstance(method, ConformalMethod)
    utility = method.integrand([], place.history, 0.05, torch.Generator())
    assert utility.optimistic
    assert utility.spread == pytest.approx(1.959964 * math.sqrt(math.pi / 2), rel=1e-6)
    f, mean = torch.tensor([[1.0], [-2.0]]).double()[None, None], torch.tensor([[0.5], [0.0]]).double()[None, None]
    assert utility.value(f, mean).item() == 2.0  # of 1.0 and 2.0 the greatest in the batch


def test_raw_inputs_are_refused_where_chains_walk() -> None:
    with pytest.raises(PlumblineError, match="leave `inputs: cube`"):
        build_method("cei", {"model": {"inputs": "raw"}}, box().domain)


def test_wrong_options_of_a_part_are_told_by_its_name() -> None:
    with pytest.raises(PlumblineError, match=r"posterior.tau"):
        make("cucb", noisy(5), posterior={"tau": 0.0})
    with pytest.raises(PlumblineError, match="unknown field 'jitter'"):
        make("cucb", noisy(5), jitter=0.1)


@pytest.mark.parametrize("q", [1, 3])
def test_a_polished_search_ends_higher_than_where_the_chains_end(q: int) -> None:
    """The same chains and the same density ratio, hence the same surface; polishing only climbs on from there."""
    place = noisy(20)
    plain, polished = (
        ask(make("cucb", place, search={**QUICK_CONFORMAL["search"], "polish": polish}), place.history, q)
        for polish in (0, 50)
    )
    assert (place.domain.bounds[0] <= polished.X).all()
    assert (place.domain.bounds[1] >= polished.X).all()
    assert not polished.X.requires_grad
    if q == 1:
        assert polished.acquisition(polished.X) >= polished.acquisition(plain.X)
        assert not torch.equal(plain.X, polished.X)


CODE = {"friction": 0.1, "half_period": 2, "cooled": True, "bounds": "walls", "asks_for": "best"}


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("polish", [0, 20])
@pytest.mark.parametrize("name", NAMES)
def test_the_published_search_asks_for_the_best_state_inside(name: str, polish: int, q: int) -> None:
    place = noisy(20)
    search = {**QUICK_CONFORMAL["search"], **CODE, "steps": 12, "learning_rate": 0.02, "polish": polish}
    method = make(name, place, search=search, posterior={"candidates": 16, "maximum": "outside"})
    proposal = ask(method, place.history, q)
    assert proposal.X.shape == (q, 2)
    assert (place.domain.bounds[0] <= proposal.X).all()
    assert (place.domain.bounds[1] >= proposal.X).all()


def test_the_best_state_is_no_worse_than_the_end_of_the_same_chains() -> None:
    place = noisy(20)
    end, best = (
        ask(make("cucb", place, search={**QUICK_CONFORMAL["search"], "asks_for": which}), place.history, 1)
        for which in ("end", "best")
    )
    assert end.acquisition is not None
    assert end.acquisition(best.X) >= end.acquisition(end.X)


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("name", ["cei", "cnei"])
def test_the_best_of_a_share_of_equal_observations_is_a_number(name: str, n: int) -> None:
    method = build_method(name, {**QUICK_CONFORMAL, "incumbent_share": 0.75}, box().domain)
    X = torch.rand(n, BOX.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X = BOX[0] + (BOX[1] - BOX[0]) * X
    assert ask(method, History(X, torch.ones(n, 1, dtype=torch.float64)), 1).X.isfinite().all()
