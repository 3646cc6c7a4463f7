"""The one loop of all methods with a surrogate, and what can be wrong with what it is told."""

from typing import Any

import pytest
import torch
from situations import QUICK, QUICK_CONFORMAL, Situation, ask, box, objective, rows

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.outcomes import Outcome
from plumbline.methods.base import Domain, build_method, methods
from plumbline.methods.composed import ComposedMethod, Round, SurrogateMethod
from plumbline.models.gp.fit import ModelOptions
from plumbline.registry.registry import Entry
from plumbline.spaces.box import Box

NAN = torch.full((1, 1), torch.nan, dtype=torch.float64)


def with_failures(place: Situation, n: int = 2) -> History:
    """The history of a situation, with evaluations that failed behind it."""
    return place.history.join(rows(n, 9), NAN.expand(n, 1))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ei", QUICK),
        ("nei", QUICK),
        ("cucb", QUICK_CONFORMAL),
        ("locbo", QUICK),
        ("risk-averse-ucb", QUICK),
        ("calibrated", {"base": {"name": "ei", "options": QUICK}}),
        ("trust-region", {"base": {"name": "ei", "options": QUICK}}),
    ],
)
def test_evaluations_that_failed_are_left_out_of_the_model(name: str, options: dict[str, Any]) -> None:
    place = box(n=8)
    proposal = ask(build_method(name, options, place.domain), with_failures(place), 1)
    assert torch.isfinite(proposal.X).all()
    assert proposal.predict is not None
    errors = proposal.predict(place.history.X).mean - place.history.Y.squeeze(-1)
    assert errors.square().mean() < place.history.Y.var()


def test_a_failure_is_no_success_of_a_trust_region() -> None:
    place = box(n=8)
    method = build_method("trust-region", {"base": {"name": "ucb", "options": QUICK}}, place.domain)
    X = ask(method, place.history, 1).X
    method.tell(X, NAN)
    assert (method.region.failures, method.region.successes) == (1, 0)  # type: ignore[attr-defined]
    assert torch.isfinite(torch.tensor(method.region.best))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["ehvi", "cehvi"])
def test_an_outcome_without_any_observation_is_one_line(name: str) -> None:
    place = box(n=6, outcomes=2)
    Y = place.history.Y.clone()
    Y[:, 1] = torch.nan
    options = QUICK if name == "ehvi" else QUICK_CONFORMAL
    with pytest.raises(PlumblineError, match=r"outcome 'objective-1' \(objective\) has no observation yet") as caught:
        ask(build_method(name, options, place.domain), History(place.history.X, Y, 6), 1)
    assert "\n" not in str(caught.value)


def test_a_constraint_without_any_observation_is_one_line() -> None:
    """Whatever models it: the loop is that of all methods with a surrogate."""
    outcomes = (Outcome("yield"), Outcome("purity", "at_least_zero"))
    method = build_method("ei", QUICK, box().domain)
    method.domain = Domain(box().domain.space, outcomes)
    X = rows(4, 0)
    with pytest.raises(PlumblineError, match=r"outcome 'purity' \(at_least_zero\) has no observation yet"):
        ask(method, History(X, torch.cat([objective(X), NAN.expand(4, 1)], dim=-1), 4), 1)


@pytest.mark.parametrize(("name", "options"), [("ei", QUICK), ("cucb", QUICK_CONFORMAL), ("ehvi", QUICK)])
def test_a_model_that_does_not_fit_the_problem_is_one_line(name: str, options: dict[str, Any]) -> None:
    constrained = (Outcome("yield"), Outcome("purity", "at_least_zero"))
    with pytest.raises(PlumblineError, match=r"is for .*; this problem has yield \(objective\), purity") as caught:
        build_method(name, options, Domain(box().domain.space, constrained))
    assert str(caught.value).endswith("use cjes, eic, epbo, random, sobol")


def test_a_rounds_seed_is_drawn_once_and_when_it_is_asked_for() -> None:
    generator = torch.Generator().manual_seed(0)
    history = box().history
    round = Round(history, history, Box(box().domain.bounds), 1, generator)
    untouched = torch.Generator().manual_seed(0).get_state()
    assert torch.equal(generator.get_state(), untouched)
    assert round.seed == round.seed
    assert not torch.equal(generator.get_state(), untouched)


def composed() -> dict[str, Entry]:
    return {
        name: entry
        for name, entry in methods.entries().items()
        if isinstance(entry.build, type) and issubclass(entry.build, ComposedMethod)
    }


def test_there_is_one_ask() -> None:
    assert not [name for name, entry in composed().items() if entry.build.ask is not ComposedMethod.ask]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name, one in composed().items() if issubclass(one.build, SurrogateMethod)])  # type: ignore[arg-type]
def test_methods_provide_what_they_have(name: str) -> None:
    entry = methods[name]
    build, model = entry.build, entry.options.model_fields.get("model")
    has = {
        "lengthscales": build.lengthscales is not SurrogateMethod.lengthscales,  # type: ignore[attr-defined]
        "kernel": model is not None and issubclass(model.annotation, ModelOptions),
    }
    assert {feature for feature, there in has.items() if there} == build.provides & has.keys()  # type: ignore[attr-defined]
    # Others fit seeds together too, but forecast with more than the process that a wrapper would recalibrate.
    assert "batched fit" not in build.provides or hasattr(build, "fit_each")  # type: ignore[attr-defined]


def test_methods_without_steps_provide_none() -> None:
    assert composed().keys() == {
        name
        for name, entry in methods.entries().items()
        if "steps" in {*entry.build.provides, *entry.build.passes_on}  # type: ignore[attr-defined]
    }


def test_a_region_without_any_whole_evaluation_is_one_line() -> None:
    place = box(n=2)
    method = build_method("ei", QUICK, Domain(place.domain.space))
    method.domain = Domain(place.domain.space, (Outcome("yield"), Outcome("purity", "at_least_zero")))
    Y = torch.tensor([[1.0, torch.nan], [torch.nan, 1.0]], dtype=torch.float64)
    with pytest.raises(PlumblineError, match="each evaluation failed, or observed some of the outcomes only"):
        ask(method, History(place.history.X, Y, 2), 1)


def test_outcomes_observed_apart_are_fitted_apart() -> None:
    place = box(n=8, outcomes=2)
    Y = place.history.Y.clone()
    Y[:3, 0] = Y[5:, 1] = torch.nan
    for name in ("ehvi", "nehvi"):
        proposal = ask(build_method(name, QUICK, place.domain), History(place.history.X, Y, 8), 1)
        assert torch.isfinite(proposal.X).all()
        assert proposal.predict is not None
        assert torch.isfinite(proposal.predict(place.history.X).mean).all()
