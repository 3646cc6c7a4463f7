"""The runner: failures that are rows, those who watch, several seeds in lockstep."""

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from handy import Make, Register, bytes_of, each, interrupted, rows_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_operator.utils.errors import NotPSDError

from plumbline.core.ambient import State, present, put
from plumbline.core.device import device_called
from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.forecasts.predictive import GaussianPredictive
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, Method, Proposal
from plumbline.methods.gp.single_outcome import GPMethod
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.records import read_table
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.trials import run_trial, run_trials, session
from plumbline.trials.rounds import GROUP_HALVED
from plumbline.trials.runner import parts, record_crash
from plumbline.trials.session import describe


def test_a_trial_that_raises_is_a_row(cheap_spec: Make, toy_problem: Callable[..., Any], tmp_path: Path) -> None:
    toy_problem(ZeroDivisionError("the oracle\nis broken"), after=6)
    spec = cheap_spec("toy", "random", rounds=5)
    whole = run_trial(spec, tmp_path, tmp_path)
    assert whole.failed
    assert whole.done
    rows = rows_of(whole)
    assert [row["status"] for row in rows] == ["ok"] * 6 + ["error"]
    assert (rows[-1]["iteration"], rows[-1]["evaluation"], rows[-1]["x"]) == (3, 6, [])
    assert rows[-1]["error"].startswith("ZeroDivisionError: the oracle is broken")
    assert "\n" not in rows[-1]["error"]
    error = json.loads(whole.error_path.read_text())
    assert error["round"] == 3
    assert "in _evaluate_true" in error["traceback"]
    assert error["error"] == rows[-1]["error"]
    assert whole.provenance()["spec"]["problem"]["name"] == "toy"
    joined = whole.table(spec).to_pylist()
    assert joined[-1]["round_seconds"] is None
    assert joined[-2]["round_seconds"] > 0


def test_a_failed_seed_does_not_stop_its_chunk(cheap_spec: Make, register: Register, tmp_path: Path) -> None:
    from plumbline.cli.pipeline.trials import trials

    class FailsOnce(Method):
        asked = 0

        def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
            FailsOnce.asked += 1
            if FailsOnce.asked == 2:
                raise RuntimeError("only the first seed")
            return Proposal(self.domain.bounds[:1])

    register("method", "fails-once", FailsOnce, "plumbline.methods.baselines")
    chunk = Chunk(spec=cheap_spec("branin", "fails-once", options={}), seeds=(0, 1))
    output = tmp_path / "out.parquet"
    trials([chunk.model_dump_json()], [output], tmp_path / "store", tmp_path)
    frame = read_table(output).to_pandas(maps_as_pydicts="strict")
    assert frame.groupby("seed")["status"].apply(list).to_dict() == {0: ["ok"] * 5 + ["error"], 1: ["ok"] * 7}
    assert "x" not in frame, "points stay in the store"


