"""Trials in the store: run, or gone on with, or found done; one after another, or several in lockstep."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch

from plumbline.core.errors import PlumblineError
from plumbline.methods.ask import CPU, AskRequest
from plumbline.methods.base import Method, Proposal, lockstep_size
from plumbline.problems.base import EvaluationContext, SharedCache
from plumbline.problems.evaluation import ProblemMetadata
from plumbline.store.folder import TrialFolder
from plumbline.store.keys import design_key, trial_key
from plumbline.store.observers import Observer
from plumbline.store.spec import TrialSpec
from plumbline.trials.checkpoint import Checkpoint, Ration
from plumbline.trials.design_cache import DesignCache
from plumbline.trials.log import Log, Step
from plumbline.trials.results import constants_of, write_results
from plumbline.trials.trial import Trial

RETRIABLE = (OSError, MemoryError, torch.cuda.OutOfMemoryError)
"""Accidents of the machine, not of the trial: the job fails, its checkpoint stays, and another attempt goes on."""

GROUP_HALVED = "GroupHalved"
"""The event of a round whose questions were too many for the memory of a GPU."""

Sessions = Sequence[tuple["TrialSession", Trial]]
"""Trials whose turn it is."""

Watch = Callable[[], Sequence[Observer]]
"""Makes those who watch a trial, anew for each."""


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
    """Run one trial, or go on with it, or find it done; see `run_trials`."""
    return run_trials([spec], store, data, lambda: observers, device, ration)[0]


def run_trials(
    specs: Sequence[TrialSpec],
    store: Path,
    data: Path,
    watch: Watch = tuple,
    device: torch.device = CPU,
    ration: Callable[[], Ration] = Ration,
) -> list[TrialFolder]:
    """Run the seeds of one method on one task, or go on with them, or find them done.

    A method or problem that raises ends its own trial with an error record; accidents of the machine (a full disk, no
    memory) pass through, and the checkpoints stay for the next attempt. As many seeds as the method's class says run in
    lockstep.

    Args:
        specs: what to run.
        store: the folder of all trials.
        data: the folder of built features.
        watch: makes those who are told of each round, anew for each trial.
        device: where methods may compute.
        ration: makes what says when to save, anew for each trial.

    Returns:
        The folder of each trial, with its records in place.
    """
    folders = [TrialFolder(store, trial_key(spec, data)) for spec in specs]
    shelf = SharedCache()
    together = max((lockstep_size(spec.method.name, spec.method.options) for spec in specs), default=1)
    for group in parts(list(zip(specs, folders, strict=True)), together):
        wanted = {folder.key: (spec, folder) for spec, folder in group}
        with ExitStack() as held:
            # In one order everywhere, so that two jobs that share trials do not wait for each other.
            for key in sorted(wanted):
                held.enter_context(wanted[key][1].lock())
            for _, folder in wanted.values():
                folder.clear()  # what was killed when its records were written left them
            play(
                [TrialSession(*one, data, watch, device, ration(), shelf) for one in wanted.values() if not one[1].done]
            )
    return folders


class TrialSession:
    """One trial in the hands of the runner: its folder, its checkpoint, and those who watch it.

    Attributes:
        trial: None before it is open, and where it could not be built.
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
        shelf: SharedCache,
    ) -> None:
        self.spec, self.folder, self.data, self.device, self.shelf = spec, folder, data, device, shelf
        self.checkpoint = Checkpoint(folder, ration)
        self.observers = watch()
        self.log = Log()
        self.trial: Trial | None = None
        self.over = False

    def open(self) -> None:
        """Go on from the checkpoint, or begin."""
        self.folder.error_path.unlink(missing_ok=True)
        self.folder.write_json(self.folder.path / "spec.json", self.spec.model_dump(mode="json"))
        self.log, state = self.checkpoint.restore()
        for observer in self.observers:
            observer.start(self.folder.key, self.spec, max(self.log.iteration, 0))
        with self.guarded():
            self.trial = Trial(self.spec, self.data, self.log, state, self.device, self.shelf)
            if prepare := self.trial.problem.prepare:
                prepare(EvaluationContext(self.device, self.folder.evaluation_path))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """End the trial with an error record where the block raises an error of the trial's own."""
        try:
            yield
        except RETRIABLE:
            raise
        except Exception as error:
            self.fail(error)

    def begin(self, trial: Trial) -> tuple[Step, float]:
        """Return the next batch of the initial design and the seconds that it took, perhaps under another method."""
        beginnings, first = DesignCache(self.folder.path.parent), len(self.log)
        key = design_key(self.spec, self.data)
        if kept := beginnings.find(key, first):
            return kept
        started = perf_counter()
        step = trial.begin()
        seconds = perf_counter() - started
        beginnings.keep(key, first, step, seconds)
        return step, seconds

    def keep(self, step: Step, seconds: float) -> None:
        """Take note of a step that took so many seconds in all."""
        assert self.trial is not None
        timing, first = step.timing(seconds), len(self.log)
        self.log.append(step, timing)
        if self.checkpoint.ration.due():
            self.checkpoint.save(self.log, self.trial.method.state_dict())
        if self.observers:
            rows = step.rows(first, constants_of(self.folder.key, self.spec, self.trial.facts))
            for observer in self.observers:
                observer.round(rows, timing)

    def finish(self) -> None:
        """Write the results."""
        assert self.trial is not None
        self.log.drain()  # what was not saved will not be
        write_results(self.folder, self.spec, self.log, self.trial.facts, self._about())
        self.folder.clear()
        self._end(None)

    def fail(self, error: Exception) -> None:
        """Write what there is and why there is no more; the checkpoint stays, for when the error is mended."""
        message = describe(error)
        trace = "".join(traceback.format_exception(error))
        content = {"error": message, "round": self.log.iteration + 1, "traceback": trace}
        self.folder.write_json(self.folder.error_path, content)
        facts = self.trial.facts if self.trial else ProblemMetadata()
        write_results(self.folder, self.spec, self.log, facts, self._about(), message)
        self._end(message)

    def _about(self) -> Mapping[str, Any]:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        return {"device": name}

    def _end(self, message: str | None) -> None:
        self.over = True
        for observer in self.observers:
            observer.end(message)


