"""Methods and problems that misbehave: one row says who did what, and other seeds are not touched."""

import errno
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.test_functions import SyntheticTestFunction
from handy import Make, Register, bytes_of, each, rows_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.files import read_json
from plumbline.core.history import History
from plumbline.methods.base import Method, Proposal
from plumbline.registry.references import MethodRef
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import trial_key
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial, run_trials

ROUNDS, SIZE = 3, 4
Act = Callable[..., Any]


def chance() -> float:
    """A number of every global stream."""
    return (float(np.random.rand()) + random.random() + float(torch.rand(()))) / 3  # noqa: NPY002


class Moody(Method):
    """Draws from every stream that there is, until it is told to act in its call `at`, once."""

    act: Act | None = None
    at = 0
    calls = 0
    state: dict[str, Any] = {}  # noqa: RUF012
    told: Act | None = None

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        X = torch.rand(q, 2, generator=generator, dtype=torch.float64) * 0.5 + chance() / 2
        Moody.calls += 1
        if Moody.calls == Moody.at and Moody.act is not None:
            return Moody.act(history, X)
        return Proposal(X)

    def tell(self, X: torch.Tensor, Y: torch.Tensor) -> None:
        if Moody.told is not None and Moody.calls == Moody.at:
            Moody.told(X, Y)

    def state_dict(self) -> dict[str, Any]:
        return Moody.state if Moody.calls == Moody.at else {}


class Fickle(SyntheticTestFunction):
    """A sum with noise of every global stream, until it is told to act in its call `at`, once."""

    dim = 2
    continuous_inds = [0, 1]  # noqa: RUF012
    _bounds = [(0.0, 1.0), (0.0, 1.0)]  # noqa: RUF012
    _check_grad_at_opt = False
    act: Act | None = None
    at = 0
    calls = 0

    def _evaluate_true(self, X: torch.Tensor) -> torch.Tensor:
        Fickle.calls += 1
        Y = X.sum(dim=-1) + chance()
        if Fickle.calls == Fickle.at and Fickle.act is not None:
            return Fickle.act(X, Y)
        return Y