def test_a_trial_that_cannot_begin(cheap_spec: Make, tmp_path: Path) -> None:
    problem = {"name": "molecules", "options": {"dataset": "nothing", "target": "qed"}}
    spec = cheap_spec(problem, "random")
    folder = run_trial(spec, tmp_path, tmp_path)
    rows = folder.table(spec).to_pylist()
    assert len(rows) == 1
    assert (rows[0]["status"], rows[0]["iteration"]) == ("error", 0)
    assert (rows[0]["roles"], rows[0]["ref_point"]) == (None, None)
    assert math.isnan(rows[0]["optimum"])
    assert "`plumbline features nothing` builds them" in rows[0]["error"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_an_objective_that_is_not_finite(
    value: float, cheap_spec: Make, toy_problem: Callable[..., Any], tmp_path: Path
) -> None:
    toy_problem(value, after=5)
    folder = run_trial(cheap_spec("toy", "random", rounds=3), tmp_path, tmp_path)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 5 + ["error"]
    message = rows[-1]["error"]
    assert "problem 'toy' returned" in message
    assert "at evaluation 5, x = [0." in message
    assert "must be finite" in message


@pytest.mark.parametrize(
    ("error", "remedy"),
    [(NotPSDError("not PSD\nat all"), "raise the noise floor"), (ModelFittingError("all fits failed"), "other priors")],
)
def test_numerical_failures_come_with_a_remedy(
    error: Exception, remedy: str, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting = GPMethod.fit

    def fit(self: GPMethod, history: History) -> Any:
        if len(history) == 4:
            raise error
        return fitting(self, history)

    monkeypatch.setattr(GPMethod, "fit", fit)
    folder = run_trial(cheap_spec("forrester", "ei", size=3), tmp_path, tmp_path)
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * 4 + ["error"]
    assert type(error).__name__ in rows[-1]["error"]
    assert remedy in rows[-1]["error"]
    assert "\n" not in rows[-1]["error"]


def test_descriptions_are_one_line() -> None:
    assert describe(ValueError("a\n  b")).startswith("ValueError: a b (")


def test_trials_of_several_threads_are_those_of_one(cheap_spec: Make, tmp_path: Path) -> None:
    """Random streams are of the process: each thread would draw from the others' seeds."""
    noisy = {"name": "branin", "options": {"noise_std": 1.0}}
    specs = [cheap_spec(noisy, "ts", options={}, rounds=3, seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda spec: run_trial(spec, tmp_path / "threads", tmp_path), specs))
    for spec, folder in zip(specs, at_once, strict=True):
        alone = run_trial(spec, tmp_path / "alone", tmp_path)
        assert [row["y"] for row in rows_of(folder)] == [row["y"] for row in rows_of(alone)]


@pytest.mark.parametrize("method", ["ei", "sobol"])
def test_what_a_script_sets_changes_no_number(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", method, rounds=2)
    usual = rows_of(run_trial(spec, tmp_path / "usual", tmp_path))
    before = present()
    put(State(torch.float64, False, dict.fromkeys(before.errors, "raise")))
    try:
        changed = rows_of(run_trial(spec, tmp_path / "changed", tmp_path))
        assert torch.get_default_dtype() == torch.float64
    finally:
        put(before)
    assert [row["x"] for row in changed] == [row["x"] for row in usual]


def test_what_a_module_of_ones_own_sets_is_for_all_its_trials_and_no_others(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sets_double.py").write_text(
        "import torch\ntorch.set_default_dtype(torch.float64)\n\n\nclass Walk:\n"
        "    def __init__(self, bounds): self.low, self.high = bounds\n"
        "    def tell(self, x, y): pass\n"
        "    def ask(self): return self.low + (self.high - self.low) * torch.tensor(0.1).item()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def of_theirs(store: str) -> list[object]:
        spec = cheap_spec("branin", "ask-tell", options={"optimiser": "sets_double:Walk"}, rounds=1)
        return [row["x"] for row in rows_of(run_trial(spec, tmp_path / store, tmp_path))]

    first = of_theirs("first")
    assert torch.get_default_dtype() == torch.float32
    run_trial(cheap_spec("branin", rounds=1), tmp_path / "ours", tmp_path)
    assert of_theirs("second") == first, "Python does not load the module again"
    assert torch.get_default_dtype() == torch.float32


def test_a_finished_trial_is_not_run_again(cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = cheap_spec()
    before = bytes_of(run_trial(spec, tmp_path, tmp_path))
    monkeypatch.setattr(session, "Trial", None)
    assert bytes_of(run_trial(spec, tmp_path, tmp_path)) == before


class Witness:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.y: list[float] = []

    def start(self, key: str, spec: TrialSpec, done: int, best: float) -> None:
        self.seen.append(("start", done))
        self.begun = best

    def round(self, rows: list[dict[str, Any]], seconds: dict[str, float]) -> None:
        assert set(seconds) == {"fit_seconds", "acquire_seconds", "evaluate_seconds", "round_seconds"}
        assert rows[0]["roles"] == ["objective"]
        self.seen.append(("round", rows[0]["iteration"], len(rows)))
        self.y += [row["y"][0] for row in rows]

    def end(self, error: str | None) -> None:
        self.seen.append(("end", error))


def test_a_trial_that_another_process_has_ended_is_not_recorded_as_crashed(cheap_spec: Make, tmp_path: Path) -> None:
    folder = run_trial(cheap_spec("branin", rounds=1), tmp_path, tmp_path)
    before = folder.records_path.read_bytes()
    again = record_crash(cheap_spec("branin", rounds=1), tmp_path, tmp_path, "its process ended: SIGSEGV(-11)", "")
    assert again.done
    assert not again.failed
    assert folder.records_path.read_bytes() == before


def test_forecasts_that_break_the_schema_fail_their_own_trial(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method may forecast what is no probability; the job's other seeds run, and the failure is kept."""
    monkeypatch.setattr(GaussianPredictive, "cdf", lambda self, y: torch.full_like(y, 1 + 1e-6))
    specs = [cheap_spec("branin", "ei", rounds=1, seed=seed) for seed in range(2)]
    for folder in run_trials(specs, tmp_path, tmp_path):
        assert folder.failed
        (row,) = rows_of(folder)
        assert "'pit' holds 1.000001" in row["error"]


def test_observers_are_told(cheap_spec: Make, tmp_path: Path) -> None:
    spec, first, second = cheap_spec(rounds=2), Witness(), Witness()
    with interrupted(2, "after the answer", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        run_trial(spec, tmp_path, tmp_path, [first], ration=each)
    run_trial(spec, tmp_path, tmp_path, [second])
    assert first.seen == [("start", 0), ("round", 0, 4), ("round", 1, 1)]
    assert second.seen == [("start", 1), ("round", 2, 1), ("end", None)]
    assert (first.begun, second.begun) == (-inf, max(first.y)), "of the restored log"


def test_every_trial_has_observers_of_its_own(cheap_spec: Make, tmp_path: Path) -> None:
    made: list[Witness] = []

    def watch() -> list[Witness]:
        made.append(Witness())
        return made[-1:]

    run_trials([cheap_spec(seed=seed, rounds=1) for seed in range(2)], tmp_path, tmp_path, watch)
    assert [witness.seen for witness in made] == [[("start", 0), ("round", 0, 4), ("round", 1, 1), ("end", None)]] * 2


def test_a_failed_trial_goes_on_once_it_is_forgotten(
    cheap_spec: Make, toy_problem: Callable[..., Any], tmp_path: Path
) -> None:
    toy = toy_problem(ZeroDivisionError("for now"), after=6)
    spec = cheap_spec("toy", "random", rounds=5)
    failed = run_trial(spec, tmp_path, tmp_path, ration=each)
    evaluated = toy.count
    failed.forget()
    toy.after = 10_000  # mended

    mended = run_trial(spec, tmp_path, tmp_path)

    assert not mended.failed
    assert [row["status"] for row in rows_of(mended)] == ["ok"] * len(rows_of(mended))
    assert toy.count - evaluated < len(rows_of(mended))  # the rounds before the failure were not run again


def test_an_error_left_by_a_killed_attempt_is_cleared(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("branin", "random", rounds=1)
    folder = TrialFolder(tmp_path, trial_key(spec, tmp_path))
    folder.path.mkdir()
    folder.write_json(folder.error_path, {"error": "killed before its records were written"})
    assert not run_trial(spec, tmp_path, tmp_path).failed


class Choir(Method):
    """Answers several seeds at once, as far as the memory goes; one seed can be out of tune.

    What comes next is its state, so that a question asked twice shows.
    """

    lockstep_size: ClassVar[int] = 4
    memory = 99
    asked: ClassVar[list[int]] = []
    bad: ClassVar[set[int]] = set()
    whole = False
    """Whether a bad seed spoils the answer of all."""

    def __init__(self, domain: Domain, options: Any) -> None:
        super().__init__(domain, options)
        self.step = torch.zeros(2, dtype=torch.float64)

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        self.step += torch.rand(2, generator=generator, dtype=torch.float64)
        return Proposal((self.step % 1.0).expand(q, -1).clone(), notes={"device": 0.0})

    @classmethod
    def ask_many(cls, questions: Sequence[AskRequest]) -> list[Proposal | Exception]:
        Choir.asked.append(len(questions))
        answers = super().ask_many(questions)
        if len(questions) > Choir.memory:
            raise torch.cuda.OutOfMemoryError("too many")
        for i, question in enumerate(questions):
            if question.stream.initial_seed() in Choir.bad:
                if Choir.whole:
                    raise RuntimeError("out of tune")
                answers[i] = RuntimeError("out of tune")
        return answers

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            self.step = state["step"].clone()


@pytest.fixture
def choir(register: Register, cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[TrialSpec]]:
    """Return what makes the specs of some seeds of the choir."""
    register("method", "choir", Choir, "plumbline.methods.baselines")
    for name, value in {"asked": [], "bad": set(), "memory": 99, "whole": False}.items():
        monkeypatch.setattr(Choir, name, value)

    def make(seeds: int = 4, rounds: int = 3) -> list[TrialSpec]:
        noisy = {"name": "branin", "options": {"noise_std": 1.0}}
        return [cheap_spec(noisy, "choir", options={}, seed=seed, rounds=rounds, q=2) for seed in range(seeds)]

    return make


def alone(specs: Sequence[TrialSpec], root: Path) -> list[bytes]:
    """The records of seeds that run one after another."""
    found = [bytes_of(run_trial(spec, root, root)) for spec in specs]
    Choir.asked.clear()
    return found


def stream_of(spec: TrialSpec, iteration: int) -> int:
    from plumbline.core.seeding import generator, identity

    return generator(identity(spec.problem.name, spec.problem.options), spec.seed, "method", iteration).initial_seed()


@pytest.mark.parametrize(("seeds", "sizes"), [(1, [1] * 3), (3, [3] * 3), (6, [4] * 3 + [2] * 3)])
def test_seeds_run_in_lockstep(
    seeds: int, sizes: list[int], choir: Callable[..., list[TrialSpec]], tmp_path: Path
) -> None:
    specs = choir(seeds)
    expected = alone(specs, tmp_path / "alone")
    folders = run_trials(specs, tmp_path / "store", tmp_path)
    assert [bytes_of(folder) for folder in folders] == expected
    assert Choir.asked == sizes


@pytest.mark.slow
def test_a_run_says_how_many_seeds_take_steps_jointly(
    cheap_spec: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of five seeds is done already, and the records of all are those of trials that run alone."""
    options = {"search": {"restarts": 2, "raw_samples": 8, "maxiter": 5}}
    specs = [cheap_spec("branin", "ei", options=options, seed=seed, rounds=3) for seed in range(5)]
    expected = [bytes_of(run_trial(spec, tmp_path / "alone", tmp_path)) for spec in specs]
    sizes: list[int] = []
    inner = GPMethod.ask_many.__func__  # type: ignore[attr-defined]

    def noting(cls: type[Method], requests: Sequence[AskRequest]) -> list[Any]:
        sizes.append(len(requests))
        return inner(cls, requests)

    monkeypatch.setattr(GPMethod, "ask_many", classmethod(noting))
    run_trial(specs[1], tmp_path / "store", tmp_path)
    sizes.clear()
    folders = run_trials(specs, tmp_path / "store", tmp_path, lockstep=4)
    assert [bytes_of(folder) for folder in folders] == expected
    assert sizes == [3, 3, 3, 1, 1, 1]


CONFORMAL: dict[str, Any] = {
    "posterior": {"candidates": 16},
    "ratio": {"hidden": 8},
    "search": {"chains": 2, "steps": 6, "burn_in": 2, "raw_samples": 8},
}
"""Options of a conformal method whose rounds are cheap."""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cei", "cucb"])
def test_conformal_seeds_in_lockstep_end_with_the_bytes_of_seeds_alone(
    method: str, cheap_spec: Make, tmp_path: Path
) -> None:
    """Also after interruptions, which leave the seeds at different rounds, and where one of them fails."""
    specs = [cheap_spec("branin", method, options=CONFORMAL, seed=seed, rounds=3) for seed in range(3)]
    expected = [bytes_of(run_trial(spec, tmp_path / "alone", tmp_path)) for spec in specs]
    store = tmp_path / "store"
    for iteration, point in ((1, "after the save"), (2, "before the answer")):
        with interrupted(iteration, point, KeyboardInterrupt()) as raised, suppress(KeyboardInterrupt):
            run_trials(specs, store, tmp_path, ration=each, lockstep=3)
        assert raised
    assert [bytes_of(folder) for folder in run_trials(specs, store, tmp_path, lockstep=3)] == expected


@pytest.mark.slow
def test_of_conformal_seeds_in_lockstep_only_those_fail_that_raise(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are asked again one by one, by methods that know nothing of the first attempt."""
    from plumbline.methods.conformal.method import ConformalMethod

    specs = [cheap_spec("branin", "cucb", options=CONFORMAL, seed=seed, rounds=3) for seed in range(3)]
    expected = [bytes_of(run_trial(spec, tmp_path / "alone", tmp_path)) for spec in specs]
    bad, starting = stream_of(specs[1], 2), ConformalMethod.start_walk

    def start_walk(self: Any, utility: Any, round: Any) -> Any:
        if round.generator.initial_seed() == bad:
            raise NotPSDError("out of tune")
        return starting(self, utility, round)

    monkeypatch.setattr(ConformalMethod, "start_walk", start_walk)
    folders = run_trials(specs, tmp_path / "store", tmp_path, lockstep=3)
    assert [folder.failed for folder in folders] == [False, True, False]
    assert [bytes_of(folder) for folder in folders if not folder.failed] == [*expected[:1], *expected[2:]]
    last = rows_of(folders[1])[-1]
    assert (last["iteration"], last["status"]) == (2, "error")


def test_the_same_seed_twice_is_one_trial(choir: Callable[..., list[TrialSpec]], tmp_path: Path) -> None:
    one, two = choir(2)
    folders = run_trials([one, two, one], tmp_path, tmp_path)
    assert [folder.key for folder in folders] == [folders[0].key, folders[1].key, folders[0].key]
    assert Choir.asked == [2] * 3


@pytest.mark.parametrize("whole", [False, True])
def test_of_a_group_only_those_fail_that_raise(
    whole: bool, choir: Callable[..., list[TrialSpec]], tmp_path: Path
) -> None:
    specs = choir(4)
    expected = alone(specs, tmp_path / "alone")
    Choir.bad.add(stream_of(specs[1], 2))
    Choir.whole = whole
    folders = run_trials(specs, tmp_path / "store", tmp_path)
    assert [folder.failed for folder in folders] == [False, True, False, False]
    assert [bytes_of(folder) for folder in folders if not folder.failed] == [*expected[:1], *expected[2:]]
    last = rows_of(folders[1])[-1]
    assert (last["iteration"], last["status"]) == (2, "error")
    assert last["error"].startswith("RuntimeError: out of tune")
    assert Choir.asked == ([4, 4, 1, 1, 1, 1, 3] if whole else [4, 4, 3])


@pytest.mark.slow
def test_of_seeds_that_are_fitted_together_only_those_fail_that_raise(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are asked again, by methods that know nothing of the first attempt."""
    from plumbline.methods.sparse.method import SparseMethod

    options = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}, "inducing": 5, "training": {"epochs": 2}}
    specs = [cheap_spec("branin", "elbo-ei", options=options, seed=seed, rounds=3, size=8) for seed in range(3)]
    expected = [bytes_of(run_trial(spec, tmp_path / "alone", tmp_path)) for spec in specs]
    bad, searching = stream_of(specs[2], 2), SparseMethod.search

    def search(self: Any, utility: Any, surrogate: Any, round: Any) -> Any:
        if round.generator.initial_seed() == bad:
            raise NotPSDError("out of tune")
        return searching(self, utility, surrogate, round)

    monkeypatch.setattr(SparseMethod, "search", search)
    folders = run_trials(specs, tmp_path / "store", tmp_path)
    assert [folder.failed for folder in folders] == [False, False, True]
    assert [bytes_of(folder) for folder in folders[:2]] == expected[:2]
    last = rows_of(folders[2])[-1]
    assert (last["iteration"], last["status"]) == (2, "error")


def test_a_problem_that_raises_fails_its_own_seed(
    register: Register, toy_problem: Callable[..., Any], cheap_spec: Make, tmp_path: Path
) -> None:
    toy_problem(ZeroDivisionError("broken"), after=4 + 4 + 1)  # two designs, and the first answer
    register("method", "choir", Choir, "plumbline.methods.baselines")
    specs = [cheap_spec("toy", "choir", options={}, seed=seed, rounds=1) for seed in range(2)]
    assert [folder.failed for folder in run_trials(specs, tmp_path, tmp_path)] == [False, True]


@pytest.mark.parametrize(("memory", "sizes"), [(2, [4, 2, 2] + [2, 2] * 2), (1, [4, 2, 1, 1, 1, 1] + [1] * 8)])
def test_a_group_too_large_for_a_gpu_is_halved(
    memory: int, sizes: list[int], choir: Callable[..., list[TrialSpec]], tmp_path: Path
) -> None:
    specs = choir(4)
    alone(specs, tmp_path / "alone")
    Choir.memory = memory
    folders = run_trials(specs, tmp_path / "store", tmp_path)
    assert Choir.asked == sizes, "what did not fit is not tried again"
    for folder, spec in zip(folders, specs, strict=True):
        rows = rows_of(folder)
        events = {row["iteration"]: row["events"] for row in rows}
        assert events == {0: [], 1: [GROUP_HALVED], 2: [], 3: []}
        expected = rows_of(run_trial(spec, tmp_path / "alone", tmp_path))
        assert [row | {"events": []} for row in rows] == expected, "a question asked again is the same question"


def test_one_trial_too_large_for_a_gpu_is_an_accident(choir: Callable[..., list[TrialSpec]], tmp_path: Path) -> None:
    Choir.memory = 0
    specs = choir(3)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        run_trials(specs, tmp_path, tmp_path, ration=each)
    assert Choir.asked == [3, 2, 1]
    folders = [TrialFolder(tmp_path, trial_key(spec, tmp_path)) for spec in specs]
    assert not any(folder.done or folder.failed for folder in folders)
    assert all(folder.checkpoint_path.exists() for folder in folders), "another attempt goes on"
    Choir.memory = 99
    expected = alone(specs, tmp_path / "alone")
    assert [bytes_of(folder) for folder in run_trials(specs, tmp_path, tmp_path)] == expected


stops = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["before the answer", "at its rename", "after the save"])),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops)
def test_an_interrupted_group_gives_the_same_bytes(
    choir: Callable[..., list[TrialSpec]], tmp_path_factory: pytest.TempPathFactory, stops: list[tuple[int, str]]
) -> None:
    """After an interruption the seeds of a group are at different rounds."""
    root, specs = tmp_path_factory.mktemp("group"), choir(3)
    expected = alone(specs, root / "alone")
    for iteration, point in stops:
        with interrupted(iteration, point, KeyboardInterrupt()), suppress(KeyboardInterrupt):
            run_trials(specs, root, root, ration=each)
    assert [bytes_of(folder) for folder in run_trials(specs, root, root)] == expected


@pytest.mark.parametrize(("n", "size", "lengths"), [(0, 3, []), (3, 3, [3]), (7, 3, [3, 3, 1])])
def test_parts(n: int, size: int, lengths: list[int]) -> None:
    found = parts(range(n), size)
    assert [len(part) for part in found] == lengths
    assert [i for part in found for i in part] == list(range(n))


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_called("cpu").type == device_called("auto").type == "cpu"
    with pytest.raises(PlumblineError, match="no GPU that torch can use"):
        device_called("cuda")
    with pytest.raises(PlumblineError, match="unknown device 'gpu': auto, cpu or cuda"):
        device_called("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_called("cpu").type == "cpu"
    assert device_called("auto").type == device_called("cuda").type == "cuda"


def test_the_device_is_recorded(cheap_spec: Make, tmp_path: Path) -> None:
    assert run_trial(cheap_spec(rounds=1), tmp_path, tmp_path).provenance()["device"] == "cpu"