def play(lockstep_size: Sequence[TrialSession]) -> None:
    """Run trials to their ends, round by round together."""
    for seat in lockstep_size:
        seat.open()
    size = len(lockstep_size)
    while playing := [seat for seat in lockstep_size if not seat.over]:
        asking = []
        for seat in playing:
            trial = seat.trial
            assert trial is not None
            with seat.guarded():
                if trial.done:
                    seat.finish()
                elif trial.beginning:
                    seat.keep(*seat.begin(trial))
                else:
                    asking.append((seat, trial))
        size = play_rounds(asking, size)


def play_rounds(seated: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Play a round of each of some trials, `size` at once or fewer, and return how many at once from now on."""
    while seated:
        part, seated = seated[:size], seated[size:]
        size = play_round(part, size, events, again)
    return size


def play_round(seated: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Ask, evaluate and keep one round of each of some trials.

    Args:
        seated: whose round it is.
        size: how many may be asked at once.
        events: of this round so far, besides those that the questions meet.
        again: whether they have asked before and got no answer.

    Returns:
        How many may be asked at once from now on: `size`, or less where that were too many for a GPU.

    Raises:
        torch.cuda.OutOfMemoryError: not even one question at a time can be answered.
    """
    started = perf_counter()
    questions = [trial.same_request() if again else trial.question() for _, trial in seated]
    proposals = _asked(type(seated[0][1].method), questions)
    # Out here, no error holds on to what was being computed when the memory was full.
    if isinstance(proposals, torch.cuda.OutOfMemoryError):
        if len(seated) == 1:
            raise proposals
        torch.cuda.empty_cache()
        return play_rounds(seated, (len(seated) + 1) // 2, [*events, GROUP_HALVED], again=True)
    if isinstance(proposals, Exception):
        if len(seated) > 1:  # only those at fault are to fail
            play_rounds(seated, 1, events, again=True)
            return size
        proposals = [proposals]
    share = (perf_counter() - started) / len(seated)
    for (seat, trial), question, proposal in zip(seated, questions, proposals, strict=True):
        with seat.guarded():
            if isinstance(proposal, Exception):
                raise proposal
            seat.keep(*_answered(trial, question, proposal, events, share))
    return size


def _asked(method: type[Method], questions: Sequence[AskRequest]) -> list[Proposal | Exception] | Exception:
    """Return the answers to some questions, or the error that came instead of all of them."""
    try:
        return method.ask_many(questions)
    except torch.cuda.OutOfMemoryError as error:
        return error if len(questions) == 1 else error.with_traceback(None)
    except Exception as error:
        return error


def _answered(
    trial: Trial, question: AskRequest, proposal: Proposal, events: Sequence[str], asking: float
) -> tuple[Step, float]:
    """Return the step that an answer makes, and its seconds in all, `asking` of which are gone already."""
    started = perf_counter()
    question.events = sorted({*question.events, *events})
    step = trial.answer(question, proposal)
    return step, asking + perf_counter() - started


def describe(error: Exception) -> str:
    """Return one line for what a trial raised."""
    if isinstance(error, PlumblineError):
        return str(error)
    remedy = {
        "NotPSDError": "the kernel matrix is not positive definite even with jitter: raise the noise floor or drop "
        "duplicated points",
        "ModelFittingError": "no attempt to fit the hyperparameters succeeded: try other priors",
    }.get(type(error).__name__, "see error.json in the trial's folder")
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({remedy})"
