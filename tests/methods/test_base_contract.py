"""What every registered method must do; a method registered later is tested without a change here."""

import io
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import method_cases
import numpy as np
import pytest
import torch
from method_cases import CASES, WITHOUT_MODEL, Case, examples_of, outcomes_for
from pydantic import ValidationError
from situations import Situation, ask, box, objective, recommend, table

from plumbline.core.errors import PlumblineError
from plumbline.core.libraries import absent
from plumbline.methods.base import Method, Proposal, build_method, methods
from plumbline.spaces.table import Table


def _label(case: Case) -> str:
    name, options = case
    words = [
        value["name"] if isinstance(value, dict) and "name" in value else value for value in (options or {}).values()
    ]
    return "-".join([name, *(word for word in words if isinstance(word, str))])


PLACES: dict[str, Callable[[], Situation]] = {"box": box, "table": table}


def _places(name: str) -> list[str]:
    return ["box"] if getattr(methods[name].build, "spaces", "anything") == "a box" else list(PLACES)


CASES_WITH_TABLES = [case for case in CASES if "table" in _places(case[0])]

ASKED = [
    (case, q, place)
    for name in methods.entries()
    for rank, case in enumerate(case for case in CASES if case[0] == name)
    for q in (1, 3)
    for place in _places(name)
    if rank == 0 or (q, place) == (1, "box")
]
"""Every method in both places, for one point and for a batch; its further examples in the box alone, for one point.

What a further example changes, another base or criterion, is asked for in the same way wherever it is.
"""


@dataclass(frozen=True)
class Answer:
    """A method, where it was asked, and what it proposed."""

    name: str
    make: Callable[..., Method]
    place: Situation
    q: int
    proposal: Proposal
    streams_kept: bool


def _streams() -> tuple[Any, ...]:
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


def _maker(case: Case) -> Callable[..., Method]:
    name, options = case
    if options is None:
        pytest.fail(f"method {name!r} needs options: add an example to EXAMPLES in {method_cases.__file__}")
    for library in absent(getattr(methods[name].build, "libraries", ())):
        pytest.skip(f"{library} is not installed")

    def build(place: Situation) -> Method:
        return build_method(name, options, place.domain)

    build.method = name  # type: ignore[attr-defined]
    build.outcomes = outcomes_for(name)  # type: ignore[attr-defined]
    return build


@pytest.fixture(scope="module", params=CASES, ids=_label)
def make(request: pytest.FixtureRequest) -> Callable[..., Method]:
    """Build the case's method for a situation."""
    return _maker(request.param)


@pytest.fixture(scope="module", params=CASES_WITH_TABLES, ids=_label)
def make_for_tables(request: pytest.FixtureRequest) -> Callable[..., Method]:
    """Build the case's method, one that can choose among rows, for a situation."""
    return _maker(request.param)


def _asked_label(asked: tuple[Case, int, str]) -> str:
    case, q, where = asked
    return f"{_label(case)}-q{q}-{where}"


@pytest.fixture(scope="module", params=ASKED, ids=_asked_label)
def answer(request: pytest.FixtureRequest) -> Answer:
    """Ask once for all the tests that look at the answer."""
    case, q, where = request.param
    make = _maker(case)
    place = PLACES[where](**make.outcomes)  # type: ignore[attr-defined]
    method = make(place)
    before = _streams()
    proposal = ask(method, place.history, q)
    return Answer(make.method, make, place, q, proposal, _streams() == before)  # type: ignore[attr-defined]


def _combined() -> list[Case]:
    """Every wrapper around the first example of every method that it accepts."""
    found: list[Case] = []
    for wrapper, entry in methods.entries().items():
        if "base" in entry.options.model_fields:
            for name, examples in ((name, examples_of(name)) for name in methods.entries()):
                options = {"base": {"name": name, "options": examples[0] or {}}}
                with suppress(ValidationError, PlumblineError):
                    entry.options.model_validate(options)
                    found.append((wrapper, options))
    return found


@pytest.mark.parametrize("case", _combined(), ids=_label)
def test_a_wrapper_proposes_points_around_every_base_that_it_accepts(case: Case) -> None:
    wrapper, options = case
    assert options is not None
    innermost = options["base"]
    while "base" in innermost["options"]:
        innermost = innermost["options"]["base"]
        innermost = {"name": innermost, "options": {}} if isinstance(innermost, str) else innermost
    place = box(**outcomes_for(innermost["name"]))
    proposal = ask(build_method(wrapper, options, place.domain), place.history, 1)
    assert proposal.X.shape == (1, 2)
    assert ((place.domain.bounds[0] <= proposal.X) & (place.domain.bounds[1] >= proposal.X)).all()


def test_proposes_points_of_the_domain(answer: Answer) -> None:
    X = answer.proposal.X
    domain = answer.place.domain
    assert X.shape == (answer.q, 2)
    assert X.dtype == torch.float64
    assert not X.requires_grad
    assert (domain.bounds[0] <= X).all()
    assert (domain.bounds[1] >= X).all()
    if isinstance(domain.space, Table):
        chosen = {tuple(row) for row in X.tolist()}
        seen = {tuple(row) for row in answer.place.history.X.tolist()}
        assert len(chosen) == answer.q
        assert chosen <= {tuple(row) for row in domain.space.rows.tolist()} - seen


def test_leaves_every_global_stream_as_it_was(answer: Answer) -> None:
    assert answer.streams_kept


