"""Sparse processes from round to round, alone and in company; what all methods with one have in common."""

import io
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from botorch.acquisition import qExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from situations import BOX, QUICK, Situation, box, objective, rows
from sparse_situations import SMALL, ask, in_region, made, played, question, round_of

from plumbline.core.history import History
from plumbline.methods.base import Method, lockstep_size
from plumbline.methods.composed import Round, Steps
from plumbline.methods.proposal import Proposal
from plumbline.methods.sparse import method as sparse
from plumbline.methods.sparse.method import (
    LearningRateLoweredWarning,
    SparseMethod,
    WarmStartKeptWarning,
)
from plumbline.methods.sparse.options import DEPARTURES
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.cross_covariance import JITTER
from plumbline.models.svgp.inducing import Baseline
from plumbline.models.svgp.objective import Parameters

NAMES = ["elbo-ei", "moss-ei", "eulbo-ei", "eulbo-kg"]


def inducing(method: SparseMethod) -> set[tuple[float, ...]]:
    assert method.process is not None
    return {tuple(point) for point in method.process.parameters.inducing[0].tolist()}


def test_units_are_of_all_data_or_of_the_design_and_inputs_may_be_raw() -> None:
    place = box(n=4)
    history = place.history.join(rows(3, 9), objective(rows(3, 9)) + 100)
    found = {}
    for variant in ("paper", ("units-of-the-design",), ("raw-inputs",)):
        found[str(variant)] = made("elbo-ei", place, variant=variant).standardisation(round_of(place, history))
    plain, design, raw = found.values()
    Y = history.Y[:, 0]
    assert (plain.location, plain.scale) == pytest.approx((Y.mean().item(), Y.std().item()))
    assert (design.location, design.scale) == pytest.approx((Y[:4].mean().item(), Y[:4].std().item()))
    assert torch.equal(plain.inputs(BOX), torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
    assert torch.equal(design.inputs(BOX), plain.inputs(BOX))
    assert torch.equal(raw.inputs(BOX), BOX)
    assert (raw.location, raw.scale) == (plain.location, plain.scale)


def test_the_last_hundred_are_trained_on_after_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "LAST", 3)
    place = box(n=5)
    later = place.history.join(rows(1, 9), objective(rows(1, 9)))
    for variant, history, n in [
        ("paper", later, 6),
        (("last-hundred",), place.history, 5),
        (("last-hundred",), later, 3),
    ]:
        method = made("elbo-ei", place, variant=variant)
        round = round_of(place, history)
        X, y = method.training_data(round, method.standardisation(round))
        assert (len(X), len(y)) == (n, n)
        torch.testing.assert_close(method.standardisation(round).points(X), history.X[-n:])


def test_improvement_may_be_of_noisy_observations() -> None:
    place = box()
    plain, noisy = (made("elbo-ei", place, variant=v) for v in ("paper", ("improvement-of-observations",)))
    process = plain.fit(place.history)
    here, there = (method.utility(process, round_of(place)).model for method in (plain, noisy))
    gained = there.posterior(rows(3, 2)).variance - here.posterior(rows(3, 2)).variance
    torch.testing.assert_close(gained, torch.full_like(gained, process.noise_variance))


@pytest.mark.slow
@pytest.mark.parametrize("departure", DEPARTURES)
@pytest.mark.parametrize("q", [1, 2])
def test_every_departure_gives_points_of_the_domain(departure: str, q: int) -> None:
    for name in ("moss-ei", "eulbo-kg"):
        place = box()
        options = {"variant": (departure,)} if departure in DEPARTURES else {}
        method = in_region(name, place, **options)
        history = played(method, place.history, 2, q)
        assert ((BOX[0] <= history.X) & (BOX[1] >= history.X)).all()


@pytest.mark.slow
def test_the_published_code_of_all_methods_plays_rounds() -> None:
    for name in NAMES:
        place = box()
        assert len(played(made(name, place, variant="code"), place.history, 2)) == 8


@pytest.mark.parametrize("name", NAMES)
def test_the_process_goes_on_in_the_units_of_the_new_data(name: str) -> None:
    place = box()
    method = made(name, place)
    history = played(method, place.history, 1)
    before = method.process
    start = SparseMethod.start(method, round_of(place, history))
    X = rows(4, 3)
    assert start.standardisation.scale == pytest.approx(history.Y.std().item())
    torch.testing.assert_close(start.posterior_moments(X)[0], before.posterior_moments(X)[0], rtol=1e-4, atol=1e-3)
    assert torch.equal(start.parameters.inducing, before.parameters.inducing)


