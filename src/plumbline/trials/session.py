"""One trial that is run: its folder, checkpoint and observers, and the error that ends it."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from plumbline.core.culprits import culprit_of, place_of
from plumbline.core.errors import PlumblineError
from plumbline.core.machine import Signals, ends_job
from plumbline.problems.base import EvaluationContext, SharedCache
from plumbline.problems.evaluation import ProblemMetadata
from plumbline.registry.packages import place_in_packages
from plumbline.store.folder import SEE_ERROR, TrialFolder
from plumbline.store.keys import design_key
from plumbline.store.observers import Observer
from plumbline.store.spec import TrialSpec
from plumbline.trials.checkpoint import Checkpoint, Ration
from plumbline.trials.design_cache import DesignCache
from plumbline.trials.log import Log, Step
from plumbline.trials.results import constants_of, write_results
from plumbline.trials.trial import Trial

Watch = Callable[[], Sequence[Observer]]
"""Makes the observers of a trial."""


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
            observer.start(self.folder.key, self.spec, max(self.log.iteration, 0), self.log.best)
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
            if ends_job(error, self.signals):
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
