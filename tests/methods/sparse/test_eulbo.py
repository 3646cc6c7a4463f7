"""Queries and sparse processes refined together: the box that they keep to, and departures of the published code."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from situations import BOX, Situation, box, table
from sparse_situations import ask, in_region, made, round_of

from plumbline.core.history import History
from plumbline.methods.base import Domain
from plumbline.methods.composed import Choice, Round
from plumbline.methods.sparse import eulbo
from plumbline.methods.sparse.eulbo import EulboImprovement, EulboMethodOptions, recentred
from plumbline.methods.sparse.options import DEPARTURES, READINGS, OtherDeparture
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.minibatches import TrainingOptions
from plumbline.models.svgp.posterior import SVGPPosterior
from plumbline.spaces.box import Box

ROVER = (-2 / 60, 4 / 60)
"""A box in which low + width is more than high, by one unit in the last place."""


def test_defaults_are_table_1() -> None:
    options = EulboMethodOptions()
    assert (options.inducing, options.mc_samples, options.query_rate, options.refines) == (100, 64, 0.001, "all")
    assert options.departures == frozenset()
    assert (options.training.learning_rate, options.training.batch, options.training.clip) == (0.01, 32, 2.0)
    assert options.reading == "noise-free"
    assert EulboMethodOptions(variant="code").departures == set(DEPARTURES)


def test_departures_that_are_not_the_codes_are_no_part_of_it() -> None:
    assert set(get_args(OtherDeparture)).isdisjoint(DEPARTURES)
    assert EulboMethodOptions(variant="code").reading == "noise-free"


def test_two_readings_at_once_are_an_error() -> None:
    for name, reading in READINGS.items():
        assert EulboMethodOptions(variant=(name,)).reading == reading
    with pytest.raises(ValidationError, match="noisy-update and shrunk-twice-update: keep one"):
        EulboMethodOptions(variant=("shrunk-twice-update", "noisy-update"))


@pytest.mark.parametrize("departure", [None, *DEPARTURES, *get_args(OtherDeparture)])
def test_a_departure_in_the_options_changes_its_own_training(departure: str | None) -> None:
    options = EulboMethodOptions(variant=(departure,) if departure else "paper")
    plain = EulboMethodOptions()
    first, eulbo = options.first_training.model_dump(), options.eulbo.model_dump()
    changed = {key: value for key, value in first.items() if value != plain.first_training.model_dump()[key]}
    refined = {key: value for key, value in eulbo.items() if value != plain.eulbo.model_dump()[key]}
    expected: dict[str | None, tuple[dict[str, Any], dict[str, Any]]] = {
        "failures-in-total": ({"counted": "in total", "epochs": 31}, {"counted": "in total", "epochs": 31}),
        "minibatches-alike": ({"judged": "by minibatch"}, {"judged": "by minibatch"}),
        "eight-attempts": ({}, {"attempts": 8}),
        "short-warm-start": ({"failures": 10, "epochs": 10}, {}),
        "utility-per-datum": ({}, {"weighting": "datum"}),
        "turns-by-epoch": ({}, {"turns": "epochs"}),
        "fixed-maximisers": ({}, {"climb": "queries"}),
    }
    assert (changed, refined) == expected.get(departure, ({}, {}))


def test_the_box_of_the_query_may_be_about_the_best_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eulbo, "LAST", 2)
    place = box(n=6)
    order = place.history.Y[:, 0].argsort(descending=True)
    history = History(place.history.X[order], place.history.Y[order], 6)
    half = 0.1 * (BOX[1] - BOX[0])
    about = [torch.stack([torch.maximum(x - half, BOX[0]), torch.minimum(x + half, BOX[1])]) for x in history.X[[0, 4]]]
    region = place.domain.space.within(about[0], history, 1)
    round = Round(history, history, region, 1, torch.Generator().manual_seed(5))
    standardisation = Standardisation(torch.zeros(2).double(), torch.ones(2).double(), 0.0, 1.0)
    assert torch.equal(made("eulbo-ei", place).box(round, standardisation), about[0])
    moved = made("eulbo-ei", place, variant=("region-of-the-last-hundred",)).box(round, standardisation)
    torch.testing.assert_close(moved, about[1], rtol=1e-9, atol=1e-9)


def test_without_a_region_the_query_may_go_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eulbo, "LAST", 2)
    place = box(n=6)
    standardisation = Standardisation(torch.zeros(2).double(), torch.ones(2).double(), 0.0, 1.0)
    method = made("eulbo-ei", place, variant=("region-of-the-last-hundred",))
    assert torch.equal(method.box(round_of(place), standardisation), BOX)


@given(st.integers(1, 6), st.floats(0.01, 1.6), st.integers(0, 999))
def test_a_region_keeps_its_length_about_another_centre(d: int, length: float, seed: int) -> None:
    """Where a side of it is inside of the box: else its length cannot be known."""
    drawn = torch.rand(4, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    whole = torch.stack([drawn[0] - 1, drawn[0] + 1 + 5 * drawn[1].mean()])
    width = whole[1] - whole[0]
    centre, other = (whole[0] + one * width for one in drawn[2:])

    def about(point: torch.Tensor) -> torch.Tensor:
        half = length / 2 * width
        return torch.stack([torch.maximum(point - half, whole[0]), torch.minimum(point + half, whole[1])])

    assume(not torch.equal(about(centre), whole))
    torch.testing.assert_close(recentred(about(centre), whole, centre, other), about(other), rtol=1e-9, atol=1e-9)


def test_the_gradients_warm_start_may_be_improvement() -> None:
    place = box()
    kinds = []
    for variant in ("paper", ("improvement-before-gradient",)):
        method = made("eulbo-kg", place, variant=variant)
        kinds.append(type(method.utility(method.fit(place.history), round_of(place))).__name__)
    assert kinds == ["SparseKnowledgeGradient", "AnalyticAcquisition"]


@pytest.mark.parametrize("name", ["eulbo-ei", "eulbo-kg"])
@pytest.mark.parametrize("variant", ["paper", "code", ("frozen-factors",)])
def test_factors_are_frozen_for_the_gradient_alone(name: str, variant: Any) -> None:
    frozen = name == "eulbo-kg" and variant != "paper"
    assert made(name, box(), variant=variant).refinement.frozen_factors == frozen


def test_the_gradients_departures_reach_its_utility() -> None:
    place = box()
    for variant, expected in [
        ("paper", ("noise-free", False, False, True)),
        (("noisy-update",), ("noisy", False, False, True)),
        (("shrunk-twice-update",), ("shrunk-twice", False, False, True)),
        (("doubled-noise",), ("noise-free", True, False, True)),
        (("appended-update",), ("noise-free", False, True, True)),
        (("uncentred-update",), ("noise-free", False, False, False)),
    ]:
        method = made("eulbo-kg", place, variant=variant)
        round = round_of(place)
        process = method.fit(place.history)
        utility = method.utility(process, round)
        assert utility.reading == expected[0]
        choice = method.search(utility, process, round)
        found = method.soft_utility([(method, choice, round)], torch.device("cpu"))
        assert (found.reading, found.doubled, found.appended, found.centred) == expected


def test_the_maximisers_hold_the_datum_of_greatest_mean_and_the_maximiser_of_the_mean() -> None:
    place = box()
    method, sampling = (made("eulbo-kg", place, variant=variant) for variant in ("paper", ("sampled-maximisers",)))
    process, round = method.fit(place.history), round_of(place)
    found = method.maximisers(process, round)
    samples = method.options.mc_samples
    assert torch.equal(found[:samples], sampling.maximisers(process, round))
    assert len(found) == samples + 2

    def mean(X: torch.Tensor) -> torch.Tensor:
        return SVGPPosterior(process).marginal_posterior(X).mean

    assert torch.equal(found[samples], place.history.X[mean(place.history.X).argmax()])
    grid = torch.cartesian_prod(*(torch.linspace(*side, 101, dtype=torch.float64) for side in BOX.T.tolist()))
    assert mean(found[-1:]).item() >= max(mean(grid).max().item(), mean(found[:-1]).max().item()) - 1e-9


def test_maximisers_of_the_mean_lie_in_the_region_that_is_searched() -> None:
    place = box()
    region = place.domain.space.within(torch.tensor([[0.0, 5.0], [1.0, 6.0]]).double(), place.history, 1)
    method = made("eulbo-kg", place)
    round = Round(place.history, place.history, region, 1, torch.Generator().manual_seed(5))
    found = method.maximisers(method.fit(place.history), round)
    assert bool(((found >= region.bounds[0]) & (found <= region.bounds[1])).all())


@pytest.mark.parametrize("variant", ["paper", ("fixed-maximisers",), ("sampled-maximisers", "fixed-maximisers")])
def test_each_sample_has_one_maximiser(variant: Any) -> None:
    place = box()
    method = made("eulbo-kg", place, variant=variant)
    process, round = method.fit(place.history), round_of(place)
    choice = method.search(method.utility(process, round), process, round)
    points = process.standardisation.points(method.points(choice, round))
    samples = method.options.mc_samples
    assert points.shape == (1 + samples, 2)
    if variant != "paper":
        sampled = method.sampled_maximisers(process, place.domain.space, round.seed)
        torch.testing.assert_close(points[1:], sampled)


@pytest.mark.parametrize("name", ["eulbo-ei", "eulbo-kg"])
def test_rows_of_a_table_are_chosen_anew_after_the_refinement(name: str) -> None:
    place = table()
    method = made(name, place)
    proposal = ask(method, place.history)
    rest = place.domain.space.remaining(place.history)  # type: ignore[attr-defined]
    assert proposal.acquisition is not None
    assert torch.equal(proposal.X[0], rest[proposal.acquisition(rest).argmax()])


@pytest.mark.parametrize(("place", "variant"), [(table(), "paper"), (box(), "code")])
def test_refinements_leave_the_global_stream_alone(place: Situation, variant: str) -> None:
    """They happen outside of any request's isolation, with maximisers drawn anew in these two."""
    found = []
    for seed in range(2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(ask(made("eulbo-kg", place, variant=variant), place.history))
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found[0].X, found[1].X)
    assert found[0].notes == found[1].notes