def test_moss_places_inducing_points_anew_among_the_data() -> None:
    place = box(n=12)
    method = made("moss-ei", place)
    history = played(method, place.history, 3)
    now, first = inducing(method), inducing_at_first(place)
    cube = {tuple(x) for x in ((history.X[:-1] - BOX[0]) / (BOX[1] - BOX[0])).tolist()}
    assert now <= cube
    assert now != first
    old = made("moss-ei", place)
    played(old, place.history, 1)
    assert inducing(old) == first


@pytest.mark.slow
def test_quality_over_the_worst_mean_is_that_of_many_data() -> None:
    """Over the best mean all but a few have next to none."""
    place, X = box(n=60), rows(60, 0)
    history = History(X, -100 * (X - X.mean(0)).square().sum(-1, keepdim=True), 60)
    training = {"epochs": 300, "learning_rate": 0.05, "failures": 300, "batch": 60}
    shares = []
    for baseline in get_args(Baseline):
        method = made("moss-ei", place, baseline=baseline, training=training)
        quality = method.quality(method.fit(history), X)
        shares.append(float((quality > 0.1 * quality.max()).double().mean()))
    assert shares[0] < 0.3
    assert shares[1] > 0.8


def inducing_at_first(place: Situation) -> set[tuple[float, ...]]:
    method = made("moss-ei", place)
    round = Round(place.history, place.history, place.domain.space, 1, torch.Generator().manual_seed(0))
    return {
        tuple(x) for x in method.first_process(round, method.standardisation(round)).parameters.inducing[0].tolist()
    }


def test_frozen_inducing_points_are_shuffled_and_never_change() -> None:
    place = box(n=12)
    method = made("moss-ei", place, variant=("frozen-inducing",))
    history, first = place.history, inducing_at_first(place)
    for _ in range(3):
        history = played(method, history, 1)
        assert inducing(method) == first


def test_beliefs_stay_in_the_order_of_the_inducing_points_before() -> None:
    """In the published code, other points get the means of those that were in their place."""
    place = box(n=12)
    training = {"epochs": 30, "learning_rate": 0.05}
    process = made("moss-ei", place, training=training, variant=("frozen-inducing",)).fit(place.history)
    before = made("moss-ei", place, training=training).fit(place.history)
    for name, now, was in zip(Parameters._fields, process.parameters, before.parameters, strict=True):
        assert torch.equal(now, was) == (name != "inducing"), name
    assert not torch.equal(process.factor, before.factor)
    covariance = process.prior(process.parameters.inducing[0], process.parameters.inducing[0])
    covariance.diagonal().add_(JITTER)
    torch.testing.assert_close(process.factor @ process.factor.mT, covariance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("q", [1, 3])
def test_improvement_may_be_sampled_as_by_botorch(q: int) -> None:
    place = box(n=12)
    closed, sampled = (made("elbo-ei", place, variant=v) for v in ("paper", ("sampled-improvement",)))
    process, round = closed.fit(place.history), replace(round_of(place), q=q)
    X = rows(40 * q, 4).view(40, q, -1)
    sampler = SobolQMCNormalSampler(torch.Size([512]), seed=round.seed)
    there = qExpectedImprovement(ProcessModel(process), round.data.Y.max(), sampler=sampler)(X)
    here = sampled.utility(process, round)(X)
    torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-10)
    assert not torch.allclose(here, closed.utility(process, round)(X), rtol=1e-8, atol=1e-10)


def test_other_inducing_points_are_trained() -> None:
    place = box(n=12)
    method = made("elbo-ei", place)
    played(method, place.history, 1)
    assert not inducing(method) & inducing_at_first(place)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_fewer_data_than_inducing_points(name: str, n: int) -> None:
    place = box(n=n)
    method = made(name, place)
    assert len(played(method, place.history, 2)) == n + 2
    assert method.process.parameters.inducing.shape == (1, 8, 2)


@pytest.mark.parametrize("name", NAMES)
def test_observations_that_are_all_equal(name: str) -> None:
    place = box()
    history = History(place.history.X, torch.full((6, 1), 7.0).double(), 6)
    proposal = ask(made(name, place), history)
    assert torch.isfinite(proposal.X).all()
    assert proposal.predict is not None
    assert torch.isfinite(proposal.predict(proposal.X).mean).all()