@pytest.fixture
def specs(register: Register, cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> list[TrialSpec]:
    """Two seeds of the toys."""
    register("method", "moody", Moody, "plumbline.methods.baselines")
    register("problem", "fickle", lambda options, context: Fickle(), "plumbline.problems.synthetic")
    return [cheap_spec("fickle", "moody", options={}, seed=seed, rounds=ROUNDS, size=SIZE, q=2) for seed in range(2)]


def calm() -> None:
    Moody.act, Moody.told, Moody.state, Fickle.act = None, None, {}, None
    Moody.calls = Fickle.calls = Moody.at = Fickle.at = 0


@pytest.fixture(autouse=True)
def afterwards() -> Any:
    calm()
    yield
    calm()


def gives(change: Callable[[torch.Tensor], Any]) -> Act:
    """A method's act that changes its points."""
    return lambda history, X: Proposal(change(X))


def does(act: Callable[[], Any]) -> Act:
    """An act of a method or problem that does something else, then answers."""

    def misbehave(first: Any, second: torch.Tensor) -> Any:
        act()
        return Proposal(second) if isinstance(first, History) else second

    return misbehave


def raises(error: BaseException) -> Act:
    def act(*_: Any) -> Any:
        raise error

    return act


def writes(history: History, X: torch.Tensor) -> Proposal:
    history.X.mul_(0.5)
    return Proposal(X)


def writes_by_numpy(history: History, X: torch.Tensor) -> Proposal:
    history.Y.numpy()[:] = 0.0
    return Proposal(X)


def writes_points(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    X.mul_(0.5)
    return Y


def recursion(*_: Any) -> Any:
    return recursion(*_)


def one_nan(X: torch.Tensor) -> torch.Tensor:
    X = X.clone()
    X[0, 1] = torch.nan
    return X


ERRORS: list[tuple[Act, str]] = [
    (raises(SystemExit(0)), "called sys.exit(0) ("),
    (raises(SystemExit("enough")), "called sys.exit('enough') ("),
    (raises(KeyboardInterrupt()), "KeyboardInterrupt ("),
    (raises(MemoryError("of the toy")), "MemoryError: of the toy ("),
    (raises(OSError("no server")), "OSError: no server ("),
    (raises(TimeoutError()), "TimeoutError ("),
    (raises(BrokenPipeError()), "BrokenPipeError ("),
    (raises(FileNotFoundError(errno.ENOENT, "No such file or directory", "toy.csv")), "'toy.csv' ("),
    (raises(RuntimeError("DefaultCPUAllocator: can't allocate memory")), "can't allocate memory ("),
    (recursion, "RecursionError: "),
    (raises(ZeroDivisionError("again\nand again")), "ZeroDivisionError: again and again ("),
    (lambda *_: torch.empty(2**60), "RuntimeError: "),
    (lambda *_: None, "returned None: a "),
    (lambda *_: 1.0, "returned a float"),
]
"""What a method and a problem may do alike, and what the row says of it."""

METHOD: list[tuple[Act, str]] = [
    (gives(lambda X: X[0]), "returned points of shape 2: n x 2 points"),
    (gives(lambda X: X[:, :1]), "returned points of shape 2 x 1"),
    (gives(lambda X: X.unsqueeze(0)), "returned points of shape 1 x 2 x 2"),
    (gives(lambda X: X.float()), "returned points of type float32"),
    (gives(lambda X: X.numpy()), "returned a ndarray"),
    (gives(one_nan), "nan]: input 2 must be finite"),
    (gives(lambda X: X - torch.inf), "input 1 must be finite"),
    (gives(lambda X: X + 1), "must lie in its bounds, [0, 1]"),
    (gives(lambda X: torch.cat([X, X])), "proposed 4 points, 2 were asked for"),
    (gives(lambda X: X[:1]), "proposed 1 points, 2 were asked for"),
    (gives(lambda X: X[:0]), "proposed 0 points, 2 were asked for"),
    (writes, "wrote into the history"),
    (writes_by_numpy, "wrote into the history"),
    (lambda history, X: X, "returned a Tensor: a Proposal is wanted"),
    (lambda history, X: Proposal(X, notes={"why": "text"}), "returned `notes` with 'why': 'text'"),  # type: ignore[dict-item]
    (lambda history, X: Proposal(X, notes={"why": float("nan")}), "returned `notes` with 'why': nan"),
    (lambda history, X: Proposal(X, notes={1: 2.0}), "returned `notes` with 1: 2.0"),  # type: ignore[dict-item]
    (lambda history, X: Proposal(X, notes=[1.0]), "returned `notes` of type list"),  # type: ignore[arg-type]
    (lambda history, X: Proposal(X, seconds={"fit": float("inf")}), "returned `seconds` with 'fit': inf"),
    (lambda history, X: Proposal(X, observed=torch.ones(2)), "returned `observed` that is no tensor of booleans"),
    (lambda history, X: Proposal(X, observed=torch.ones(2, 2) > 0), "asks for outcomes (2, 2); there are (2, 1)"),
    (lambda history, X: Proposal(X, predict=lambda X: X / "2"), "TypeError: "),  # type: ignore[arg-type, return-value, operator]
]

PROBLEM: list[tuple[Act, str]] = [
    (lambda X, Y: torch.stack([Y, Y], dim=-1), "returned 2 x 2: 2 x 1 in float64 is wanted"),
    (lambda X, Y: Y[:1], "returned 1: 2 x 1"),
    (lambda X, Y: Y.sum(), "returned a single number: 2 x 1"),
    (lambda X, Y: Y.float(), "returned float32"),
    (lambda X, Y: Y * torch.nan, "nan] at evaluation"),
    (lambda X, Y: Y + torch.inf, "inf] at evaluation"),
    (writes_points, "wrote into the points"),
]


CASES = [*((True, *one) for one in ERRORS + METHOD), *((False, *one) for one in ERRORS + PROBLEM)]


def after(store: Path, specs: list[TrialSpec]) -> list[TrialFolder]:
    """Run both seeds in one job; the first one misbehaves."""
    return run_trials(specs, store, store)


def check_failure(folder: TrialFolder, culprit: str, says: str) -> None:
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["ok"] * (len(rows) - 1) + ["error"]
    message = rows[-1]["error"]
    assert culprit in message
    assert says in message
    assert "\n" not in message
    assert all(0 <= x <= 1 for row in rows[:-1] for x in row["x"])


@pytest.fixture
def healthy(specs: list[TrialSpec], tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The records of each seed alone."""
    root = tmp_path_factory.mktemp("alone")
    found = [bytes_of(run_trial(spec, root / str(spec.seed), root)) for spec in specs]
    calm()
    return found


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=st.sampled_from(CASES), data=st.data())
def test_a_row_names_the_culprit_and_other_seeds_are_as_alone(
    case: tuple[bool, Act, str],
    data: st.DataObject,
    specs: list[TrialSpec],
    healthy: list[bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    of_method, act, says = case
    calm()
    if of_method:
        Moody.at, Moody.act = data.draw(st.integers(1, ROUNDS)), act
    else:
        Fickle.at, Fickle.act = data.draw(st.integers(2, 1 + ROUNDS)), act
    root = tmp_path_factory.mktemp("odd")
    directory = Path.cwd()
    first, second = after(root, specs)
    assert Path.cwd() == directory
    check_failure(first, "method 'moody'" if of_method else "problem 'fickle'", says)
    assert bytes_of(second) == healthy[1]
    if says.endswith(" ("):
        assert f"{Path(__file__)}, line " in rows_of(first)[-1]["error"]
    # What was true of the rows before stays so, and mended code goes on from there.
    calm()
    first.forget()
    assert bytes_of(run_trial(specs[0], root, root)) == healthy[0]


@given(at=st.integers(1, 1 + ROUNDS), q=st.integers(1, 2))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_exception_of_a_problem_says_at_which_evaluation_and_where(
    at: int, q: int, specs: list[TrialSpec], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As a value that is not finite does; the points of a round, and of the initial design, are evaluated at once."""
    spec = specs[0].model_copy(update={"budget": specs[0].budget.model_copy(update={"q": q})})
    calm()
    whole = rows_of(run_trial(spec, *[tmp_path_factory.mktemp("whole")] * 2))
    calm()
    Fickle.at, Fickle.act = at, raises(RuntimeError("tripped"))
    root = tmp_path_factory.mktemp("odd")
    folder = run_trial(spec, root, root)
    first, count = (0, SIZE) if at == 1 else (SIZE + q * (at - 2), q)
    points = [row["x"] for row in whole[first : first + count]]
    which = f"one of evaluations {first} to {first + count - 1}, x = {points}"
    if count == 1:
        which = f"evaluation {first}, x = {points[0]}"
    says = f"RuntimeError: tripped (problem 'fickle' at {which}, {Path(__file__)}, line "
    assert rows_of(folder)[-1]["error"].startswith(says)
    assert read_json(folder.error_path)["error"].startswith(says)


@pytest.mark.parametrize("of_method", [True, False])
@pytest.mark.parametrize(
    "act",
    [
        lambda: os.chdir("/"),
        lambda: np.random.seed(3),  # noqa: NPY002
        lambda: random.seed(3),
        lambda: torch.manual_seed(3),
        chance,
    ],
)
def test_what_is_global_is_put_back(
    of_method: bool, act: Callable[[], Any], specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path
) -> None:
    Moody.at = Fickle.at = 2
    Moody.act, Fickle.act = (does(act), None) if of_method else (None, does(act))
    before = Path.cwd(), np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()  # noqa: NPY002
    first, second = after(tmp_path, specs)
    now = Path.cwd(), np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert now == before
    assert not first.failed
    assert bytes_of(second) == healthy[1]


class UnspeakableError(Exception):
    """Its words raise another error."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_that_cannot_be_printed_ends_its_trial_alone(
    specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path
) -> None:
    Moody.at, Moody.act = 2, raises(UnspeakableError())
    first, second = after(tmp_path, specs)
    check_failure(first, "method 'moody'", "UnspeakableError: an error that cannot be printed")
    assert bytes_of(second) == healthy[1]


def noises(folder: TrialFolder) -> list[float]:
    """What the toy problem added to each sum."""
    return [row["f"][0] - sum(row["x"]) for row in rows_of(folder)]


@pytest.mark.parametrize("draws", [0, 3])
def test_a_problems_noise_depends_neither_on_the_method_nor_on_lockstep(
    draws: int, specs: list[TrialSpec], tmp_path: Path
) -> None:
    Moody.at, Moody.act = 1, does(lambda: [chance() for _ in range(draws)])
    (moody,) = run_trials(specs[:1], tmp_path, tmp_path)
    (random_search,) = run_trials(
        [specs[0].model_copy(update={"method": MethodRef(name="random")})], tmp_path, tmp_path
    )
    assert noises(moody) == pytest.approx(noises(random_search), abs=1e-12)
    calm()
    together = run_trials(specs, tmp_path / "together", tmp_path, lockstep=2)
    alone = [run_trial(spec, tmp_path / "alone", tmp_path) for spec in specs]
    for one, other in zip(together, alone, strict=True):
        assert noises(one) == pytest.approx(noises(other), abs=1e-12)


def test_a_seed_is_the_same_after_others(specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path) -> None:
    np.random.seed(1)  # noqa: NPY002
    assert [bytes_of(folder) for folder in run_trials(specs[::-1], tmp_path, tmp_path, ration=each)] == healthy[::-1]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (
            {"ok": 1, "model": np.zeros(2)},
            "entry 'model' of its `state_dict`, a ndarray, cannot be saved and read back",
        ),
        ({"model": object()}, "entry 'model'"),
        ({"model": lambda: 0}, "entry 'model'"),
        ([1], "its `state_dict` is a list"),
    ],
)
def test_a_state_that_would_be_lost(state: Any, says: str, specs: list[TrialSpec], tmp_path: Path) -> None:
    Moody.at, Moody.state = 1, state
    (folder,) = run_trials(specs[:1], tmp_path, tmp_path)
    check_failure(folder, "method 'moody'", says)


def test_a_method_may_write_into_what_it_is_told(specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path) -> None:
    Moody.at, Moody.told = 2, lambda X, Y: (X.zero_(), Y.zero_())
    assert bytes_of(run_trial(specs[0], tmp_path, tmp_path)) == healthy[0]


def test_a_gradient_is_left_behind(specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path) -> None:
    Moody.at, Moody.act = 2, gives(lambda X: X.requires_grad_())
    assert bytes_of(run_trial(specs[0], tmp_path, tmp_path)) == healthy[0]


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("too many"),
        OSError(errno.ENOSPC, "No space left on device", "scratch"),
        ChildProcessError("a worker was killed"),
    ],
)
@pytest.mark.parametrize("of_method", [True, False])
def test_an_error_of_the_machine_ends_the_job(
    error: Exception, of_method: bool, specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path
) -> None:
    Moody.at = Fickle.at = 2
    Moody.act, Fickle.act = (raises(error), None) if of_method else (None, raises(error))
    with pytest.raises(type(error)):
        after(tmp_path, specs)
    folder = TrialFolder(tmp_path, trial_key(specs[0], tmp_path))
    assert not folder.done
    assert not folder.failed
    calm()
    assert [bytes_of(folder) for folder in after(tmp_path, specs)] == healthy


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_real_interrupt_ends_the_job(
    swallowed: bool, specs: list[TrialSpec], healthy: list[bytes], tmp_path: Path
) -> None:
    def press() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if not swallowed:
                raise

    Moody.at, Moody.act = 3, does(press)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        after(tmp_path, specs)
    assert signal.getsignal(signal.SIGINT) is before
    assert caught.value.args == ((signal.SIGINT,) if swallowed else ())
    calm()
    assert [bytes_of(folder) for folder in after(tmp_path, specs)] == healthy