def test_queries_move_within_the_region() -> None:
    place = box()
    method = in_region("eulbo-ei", place, {"initial_length": 0.1}, query_rate=0.5)
    proposal = ask(method, place.history)
    best = place.history.X[place.history.Y[:, 0].argmax()]
    assert proposal.notes["query_moved"] > 0
    assert ((proposal.X - best).abs() <= 0.05 * 15 + 1e-9).all()


@pytest.mark.parametrize("weighting", ["evidence", "minibatch", "datum"])
def test_what_the_utility_weighs_is_an_option(weighting: str) -> None:
    assert EulboMethodOptions(weighting=weighting).eulbo.weighting == weighting
    departed = EulboMethodOptions(weighting=weighting, variant=("utility-per-datum",))
    assert departed.eulbo.weighting == "datum"


@pytest.mark.parametrize("low_high", [ROVER, (0.0, 1.0), (-8.0, 8.0)])
@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_a_query_in_a_corner_of_the_cube_is_inside_of_the_box(low_high: tuple[float, float], corner: float) -> None:
    bounds = torch.tensor(low_high, dtype=torch.float64).unsqueeze(-1).expand(2, 3).contiguous()
    options = EulboMethodOptions(inducing=2, training=TrainingOptions(epochs=1))
    method = EulboImprovement(Domain(Box(bounds)), options)
    X = Box(bounds).draw(6, History(bounds[:0], bounds[:0, :1]), torch.Generator().manual_seed(0))
    history = History(X, X.sum(-1, keepdim=True))
    round = method.start_round(history, 1, torch.Generator().manual_seed(1))
    process = method.fit(history)
    choice = Choice(X[:1], method.utility(process, round), process)
    asked = method.refined(process, torch.full((1, 3), corner, dtype=torch.float64), choice, round).X
    assert bool((asked >= bounds[0]).all())
    assert bool((asked <= bounds[1]).all())
    torch.testing.assert_close(asked, bounds[int(corner)].unsqueeze(0))
