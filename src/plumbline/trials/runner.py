"""The runner: runs or resumes trials in the store, one after another or several in lockstep."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.plugins import (
    Signals,
    culprit_of,
    is_of_machine,
    kept_streams,
    noticing_signals,
    place_in_stack,
    place_of,
    plugin_code,
)
from plumbline.methods.ask import CPU, AskRequest
from plumbline.methods.base import Method, Proposal, lockstep_size
from plumbline.problems.base import EvaluationContext, SharedCache
from plumbline.problems.evaluation import ProblemMetadata
from plumbline.registry.packages import place_in_packages
from plumbline.store.folder import SEE_ERROR, TrialFolder
from plumbline.store.keys import design_key, trial_key
from plumbline.store.observers import Observer
from plumbline.store.spec import TrialSpec
from plumbline.trials.checkpoint import Checkpoint, Ration
from plumbline.trials.design_cache import DesignCache
from plumbline.trials.log import Log, Step
from plumbline.trials.results import constants_of, write_results
from plumbline.trials.trial import Trial

GROUP_HALVED = "GroupHalved"
"""The event of a round whose requests exceeded the memory of a GPU."""

Sessions = Sequence[tuple["TrialSession", Trial]]
"""Sessions with their open trials."""

Watch = Callable[[], Sequence[Observer]]
"""Makes the observers of a trial."""


T = TypeVar("T")


def parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return `items` in parts of `size`, the last one perhaps smaller."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def run_trial(
    spec: TrialSpec,
    store: Path,
    data: Path,
    observers: Sequence[Observer] = (),
    device: torch.device = CPU,
    ration: Callable[[], Ration] = Ration,
) -> TrialFolder:
    """Run or resume one trial unless it is done; see `run_trials`."""
    return run_trials([spec], store, data, lambda: observers, device, ration)[0]


def run_trials(
    specs: Sequence[TrialSpec],
    store: Path,
    data: Path,
    watch: Watch = tuple,
    device: torch.device = CPU,
    ration: Callable[[], Ration] = Ration,
    lockstep: int = 1,
) -> list[TrialFolder]:
    """Run or resume the seeds of one method on one task that are not done.

    An error of a method or problem ends its own trial with an error record. Errors of the machine (a full disk, no
    memory of a GPU) are raised, and the checkpoints stay for the next attempt. Seeds of a method that takes steps
    jointly may run in lockstep, which changes their seconds but no other number.

    Args:
        specs: specs of the trials.
        store: folder of all trials.
        data: folder of built features.
        watch: makes the observers of each trial.
        device: device for the methods' computations.
        ration: makes the limit on the saves of each trial.
        lockstep: greatest number of seeds in lockstep, where the method's own `lockstep_size` is not greater.

    Returns:
        The folder of each trial, with its records in place.

    Raises:
        KeyboardInterrupt: a signal came.
    """
    with kept_streams(), noticing_signals() as signals:
        return _run_groups(specs, store, data, watch, device, ration, lockstep, signals)


def record_crash(spec: TrialSpec, store: Path, data: Path, message: str, stack: str) -> TrialFolder:
    """Write the results of a trial whose process crashed: what its last checkpoint has, and the error.

    Args:
        spec: spec of the trial.
        store: folder of all trials.
        data: folder of built features.
        message: of the error.
        stack: Python's stack at the crash, as `faulthandler` writes it; may be empty.
    """
    folder = TrialFolder(store, trial_key(spec, data))
    place = place_in_stack(stack)
    error = PlumblineError(f"{message} ({place})" if place else message)
    error.add_note(stack)
    with folder.lock():
        session = TrialSession(spec, folder, data, tuple, CPU, Ration(), SharedCache(), 1, None)
        session.log, _ = session.checkpoint.restore()
        session.fail(error)
    return folder


def _run_groups(
    specs: Sequence[TrialSpec],
    store: Path,
    data: Path,
    watch: Watch,
    device: torch.device,
    ration: Callable[[], Ration],
    lockstep: int,
    signals: Signals,
) -> list[TrialFolder]:
    folders = [TrialFolder(store, trial_key(spec, data)) for spec in specs]
    shared = SharedCache()
    together = max((lockstep_size(spec.method.name, spec.method.options, lockstep) for spec in specs), default=1)
    for group in parts(list(zip(specs, folders, strict=True)), together):
        wanted = {folder.key: (spec, folder) for spec, folder in group}
        with ExitStack() as held:
            # In one order everywhere, so that two jobs that share trials cannot deadlock.
            for key in sorted(wanted):
                held.enter_context(wanted[key][1].lock())
            for _, folder in wanted.values():
                folder.sound()  # else it is run anew
                folder.clear()  # leftovers of a trial killed after its records were written
            run_sessions(
                [
                    TrialSession(*one, data, watch, device, ration(), shared, together, signals)
                    for one in wanted.values()
                    if not one[1].done
                ]
            )
    return folders


class TrialSession:
    """One trial with its folder, checkpoint and observers.

    Attributes:
        trial: None before it is open, and if it could not be built.
        over: whether its results are written.
    """

    def __init__(
        self,
        spec: TrialSpec,
        folder: TrialFolder,
        data: Path,
        watch: Watch,
        device: torch.device,
        ration: Ration,
        shared: SharedCache,
        together: int,
        signals: Signals,
    ) -> None:
        self.together = together
        self.spec, self.folder, self.data, self.device, self.shared = spec, folder, data, device, shared
        self.signals = signals
        self.checkpoint = Checkpoint(folder, ration)
        self.observers = watch()
        self.log = Log()
        self.trial: Trial | None = None
        self.over = False

    def open(self) -> None:
        """Resume from the checkpoint, or begin."""
        self.folder.error_path.unlink(missing_ok=True)
        self.folder.write_json(self.folder.path / "spec.json", self.spec.model_dump(mode="json"))
        self.log, state = self.checkpoint.restore()
        for observer in self.observers:
            observer.start(self.folder.key, self.spec, max(self.log.iteration, 0))
        with self.guarded():
            self.trial = Trial(self.spec, self.data, self.log, state, self.device, self.shared, self.together)
            self.trial.prepare(EvaluationContext(self.device, self.folder.evaluation_path))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """End the trial with an error record if the block raises an error that is not the machine's.

        Raises:
            KeyboardInterrupt: a signal came, whatever the block made of it.
        """
        try:
            yield
        except BaseException as error:
            if self.signals and not isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(self.signals[0]) from error
            if is_of_machine(error, self.signals):
                raise
            self.fail(error)
            error.__dict__.pop("culprit", None)  # an object that is raised again may be another's fault
        if self.signals:  # swallowed in the block
            raise KeyboardInterrupt(self.signals[0])

    def begin(self, trial: Trial) -> tuple[Step, float]:
        """Return the next batch of the initial design and its seconds, from the design cache if possible."""
        cache, first = DesignCache(self.folder.path.parent), len(self.log)
        key = design_key(self.spec, self.data)
        if cached := cache.find(key, first):
            return cached
        started = perf_counter()
        step = trial.begin()
        seconds = perf_counter() - started
        cache.keep(key, first, step, seconds)
        return step, seconds

    def keep(self, step: Step, seconds: float) -> None:
        """Log a step that took `seconds` in total."""
        assert self.trial is not None
        timing, first = step.timing(seconds), len(self.log)
        self.log.append(step, timing)
        due = self.checkpoint.ration.due(seconds)
        if due or step.iteration == 1:
            state = self.trial.state()  # a state that cannot be kept is refused before much is lost
        if due:
            self.checkpoint.save(self.log, state)
        if self.observers:
            rows = step.rows(first, constants_of(self.folder.key, self.spec, self.trial.metadata))
            for observer in self.observers:
                observer.round(rows, timing)

    def finish(self) -> None:
        """Write the results."""
        assert self.trial is not None
        self.trial.refuse_changed_history(thoroughly=True)
        self.log.drain()  # unsaved rows need no checkpoint any more
        write_results(self.folder, self.spec, self.log, self.trial.metadata, self._about())
        self.folder.clear()
        self._end(None)

    def fail(self, error: BaseException) -> None:
        """Write the results so far with the error; the checkpoint stays, to resume once the error is fixed."""
        self.log = self._unchanged_log()
        message = describe(error)
        trace = "".join(traceback.format_exception(error))
        content = {"error": message, "round": self.log.iteration + 1, "traceback": trace}
        self.folder.write_json(self.folder.error_path, content)
        metadata = self.trial.metadata if self.trial else ProblemMetadata()
        write_results(self.folder, self.spec, self.log, metadata, self._about(), message)
        self._end(message)

    def _unchanged_log(self) -> Log:
        """Return the log without what a method wrote into it: as it was saved, with the rows since."""
        try:
            if self.trial is not None:
                self.trial.refuse_changed_history(thoroughly=True)
        except PlumblineError:
            log, _ = self.checkpoint.restore()
            for batch in self.log.drain():
                log.extend(batch)
            log.snapshots = self.log.snapshots
            return log
        return self.log

    def _about(self) -> Mapping[str, Any]:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        return {"device": name}

    def _end(self, message: str | None) -> None:
        self.over = True
        for observer in self.observers:
            observer.end(message)


def run_sessions(sessions: Sequence[TrialSession]) -> None:
    """Run trials to their ends in lockstep."""
    for session in sessions:
        session.open()
    size = len(sessions)
    while running := [session for session in sessions if not session.over]:
        ready = []
        for session in running:
            trial = session.trial
            assert trial is not None
            with session.guarded():
                if trial.done:
                    session.finish()
                elif trial.beginning:
                    session.keep(*session.begin(trial))
                else:
                    ready.append((session, trial))
        size = run_rounds(ready, size)


def run_rounds(sessions: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Run a round of each session, at most `size` in lockstep, and return the size for later rounds."""
    while sessions:
        part, sessions = sessions[:size], sessions[size:]
        size = run_round(part, size, events, again)
    return size


