"""Methods around methods."""

import io
from dataclasses import replace
from typing import Any

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from situations import QUICK, QUICK_CONFORMAL, Situation, ask, box, objective, table

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import build_method
from plumbline.methods.composed import Choice, Round, Steps
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.methods.wrappers.trust_region import TrustRegionMethod
from plumbline.spaces.table import Table


def wrapped(place: Situation, base: str, options: dict[str, Any], **own: Any) -> Any:
    return build_method("trust-region", {"base": {"name": base, "options": options}, **own}, place.domain)


@pytest.mark.parametrize(
    ("base", "options"),
    [
        ("ei", QUICK),
        ("nei", QUICK),
        ("cucb", QUICK_CONFORMAL),
        ("cei", QUICK_CONFORMAL),
        ("locbo", QUICK),
        ("ocbo", QUICK),
        ("calibrated", {"base": {"name": "ucb", "options": QUICK}}),
    ],
)
def test_a_trust_region_goes_around_any_method_with_lengthscales(base: str, options: dict[str, Any]) -> None:
    place = box(n=8)
    method = wrapped(place, base, options, initial_length=0.05)
    proposal = ask(method, place.history, 2)
    best = place.history.X[place.history.Y[:, 0].argmax()]
    low, high = place.domain.bounds
    assert ((proposal.X - best).abs() <= 0.25 * (high - low)).all()
    assert proposal.notes["region_length"] == 0.05


def test_wrappers_go_around_wrappers() -> None:
    place = box(n=8)
    inner = {"name": "calibrated", "options": {"base": {"name": "ucb", "options": QUICK}}}
    proposal = ask(wrapped(place, inner["name"], inner["options"]), place.history, 1)  # type: ignore[arg-type]
    assert set(proposal.notes) == {"region_length", "sd_scale"}
    assert proposal.predict is not None
    alone = build_method("calibrated", inner["options"], place.domain)  # type: ignore[arg-type]
    points = place.history.X
    other = ask(alone, place.history, 1).predict
    assert other is not None
    torch.testing.assert_close(proposal.predict(points).sd, other(points).sd)


def test_the_bases_state_is_part_of_the_wrappers() -> None:
    place = box(n=6)
    online = {**QUICK, "online": {"kappa": 2.0, "lengthscale": 4.0, "eta0": 0.05}}
    method = wrapped(place, "locbo", online)
    X = ask(method, place.history, 1).X
    method.tell(X, objective(X) + 1e4)
    assert len(method.base.threshold.centres) == 1
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    resumed = wrapped(place, "locbo", online)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    history = place.history.join(X, objective(X))
    assert torch.equal(ask(resumed, history, 1).X, ask(method, history, 1).X)


def test_a_table_is_cut_to_the_region() -> None:
    place = table(60, 20)
    method = wrapped(place, "ei", QUICK, initial_length=0.4)
    assert isinstance(method, TrustRegionMethod)
    X = ask(method, place.history, 1).X
    seen = {tuple(row) for row in place.history.X.tolist()}
    assert tuple(X[0].tolist()) not in seen


