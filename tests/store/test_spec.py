"""Trials as data: names, labels, bounds, and the ids that jobs are found by."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.core.seeding import identity
from plumbline.registry.references import MethodRef, ProblemRef, canonical_json, canonical_options, short_digest
from plumbline.store.spec import Chunk, TrialSpec

Make = Callable[..., TrialSpec]

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
trees = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@pytest.mark.slow
@given(st.dictionaries(st.text(), trees))
def test_equal_data_is_equal_text(data: dict[str, Any]) -> None:
    backwards = dict(reversed(list(data.items())))
    assert canonical_json(backwards) == canonical_json(data)
    assert json.loads(canonical_json(data)) == data


def test_digests_stay_what_they_are() -> None:
    assert short_digest("plumbline") == short_digest("plumbline")
    assert short_digest("") == "e3b0c44298fc1c14"


@given(st.integers(1, 999))
def test_a_short_name_is_a_family_with_a_dimension(dim: int) -> None:
    short = ProblemRef.model_validate(f"ackley-{dim}")
    assert (short.name, short.options, short.typed()) == ("ackley", {"dim": dim}, f"ackley-{dim}")
    long = ProblemRef(name="ackley", options={"dim": dim})
    assert short == long
    # The same draws, however it is written.
    assert identity(short.name, short.options) == identity(long.name, long.options)


def test_other_dashes_are_part_of_the_name() -> None:
    assert ProblemRef.model_validate("six-hump-camel").name == "six-hump-camel"
    assert ProblemRef.model_validate("nothing-20").name == "nothing-20"
    assert ProblemRef.model_validate("hartmann-6").options == {"dim": 6}


def test_options_stay_beside_the_dimension() -> None:
    noisy = ProblemRef(name="ackley-2", options={"noise_std": 0.1})
    assert noisy.options == {"noise_std": 0.1, "dim": 2}
    assert noisy.typed() == "ackley-2"
    assert ProblemRef(name="forrester").typed() == "forrester"


def test_a_reference_round_trips() -> None:
    for text in ("ackley-20", "forrester"):
        reference = ProblemRef.model_validate(text)
        assert ProblemRef.model_validate_json(reference.model_dump_json()) == reference


@pytest.mark.parametrize("label", ["ei", "calibrated-ucb", "a.b_c+1", "0"])
def test_labels_that_name_files(label: str) -> None:
    assert MethodRef(name="ei", label=label).label == label


@pytest.mark.parametrize("label", ["../ei", "a/b", "E I", "Ei", "-ei", ".hidden", "é", "a\n", "a b"])
def test_labels_that_do_not(label: str) -> None:
    with pytest.raises(ValidationError, match="a label is lower-case letters"):
        MethodRef(name="ei", label=label)


def test_a_task_is_called_like_its_problem_unless_it_has_a_name(cheap_spec: Make) -> None:
    assert cheap_spec("ackley-2").task == "ackley-2"
    assert cheap_spec({"name": "ackley", "options": {"dim": 2, "noise_std": 0.1}}).task == "ackley-2"
    named = cheap_spec("ackley-2", task="hole")
    assert named.task == "hole"
    with pytest.raises(ValidationError, match="a label is lower-case letters"):
        cheap_spec(task="../hole")


def test_a_method_is_called_by_its_name_unless_it_has_a_label() -> None:
    assert MethodRef(name="ei").label == "ei"
    assert MethodRef.model_validate("ei").label == "ei"


def test_identity_stays_what_it_is() -> None:
    """Random streams are keyed by it: another text would be other numbers."""
    reference = ProblemRef(name="levy-5", options={"noise_scale": 0.1})
    assert identity(reference.name, reference.options) == '{"name":"levy","options":{"dim":5,"noise_scale":0.1}}'


@given(st.dictionaries(st.sampled_from(["dim", "noise_std", "dataset"]), st.integers(0, 9)))
def test_identity_does_not_know_the_order_of_options(options: dict[str, int]) -> None:
    one = ProblemRef(name="levy", options=options)
    two = ProblemRef(name="levy", options=dict(reversed(list(options.items()))))
    assert identity(one.name, one.options) == identity(two.name, two.options)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("seed",), -1, "seed: Input should be greater than or equal to 0 (got -1)"),
        (("seed",), 2**31, "seed: Input should be less than or equal to 2147483647"),
        (("budget", "rounds"), -1, "budget.rounds: Input should be greater than or equal to 0 (got -1)"),
        (("budget", "rounds"), 100_001, "budget.rounds: Input should be less than or equal to 100000"),
        (("budget", "q"), 0, "budget.q: Input should be greater than or equal to 1 (got 0)"),
        (("budget", "initial", "size"), 0, "budget.initial.size: Input should be greater than or equal to 1"),
        (("budget", "initial", "design"), "lhs", "budget.initial.design: unknown design 'lhs'"),
        (("diagnostics", "alphas"), [1.5], "diagnostics.alphas"),
        (("diagnostics", "alphas"), [], "diagnostics.alphas"),
        (("diagnostics", "holdout"), -1, "diagnostics.holdout: "),
        (("budget", "round"), 3, "budget: unknown field 'round': did you mean 'rounds'? allowed: initial, q, rounds"),
        (
            ("sed",),
            3,
            "unknown field 'sed': did you mean 'seed'? allowed: budget, diagnostics, method, problem, seed, task",
        ),
        (("method", "option"), {}, "method: unknown field 'option': did you mean 'options'?"),
    ],
)
def test_bounds_and_unknown_fields(path: tuple[str, ...], value: Any, message: str, cheap_spec: Make) -> None:
    data = cheap_spec().model_dump(mode="json")
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(PlumblineError) as caught:
        parse(TrialSpec, data, "here")
    assert str(caught.value).startswith(f"here: {message}")
    assert "\n" not in str(caught.value)


def test_check_names_what_is_unknown(cheap_spec: Make) -> None:
    cheap_spec("forrester", "ei").check("here")
    with pytest.raises(PlumblineError, match="unknown method 'rndom': did you mean 'random'"):
        cheap_spec(method="rndom", options={}).check("here")
    with pytest.raises(PlumblineError, match="unknown problem 'brannin': did you mean 'branin'"):
        cheap_spec("brannin").check("here")
    with pytest.raises(PlumblineError, match=r"here: method 'ei': unknown field 'jiter': did you mean 'jitter'"):
        cheap_spec(method="ei", options={"jiter": 1}).check("here")
    with pytest.raises(PlumblineError, match=r"here: problem 'ackley': dim: Field required: write `ackley-2`, say"):
        cheap_spec("ackley").check("here")


def test_specs_round_trip(cheap_spec: Make) -> None:
    spec = cheap_spec("ackley-20", "ei", alphas=[0.1, "1/sqrt(n)"], snapshots={"rounds": [1, 2]})
    again = TrialSpec.model_validate_json(spec.model_dump_json())
    assert again == spec


def test_an_infinite_option_reaches_the_job_that_runs_it(cheap_spec: Make) -> None:
    """JSON has no infinity, and null would be another value."""
    method = MethodRef(name="ocbo", options={"online": {"kappa": 1, "lengthscale": math.inf}})
    spec = cheap_spec().model_copy(update={"method": method})
    read = Chunk.model_validate_json(Chunk(spec=spec, seeds=(0,)).model_dump_json()).spec
    read.check("the job")
    assert canonical_options("method", "ocbo", read.method.options) == {"online": {"kappa": 1.0}}


def test_a_chunk_is_a_spec_a_seed(cheap_spec: Make) -> None:
    spec = cheap_spec(seed=5)
    chunk = Chunk(spec=spec, seeds=(3, 4))
    assert chunk.specs() == [spec.with_seed(3), spec.with_seed(4)]
    assert spec.seed == 5
    assert chunk.path(Path("trials")) == Path(f"trials/branin/random/{chunk.id}.parquet")


changes = st.fixed_dictionaries(
    {},
    optional={
        "problem": st.sampled_from(["branin", "forrester", "ackley-2", "ackley-3"]),
        "method": st.sampled_from(["random", "sobol", "ei", "ucb"]),
        "rounds": st.integers(0, 5),
        "size": st.integers(1, 5),
        "q": st.integers(1, 3),
        "holdout": st.integers(0, 3),
        "alphas": st.sampled_from([(0.1,), (0.2,), (0.1, 0.2), ("1/sqrt(n)",)]),
    },
)
seeds = st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(tuple)


@given(changes, changes, seeds, seeds)
def test_ids_differ_exactly_where_chunks_differ(
    cheap_spec: Make, one: dict[str, Any], two: dict[str, Any], some: tuple[int, ...], others: tuple[int, ...]
) -> None:
    first, second = Chunk(spec=cheap_spec(**one), seeds=some), Chunk(spec=cheap_spec(**two), seeds=others)
    assert (first.id == second.id) == (first == second)
    again = Chunk.model_validate_json(first.model_dump_json())
    assert again.id == first.id


def test_two_dimensions_are_one_too_many() -> None:
    with pytest.raises(ValidationError, match="which of the two is meant"):
        ProblemRef.model_validate({"name": "ackley-2", "options": {"dim": 3}})


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "seeds: at least 1 wanted, 0 given"),
        ([0, 1, 0], "seeds: 0 is there twice, as items 1 and 3 of the list"),
        ([0, True], "seeds.1: a number is wanted (got True)"),
        ([0, 0.0], "seeds: 0 is there twice"),
        ([-1], "seeds.0: Input should be greater than or equal to 0"),
        ([2**31], "seeds.0: Input should be less than or equal to"),
    ],
)
def test_a_job_has_each_seed_once(cheap_spec: Make, seeds: list[Any], message: str) -> None:
    with pytest.raises(PlumblineError) as caught:
        parse(Chunk, {"spec": cheap_spec().model_dump(mode="json"), "seeds": seeds}, "chunk")
    assert str(caught.value).startswith(f"chunk: {message}")


def test_snapshots_are_of_rounds_that_there_are(cheap_spec: Make) -> None:
    assert cheap_spec(rounds=3, snapshots={"rounds": [1, 3]}).diagnostics.snapshots
    with pytest.raises(ValidationError, match=r"diagnostics\.snapshots\.rounds: round 4 of a trial of 3 rounds"):
        cheap_spec(rounds=3, snapshots={"rounds": [4]})