def test_same_generator_same_proposal(answer: Answer) -> None:
    """Bit by bit, by another instance, whatever was drawn elsewhere before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        np.random.seed(123)  # noqa: NPY002 - libraries may draw from it
        random.seed(123)
        again = ask(answer.make(answer.place), answer.place.history, answer.q)
    assert torch.equal(again.X, answer.proposal.X)
    assert again.notes == answer.proposal.notes


def test_reports_finite_times_and_notes(answer: Answer) -> None:
    for numbers in (answer.proposal.seconds, answer.proposal.notes):
        assert all(isinstance(value, float) and math.isfinite(value) for value in numbers.values())
    assert set(answer.proposal.seconds) <= {"fit", "acquire"}
    assert all(value >= 0 for value in answer.proposal.seconds.values())


def test_predicts_what_it_says_it_predicts(answer: Answer) -> None:
    predict = answer.proposal.predict
    assert (predict is None) == (answer.name in WITHOUT_MODEL)
    if predict is None:
        return
    m = answer.place.outcomes
    for X in (answer.proposal.X, answer.place.history.X):
        predictive = predict(X)
        y = objective(X, m).squeeze(-1)
        assert predictive.mean.shape == predictive.sd.shape == y.shape
        assert torch.isfinite(predictive.mean).all()
        results = [predictive.log_prob(y), predictive.covers(y, 0.2)]
        if m == 1:
            results += [predictive.cdf(y), predictive.crps(y)]
        for result in results:
            assert result.shape == (len(X),)
            assert torch.isfinite(result).all()
        assert (predictive.sd > 0).all()
        assert set(predictive.covers(y, 0.2).tolist()) <= {0.0, 1.0}
        assert predictive.width(0.2).shape == (len(X),)
        # Not strictly: a conformal set may be the whole line at both levels.
        assert (predictive.width(0.05) >= predictive.width(0.5)).all()


def test_predictions_carry_no_autograd_graph(answer: Answer) -> None:
    if answer.proposal.predict is None:
        return
    predictive = answer.proposal.predict(answer.proposal.X)
    assert not predictive.mean.requires_grad
    assert not predictive.sd.requires_grad


def test_predicts_better_than_a_constant_where_it_has_data(answer: Answer) -> None:
    if answer.proposal.predict is None:
        return
    y = answer.place.history.Y.squeeze(-1)
    errors = answer.proposal.predict(answer.place.history.X).mean - y
    assert (errors.square().mean(dim=0) < y.var(dim=0)).all()


def test_a_tables_choice_maximises_its_own_utility(answer: Answer) -> None:
    space = answer.place.domain.space
    if answer.proposal.acquisition is None or answer.q > 1 or not isinstance(space, Table):
        return  # a batch is chosen jointly, a box by a search
    values = answer.proposal.acquisition(space.remaining(answer.place.history))
    assert not torch.isnan(values).any()
    assert answer.proposal.acquisition(answer.proposal.X).item() == pytest.approx(values.max().item(), rel=1e-9)


def test_recommends_one_point_and_the_same_again(answer: Answer) -> None:
    """Of a table one that was asked for, and without a model the best of those."""
    place = answer.place
    if place.domain.takes != "one objective" or answer.q > 1:
        return
    before = _streams()
    X, again = (recommend(answer.make(place), place.history) for _ in range(2))
    assert _streams() == before
    assert torch.equal(X, again)
    assert X.shape == (1, 2)
    assert ((place.domain.bounds[0] <= X) & (place.domain.bounds[1] >= X)).all()
    asked = (place.history.X == X).all(dim=-1)
    if isinstance(place.domain.space, Table):
        assert asked.any()
    if answer.name in WITHOUT_MODEL:
        assert place.history.Y[asked].max() == place.history.Y.max()


def test_state_survives_a_checkpoint(make: Callable[..., Method]) -> None:
    place = PLACES[_places(make.method)[-1]](**make.outcomes)  # type: ignore[attr-defined]
    method = make(place)
    X = place.history.X[:1]
    method.tell(X, objective(X, place.outcomes))

    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    resumed = make(place)
    resumed.load_state_dict(torch.load(file, weights_only=True))

    assert torch.equal(ask(resumed, place.history, 1).X, ask(method, place.history, 1).X)


def test_exhausted_table_is_told_in_one_line(make_for_tables: Callable[..., Method]) -> None:
    place = table(size=5, seen=5, **make_for_tables.outcomes)  # type: ignore[attr-defined]
    with pytest.raises(PlumblineError, match="every row of the table has been evaluated") as caught:
        ask(make_for_tables(place), place.history, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning")
def test_more_points_than_rows_left_are_not_made_up(make_for_tables: Callable[..., Method]) -> None:
    place = table(size=8, seen=6, **make_for_tables.outcomes)  # type: ignore[attr-defined]
    X = ask(make_for_tables(place), place.history, 3).X
    assert len(X) == len({tuple(row) for row in X.tolist()}) == 2


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES} - {name for name, _ in CASES_WITH_TABLES}))
def test_a_table_is_refused_in_one_line_by_methods_of_boxes(name: str) -> None:
    make = _maker((name, examples_of(name)[0]))
    with pytest.raises(PlumblineError, match=f"^method {name!r} searches a box; this problem has rows of a table"):
        make(table())


def test_unknown_option_names_the_field(make: Callable[..., Method]) -> None:
    name = make.method  # type: ignore[attr-defined]
    with pytest.raises(PlumblineError, match="unknown field 'no_such_option'"):
        build_method(name, {"no_such_option": 1}, box().domain)