@pytest.mark.parametrize(
    ("name", "base", "reason"),
    [
        ("trust-region", "random", "base 'random' does not provide 'steps' .*: use .*ucb"),
        ("trust-region", "penalised-ei", "'penalised-ei' does not provide 'new points'"),
        ("trust-region", "offline", "'offline' does not provide 'steps'"),
        (
            "calibrated",
            "cucb",
            "'cucb' does not provide 'one gp'",
        ),
        ("trust-region", "ehvi", "'ehvi' does not provide 'lengthscales' .*: use .*cehvi"),
        ("calibrated", "ucbb", "unknown method 'ucbb': did you mean 'ucb'"),
    ],
)
def test_what_cannot_be_wrapped_is_one_line(name: str, base: str, reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as caught:
        build_method(name, {"base": base}, box().domain)
    assert "\n" not in str(caught.value)


def test_options_of_the_base_are_checked_where_they_are() -> None:
    with pytest.raises(PlumblineError, match="method 'trust-region': base 'ei': unknown field 'jiter': did you mean"):
        wrapped(box(), "ei", {"jiter": 1.0})


class Elsewhere(ComposedWrapper):
    """The base, looking for the least of its utility, and noting so."""

    @property
    def steps(self) -> Steps[Any]:
        return replace(self.base.steps, utility=self.utility, notes=self.notes)

    def utility(self, surrogate: Any, round: Round) -> AcquisitionFunction:
        return Negated(self.base.steps.utility(surrogate, round))

    def notes(self, choice: Choice[Any], round: Round) -> dict[str, float]:
        return {**self.base.steps.notes(choice, round), "negated": 1.0}


class Negated(AcquisitionFunction):
    def __init__(self, base: AcquisitionFunction) -> None:
        super().__init__(base.model)
        self.base = base

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return -self.base(X)


class First(ComposedWrapper):
    """The base, asking for the first row of a table that is left, whatever the utility."""

    @property
    def steps(self) -> Steps[Any]:
        return replace(self.base.steps, search=self.search)

    def search(self, utility: AcquisitionFunction, surrogate: Any, round: Round) -> Choice[Any]:
        space = round.space.settle(round.history, round.generator)
        assert isinstance(space, Table)
        return Choice(space.rows[: round.q], utility, surrogate)


class Certain(ComposedWrapper):
    """The base, whose forecasts nobody is to believe."""

    @property
    def steps(self) -> Steps[Any]:
        return replace(self.base.steps, predictive=self.certain, forecast=self.certain)

    def certain(self, _: Any) -> Any:
        return lambda points: "certain"


def wrap(kind: type[ComposedWrapper], base: str, place: Situation, **options: Any) -> ComposedWrapper:
    given = ComposedWrapperOptions(base={"name": base, "options": {**QUICK, **options}})  # type: ignore[arg-type]
    return kind(place.domain, given)


@pytest.mark.parametrize("base", ["ei", "ucb", "ocbo"])
def test_a_wrapper_changes_what_it_overrides(base: str) -> None:
    place = table(20, 6)
    plain = ask(build_method(base, QUICK, place.domain), place.history, 1)
    turned = ask(wrap(Elsewhere, base, place), place.history, 1)
    rest = place.domain.space.remaining(place.history)  # type: ignore[attr-defined]
    assert plain.acquisition is not None
    assert torch.equal(turned.X[0], rest[plain.acquisition(rest).argmin()])
    assert turned.notes["negated"] == 1.0
    assert torch.equal(ask(wrap(First, base, place), place.history, 1).X, rest[:1])
    certain = wrap(Certain, "ei", place)
    assert ask(certain, place.history, 1).predict(rest) == "certain"  # type: ignore[misc, comparison-overlap]
    assert certain.predictor(place.history)(rest) == "certain"  # type: ignore[comparison-overlap]


def test_a_wrapper_around_a_trust_region_stays_in_it() -> None:
    place = box(n=8)
    inner = {"name": "trust-region", "options": {"base": {"name": "ucb", "options": QUICK}, "initial_length": 0.05}}
    method = ComposedWrapper(place.domain, ComposedWrapperOptions(base=inner))  # type: ignore[arg-type]
    proposal = ask(method, place.history, 1)
    best = place.history.X[place.history.Y[:, 0].argmax()]
    assert ((proposal.X - best).abs() <= 0.25 * (place.domain.bounds[1] - place.domain.bounds[0])).all()
    assert proposal.notes == {"region_length": 0.05}


def test_the_base_remembers_what_was_promised() -> None:
    place = box(n=6)
    online = {"online": {"kappa": 2.0, "lengthscale": 4.0, "eta0": 0.05}}
    method = wrap(ComposedWrapper, "locbo", place, **online)
    X = ask(method, place.history, 1).X
    method.tell(X, objective(X))
    assert len(method.base.threshold.centres) == 1  # type: ignore[attr-defined]