@pytest.mark.parametrize("name", NAMES)
def test_evaluations_that_failed_have_the_worst_value(name: str) -> None:
    place = box()
    X, Y = torch.cat([rows(1, 8), place.history.X]), place.history.Y
    failed, same = (
        History(X, torch.cat([y, Y]), 7) for y in (torch.full_like(Y[:1], torch.nan), Y.min(0, keepdim=True)[0])
    )
    assert torch.equal(ask(made(name, place), failed).X, ask(made(name, place), same).X)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_resumed_equals_uninterrupted(name: str, variant: str) -> None:
    place = box()
    whole, resumed = (made(name, place, variant=variant) for _ in range(2))
    history = place.history
    for seed in range(3):
        X = ask(whole, history, seed=seed).X
        assert torch.equal(ask(resumed, history, seed=seed).X, X)
        history = history.join(X, objective(X))
        file = io.BytesIO()
        torch.save(whole.state_dict(), file)
        assert len(file.getvalue()) < 8000  # its own parameters, not its group's
        file.seek(0)
        resumed = made(name, place, variant=variant)
        resumed.load_state_dict(torch.load(file, weights_only=True))
    fresh, later = (ask(one, history, seed=3).predict for one in (made(name, place, variant=variant), whole))
    assert fresh is not None
    assert later is not None
    assert not torch.equal(fresh(history.X).mean, later(history.X).mean)  # going on does matter


@pytest.mark.parametrize("name", NAMES)
def test_a_new_trust_region_begins_a_fresh_process(name: str) -> None:
    """Even one with as many data as the last had: here the region is given up after its first round."""
    place = box(n=4)
    method = in_region(name, place, {"initial_length": 0.01, "failure_tolerance": 1})
    history = played(method, place.history, 1, offset=-1e3)
    assert method.region.start == 5
    history = played(method, history, 4, offset=-1e3)  # its design
    own = History(history.X[5:], history.Y[5:])
    round = Round(own, own, place.domain.space, 1, torch.Generator().manual_seed(5))
    fresh = made(name, place).start(Round(own, own, place.domain.space, 1, torch.Generator().manual_seed(5)))
    assert torch.equal(method.base.start(round).row, fresh.row)
    same = History(history.X[:5], history.Y[:5])
    assert method.base.before(Round(same, same, place.domain.space, 1, torch.Generator())) is not None


