"""Seeds of one method in lockstep: the numbers of each are those that it has alone, to the last bit."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep_cases import assert_same_proposal
from method_cases import CASES, Case, outcomes_for
from situations import QUICK, box, objective, rows, table

from plumbline.core.history import History
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Method, Proposal, build_method, features, lockstep_size
from plumbline.methods.gp.in_lockstep import of_one_size
from plumbline.methods.lockstep import JointStep, Turn
from plumbline.models.gp import fit
from plumbline.models.gp.maximum import Maximum
from plumbline.spaces.stepped import Stepped

TOGETHER = 4

NOTHING = History(torch.empty(0, 2).double(), torch.empty(0, 1).double(), 0)

JOINING = [
    (name, options)
    for name, options in CASES
    if options is not None and "lockstep" in features(name, options) and lockstep_size(name, options) == 1
    if "kg-sgd" not in str(options)  # slow, and asked for itself
]
"""Every method with steps that seeds take jointly, and its examples."""


def label(case: Case) -> str:
    return f"{case[0]}-{(case[1] or {}).get('base', {}).get('name', 'itself')}"


def requests(case: Case, domain: Domain, histories: list[History], q: int, together: int) -> list[AskRequest]:
    name, options = case
    found = []
    for seed, history in enumerate(histories):
        method: Method = build_method(name, options or {}, domain)
        method.lockstep_size = together
        found.append(AskRequest(method, history, q, torch.Generator().manual_seed(seed)))
    return found


def answers(asked: list[AskRequest]) -> list[Proposal]:
    found = type(asked[0].method).ask_many(asked)  # type: ignore[attr-defined]
    assert all(isinstance(one, Proposal) for one in found), found
    return found  # type: ignore[no-any-return]


def assert_the_same(case: Case, domain: Domain, histories: list[History], q: int) -> None:
    apart, joint = (requests(case, domain, histories, q, size) for size in (1, TOGETHER))
    for alone, one, theirs, its in zip(answers(apart), answers(joint), apart, joint, strict=True):
        assert_same_proposal(one, alone)
        assert its.events == theirs.events
        assert torch.equal(its.stream.get_state(), theirs.stream.get_state())
        assert its.method.state_dict().keys() == theirs.method.state_dict().keys()  # type: ignore[attr-defined]


ASKED = [(case, q) for case in JOINING for q in (1, 3) if q == 1 or case[0] in ("ei", "ts")]
"""A batch where it is chosen by climbing, and where it is not."""


@pytest.mark.slow
@pytest.mark.parametrize(("case", "q"), ASKED, ids=lambda part: part if isinstance(part, int) else label(part))
def test_no_digit_of_a_seed_depends_on_its_company(case: Case, q: int) -> None:
    """Three of the seeds have data sets of one size, whose steps are taken together; one has another."""
    sizes = [7, 7, 6, 7]
    histories = [History(rows(n, 30 + i), objective(rows(n, 30 + i)), 5) for i, n in enumerate(sizes)]
    assert_the_same(case, box(**outcomes_for(case[0])).domain, histories, q)


def test_rows_of_a_table_are_chosen_seed_by_seed() -> None:
    place = table()
    assert_the_same(("ei", QUICK), place.domain, [place.history] * 3, 1)


def test_steps_of_inputs_are_kept() -> None:
    space = Stepped(box().domain.bounds, torch.tensor([0.5, 0.0], dtype=torch.float64))
    histories = [History(space.nearest(rows(7, 30 + i), NOTHING), objective(rows(7, 30 + i)), 5) for i in range(3)]
    assert_the_same(("ei", QUICK), Domain(space, box().domain.outcomes), histories, 1)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**31),
    kernel=st.sampled_from(["rbf", "matern12", "matern32", "matern52"]),
    priors=st.sampled_from(["botorch", "botorch-0.9", "conformal", "none"]),
    name=st.sampled_from(["ei", "logei", "pi", "ucb"]),
    sizes=st.lists(st.integers(2, 9), min_size=2, max_size=TOGETHER),
    patience=st.sampled_from([None, 5.0]),
    unit=st.sampled_from([1e-12, 1.0, 1e12]),
)
@settings(max_examples=25, deadline=None)
def test_nor_on_kernels_priors_units_and_numbers_of_points(
    seed: int, kernel: str, priors: str, name: str, sizes: list[int], patience: float | None, unit: float
) -> None:
    search = {"restarts": 3, "raw_samples": 8, "maxiter": 20, "patience": patience}
    options = {"model": {"kernel": kernel, "priors": priors}, "search": search}
    histories = []
    for i, n in enumerate(sizes):
        X = rows(n, seed + i)
        # Units differ from seed to seed, and with them whether values are rescaled for the search.
        histories.append(History(X, objective(X) * (unit if i % 2 else 1.0), n))
    assert_the_same((name, options), box().domain, histories, 1)


def test_a_fit_that_warns_is_repeated_alone_where_its_event_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    histories = [History(rows(7, 30 + i), objective(rows(7, 30 + i)), 5) for i in range(3)]
    real, values = fit.maximise, []

    def stubborn(*given: Any) -> list[Maximum]:
        """Fail where the likelihood is that of the second data set, whatever is fitted beside it."""
        maxima = real(*given)
        values.append([maximum.value for maximum in maxima])
        return [replace(one, failed=["ABNORMAL"] if one.value in values[0][1:2] else []) for one in maxima]

    monkeypatch.setattr(fit, "maximise", stubborn)
    joint = requests(("ei", QUICK), box().domain, histories, 1, TOGETHER)
    answers(joint)
    assert [request.events for request in joint] == [[], ["FitStoppedEarlyWarning"], []]
    assert [len(part) for part in values] == [3, 1]
    assert_the_same(("ei", QUICK), box().domain, histories, 1)


def test_steps_that_are_not_joint_are_taken_one_by_one() -> None:
    """A wrapper may replace a joint step by one of its own."""
    wrapper = ("calibrated", {"base": {"name": "ei", "options": QUICK}})
    histories = [History(rows(7, 30 + i), objective(rows(7, 30 + i)), 5) for i in range(3)]
    assert_the_same(wrapper, box().domain, histories, 1)


def test_a_joint_step_of_one_method_is_its_own() -> None:
    step: JointStep[int] = JointStep("owner", lambda turns: [len(turn.call) for turn in turns])
    assert step("first", "second") == 3
    assert JointStep("owner", lambda turns: [None for _ in turns], lambda x: 2 * x)(4) == 8
    assert Turn("owner", (1,)).call == ("owner", 1)


@pytest.mark.parametrize("name", ["ei", "cucb", "random"])
def test_the_number_of_seeds_is_that_wanted_where_steps_can_be_joint(name: str) -> None:
    assert lockstep_size(name, {}) == 1
    assert lockstep_size(name, {}, 16) == (1 if name == "random" else 16)
    assert lockstep_size("trust-region", {"base": {"name": "ei"}}, 16) == 16
    assert lockstep_size("eulbo-ei", {}, 2) == 8


@given(sizes=st.dictionaries(st.integers(0, 99), st.integers(1, 400), max_size=30))
def test_groups_have_one_size_and_all_rows(sizes: dict[int, int]) -> None:
    groups = of_one_size(sizes)
    assert sorted(row for group in groups for row in group) == sorted(sizes)
    assert all(len({sizes[row] for row in group}) == 1 for group in groups)