def run_round(sessions: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Ask for, evaluate and log one round of each session.

    Args:
        sessions: sessions with their trials.
        size: greatest number of requests in one `ask_many`.
        events: events of this round so far, besides those of the requests.
        again: whether an earlier attempt at this round failed.

    Returns:
        The size for later rounds: `size`, or less if it exceeded the memory of a GPU.

    Raises:
        torch.cuda.OutOfMemoryError: a single request exceeds the memory.
    """
    started = perf_counter()
    requests, ready = [], []
    for session, trial in sessions:
        with session.guarded():
            requests.append(trial.same_request() if again else trial.request())
            ready.append((session, trial))
    sessions = ready
    if not sessions:
        return size
    method = sessions[0][1].method
    proposals = _proposals(type(method), sessions[0][0].spec.method.name, requests)
    # Outside the `except` block no traceback keeps tensors of the failed computation in memory.
    if isinstance(proposals, torch.cuda.OutOfMemoryError):
        if len(sessions) == 1:
            raise proposals
        torch.cuda.empty_cache()
        return run_rounds(sessions, (len(sessions) + 1) // 2, [*events, GROUP_HALVED], again=True)
    if isinstance(proposals, BaseException):
        if len(sessions) > 1:  # one by one, so that only the trials at fault fail
            run_rounds(sessions, 1, events, again=True)
            return size
        proposals = [proposals]
    share = (perf_counter() - started) / len(sessions)
    for (session, trial), request, proposal in zip(sessions, requests, proposals, strict=True):
        with session.guarded():
            if isinstance(proposal, BaseException):
                raise proposal
            session.keep(*_step(trial, request, proposal, events, share))
    return size


def _proposals(
    method: type[Method], name: str, requests: Sequence[AskRequest]
) -> Sequence[Proposal | BaseException] | BaseException:
    """Return the proposals for the requests, or an error that concerns all of them."""
    try:
        with plugin_code(f"method {name!r}"):
            proposals = method.ask_many(requests)
            if not isinstance(proposals, list) or len(proposals) != len(requests):
                raise PlumblineError(f"method {name!r}: `ask_many` must return a list of {len(requests)} proposals")
            return [_charged(one, name) for one in proposals]
    except torch.cuda.OutOfMemoryError as error:
        return error if len(requests) == 1 else error.with_traceback(None)
    except BaseException as error:  # whether it ends a trial or the job is judged where a trial is at hand
        return error


def _charged(proposal: Proposal | Exception, name: str) -> Proposal | Exception:
    """Return a proposal as it is, and an error in its place as the method's."""
    if isinstance(proposal, Exception):
        with suppress(Exception), plugin_code(f"method {name!r}"):
            raise proposal
    return proposal


def _step(
    trial: Trial, request: AskRequest, proposal: Proposal, events: Sequence[str], asking: float
) -> tuple[Step, float]:
    """Return the step of a proposal, and its total seconds, including `asking` for the request."""
    started = perf_counter()
    request.events = sorted({*request.events, *events})
    step = trial.answer(request, proposal)
    return step, asking + perf_counter() - started


REMEDIES = {
    "NotPSDError": "the kernel matrix is not positive definite even with jitter: raise the noise floor or drop "
    "duplicated points",
    "ModelFittingError": "no attempt to fit the hyperparameters succeeded: try other priors",
}
"""What helps against some errors, by their class."""


def describe(error: BaseException) -> str:
    """Return a description, in one line, of the error of a trial, with the file and line that raised it."""
    try:
        words = " ".join(str(error).split())
    except Exception:  # of the plug-in's own class
        words = "an error that cannot be printed"
    if isinstance(error, PlumblineError):
        return words
    where = place_in_packages(error) or place_of(error)
    remedy = REMEDIES.get(type(error).__name__, SEE_ERROR)
    if isinstance(error, SystemExit):
        return f"{culprit_of(error)} called sys.exit({error.code!r}) ({where})"
    text = words[:300]
    place = ", ".join(filter(None, [culprit_of(error), where]))
    return f"{type(error).__name__}{text and f': {text}'} ({'; '.join(filter(None, [place, remedy]))})"