def group(name: str, place: Situation, wrapped: bool, **options: Any) -> list[tuple[Method, History]]:
    """Three seeds with different amounts of data."""
    found = []
    for i, n in enumerate((0, 1, 3)):
        X = rows(n, 20 + i)
        method = in_region(name, place, **options) if wrapped else made(name, place, **options)
        found.append((method, place.history.join(X, objective(X))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_company_makes_no_difference(name: str, wrapped: bool, q: int) -> None:
    place = box()
    together, alone = (group(name, place, wrapped) for _ in range(2))
    for seed in range(2):
        answers = type(together[0][0]).ask_many([question(m, h, q, seed + i) for i, (m, h) in enumerate(together)])
        for i, (method, history) in enumerate(alone):
            own, answer = ask(method, history, q, seed + i), answers[i]
            assert isinstance(answer, Proposal)
            torch.testing.assert_close(answer.X, own.X, rtol=1e-6, atol=1e-6)
            assert {k: v for k, v in answer.notes.items() if k.endswith("epochs")} == {
                k: v for k, v in own.notes.items() if k.endswith("epochs")
            }
            history = history.join(own.X, objective(own.X))
            alone[i], together[i] = (method, history), (together[i][0], history)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_seeds_in_lockstep_on_a_gpu_ask_for_the_same(name: str, wrapped: bool, q: int, gpu: torch.device) -> None:
    place = box()
    there, here = (group(name, place, wrapped) for _ in range(2))
    asked = [replace(question(m, h, q, i), device=gpu) for i, (m, h) in enumerate(there)]
    for answer, (method, history), seed in zip(type(there[0][0]).ask_many(asked), here, range(3), strict=True):
        assert isinstance(answer, Proposal)
        own = ask(method, history, q, seed)
        torch.testing.assert_close(answer.X, own.X, rtol=1e-5, atol=1e-5)
        assert answer.X.device.type == "cpu"


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_company_with_as_many_data_makes_no_difference(name: str, wrapped: bool) -> None:
    place = box()
    histories = [History(rows(8, 30 + i), objective(rows(8, 30 + i)), 8) for i in range(3)]
    make = in_region if wrapped else made
    together = [make(name, place) for _ in histories]
    asked = [
        question(method, history, 1, i) for i, (method, history) in enumerate(zip(together, histories, strict=True))
    ]
    for i, (answer, history) in enumerate(zip(type(together[0]).ask_many(asked), histories, strict=True)):
        assert isinstance(answer, Proposal)
        own = ask(make(name, place), history, 1, i)
        torch.testing.assert_close(own.X, answer.X, rtol=1e-6, atol=1e-6)
        assert own.notes == pytest.approx(answer.notes, rel=1e-6)


def test_seeds_without_a_model_do_not_hold_up_the_others() -> None:
    """One begins a new trust region, and has nothing to fit."""
    place = box(n=4)
    first, second = (in_region("eulbo-ei", place, {"initial_length": 0.01, "failure_tolerance": 1}) for _ in range(2))
    history = played(first, place.history, 1, offset=-1e3)
    answers = type(first).ask_many([question(first, history), question(second, place.history)])
    new, going = answers
    assert isinstance(new, Proposal)
    assert isinstance(going, Proposal)
    assert new.predict is None
    assert going.predict is not None
    other = in_region("eulbo-ei", place, {"initial_length": 0.01, "failure_tolerance": 1})
    torch.testing.assert_close(going.X, ask(other, place.history).X, rtol=1e-6, atol=1e-6)


class Upside(ComposedWrapper):
    """The base, its surrogate fitted to other data."""

    @property
    def steps(self) -> Steps[Any]:
        return self.base.steps.with_fit(self.fit)

    def fit(self, data: History) -> Any:
        return self.base.steps.fit(History(data.X, -data.Y))


def test_a_wrapper_with_a_fit_of_its_own_is_asked_by_it() -> None:
    place = box()
    base = {"name": "elbo-ei", "options": {**SMALL, "training": {"epochs": 60, "learning_rate": 0.05}}}
    options = ComposedWrapperOptions(base=base)  # type: ignore[arg-type]
    proposals = [ask(kind(place.domain, options), place.history) for kind in (Upside, ComposedWrapper)]
    turned, plain = (one.predict(place.history.X).mean for one in proposals if one.predict)
    assert torch.corrcoef(torch.stack([plain, place.history.Y[:, 0]]))[0, 1] > 0.5
    assert torch.corrcoef(torch.stack([turned, place.history.Y[:, 0]]))[0, 1] < -0.5


def test_seats_are_those_of_the_innermost_base() -> None:
    around = {"base": {"name": "eulbo-ei", "options": SMALL}}
    assert lockstep_size("eulbo-ei", SMALL) == 8
    assert lockstep_size("trust-region", around) == 8
    assert lockstep_size("ei", QUICK) == 1
    assert lockstep_size("trust-region", {"base": "ucb"}) == 1
    assert in_region("eulbo-ei", box()).lockstep_size == 8


@pytest.mark.parametrize("name", NAMES)
def test_trainings_that_break_are_events(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observation of 1e300 among others leaves no number to train by; one seed's trouble is not another's."""
    place = box()
    monkeypatch.setattr(SparseMethod, "training_data", spoiled(SparseMethod.training_data))
    methods = [made(name, place) for _ in range(2)]
    methods[0].spoiled = True
    questions = [question(method, place.history) for method in methods]
    answers = SparseMethod.ask_many.__func__(type(methods[0]), questions)  # type: ignore[attr-defined]
    assert all(isinstance(answer, Proposal) for answer in answers)
    assert set(questions[0].events) >= {LearningRateLoweredWarning.__name__, WarmStartKeptWarning.__name__}
    assert not questions[1].events
    assert torch.isfinite(answers[0].X).all()


def spoiled(real: Any) -> Any:
    def training_data(self: Any, round: Round, standardisation: Standardisation) -> tuple[torch.Tensor, torch.Tensor]:
        X, y = real(self, round, standardisation)
        return X, torch.full_like(y, torch.nan) if getattr(self, "spoiled", False) else y

    return training_data


def test_a_search_that_raises_is_told_of_the_whole_group() -> None:
    """The runner asks the others again, one by one; see tests/trials/test_runner.py."""

    class BrokenError(Exception):
        pass

    place = box()
    methods = [made("elbo-ei", place) for _ in range(2)]

    def search(*_: Any) -> Any:
        raise BrokenError

    methods[1].search = search
    with pytest.raises(BrokenError):
        type(methods[0]).ask_many([question(method, place.history) for method in methods])


@pytest.mark.parametrize("name", NAMES)
def test_fit_knows_the_data_alone(name: str) -> None:
    place = box()
    method = made(name, place)
    before = method.fit(place.history).row
    played(method, place.history, 2)
    assert torch.equal(method.fit(place.history).row, before)
