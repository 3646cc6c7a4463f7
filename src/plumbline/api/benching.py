"""Comparison of a user's method with the atlas: only that method is run, and compared with the reference results."""

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from plumbline.api.arguments import checked, option_named
from plumbline.api.editions import AtlasGrid, atlas, domain_of, refusal_of
from plumbline.api.own_methods import OwnMethod, own_method
from plumbline.api.repository import find_repository
from plumbline.api.running import NestedOptions, one_thread, seed_numbers
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.libraries import installed_version
from plumbline.core.places import ATLAS, DATA, STORE, own, own_or_shipped
from plumbline.core.words import names_of

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.analysis.atlas.standing import Difference
    from plumbline.store.folder import TrialFolder
    from plumbline.store.spec import TrialSpec

Table = Literal["differences", "standing", "trials"]

USUAL = ("atlas-logei", "atlas-ucb", "botorch-loop")
"""Methods that one's own is compared with where nothing is said, as far as the atlas has them."""

RUN_HERE = " (run here)"
"""Behind the name of a method that the atlas has too."""

TIMEOUT = 600.0
"""Seconds that a call of a method's code may take: ten times what the dearest one of the atlas takes."""


@checked
def bench(
    target: str,
    *,
    tasks: str | Iterable[str] = (),
    seeds: int | None = None,
    against: str | Iterable[str] = (),
    options: NestedOptions | None = None,
    table: Table = "differences",
    cores: int | None = None,
    timeout: float | None = TIMEOUT,
    store: str | Path | None = None,
    data: str | Path | None = None,
    folder: str | Path | None = None,
) -> "pd.DataFrame":
    """Run a method of your own on tasks of the atlas, and compare it with the methods there.

    Tasks, budgets, initial designs and noise are those of the atlas, so seeds are paired. Trials that are in the store
    are not run again, and an interrupted trial continues.

    Args:
        target: an entry of config/methods, a registered class, or the path of a class, `my_package.module:MyClass`: a
            BoTorch acquisition function, which is used with the Gaussian process of the atlas, or an optimiser with
            `ask` and `tell`.
        tasks: tasks of the atlas, or tracks such as `noisy`; if empty, all with reference results.
        seeds: the number of seeds, 0, 1, ...; if None, as many as the atlas has.
        against: methods of the atlas to compare with, as a list or separated by commas; if empty, log EI, UCB and
            BoTorch's loop.
        options: nested options of the method, which override its own: `{"arguments": {"level": 0.5}}`.
        table: `differences`, `standing` or `trials`.
        cores: the number of processes that run trials; if None, one for each core.
        timeout: seconds that one call of the method's code may take before its trial fails; None: no limit.
        store: the folder of all trials; if None, `results/store` of the workspace.
        data: the folder of built features; if None, `data` of the workspace.
        folder: the folder of an edition of the atlas; if None, `results/atlas` of the workspace or the package.

    Returns:
        For `differences`, a row for each compared method and task, `all tasks` first: `against`, `task`, `pairs`, the
        `difference` in score, yours minus the other's, with its 95% interval `low` to `high`; the two-sided `p`; and
        for all tasks `p_corrected` by Holm's method. Scores are normalised regrets, so a difference below zero is
        better. For `standing`, a row for each method that has run on all of the tasks: `method`, `rank` with its
        95% interval `rank_low` to `rank_high`, and its means of `score`, `final`, `calibration_error` and `seconds` in
        each round. For `trials`, a row for each task and seed
        of your method, with `error`, which is empty unless the trial failed. The attribute `attrs["notes"]` has lines
        on what was left out.

    Raises:
        PlumblineError: an unknown name, an atlas of another edition, code that cannot be imported, no task that the
            method can run on, or, unless `table` is `trials`, no trial with a score.

    Examples:
        >>> pb.bench("straddle:Straddle", tasks="noisy", options={"arguments": {"level": -20}})
        >>> pb.bench("steps:Steps", tasks=["common-levy-5-0.1"], table="standing").query("method == 'Steps'")
    """
    if table not in get_args(Table):
        raise unknown("table", table, get_args(Table))
    bench = Bench(
        target,
        tasks,
        seeds,
        against,
        options or {},
        own(DATA) if data is None else Path(data),
        folder,
    )
    done = list(bench.run(own(STORE) if store is None else Path(store), cores, timeout))
    result = bench.compared(done)
    if table != "trials":
        result.require_scores()
    found = {"differences": result.frame(), "standing": result.standing, "trials": result.own}[table]
    found.attrs["notes"] = [*bench.notes, *result.refusals, *result.failures]
    return found


NO_SCORE = "no score: the initial designs have the optimum"


class TaskTrials(NamedTuple):
    """The trials of one's own method on a task.

    Attributes:
        task: its name.
        rounds: of those that ended well, as `analysis.atlas.edition.read_rounds` returns them; None of none, and where
            they are not compared.
        failures: why each of the others failed, by seed.
        refusal: why they are not compared with those of the atlas; empty where they are.
    """

    task: str
    rounds: "pd.DataFrame | None"
    failures: Mapping[int, str]
    refusal: str = ""


class Compared(NamedTuple):
    """One's own method among those of the atlas.

    Attributes:
        trials: of all methods, as `analysis.atlas.scores.trials` returns them.
        own: those of one's own, with `error`.
        standing: as `analysis.atlas.standing.standing` returns it.
        differences: as `analysis.atlas.standing.paired_differences` returns them.
        failures: one line per task with failed trials.
        refusals: one line per task whose trials are not compared.
    """

    trials: "pd.DataFrame"
    own: "pd.DataFrame"
    standing: "pd.DataFrame"
    differences: "list[Difference]"
    failures: list[str]
    refusals: list[str]

    def frame(self) -> "pd.DataFrame":
        """Return the differences as a table."""
        import pandas as pd

        from plumbline.analysis.atlas.standing import Difference

        return pd.DataFrame(self.differences, columns=Difference._fields)

    def require_scores(self) -> None:
        """Raise PlumblineError, with the first reason, where none of one's own trials has a score."""
        if self.standing.empty:
            raise PlumblineError([*self.failures, *self.refusals, NO_SCORE][0])


class Bench:
    """What is run and what it is compared with.

    Attributes:
        method: one's own.
        titles: of the tasks that it runs on, by name.
        against: the methods that it is compared with.
        legends: of those of them that have an entry, by name.
        seeds: their number.
        notes: lines on tasks that were left out, seeds without a pair, and versions that differ from the atlas'.
    """

    def __init__(
        self,
        target: str,
        tasks: str | Iterable[str],
        seeds: int | None,
        against: str | Iterable[str],
        options: NestedOptions,
        data: Path,
        folder: str | Path | None = None,
    ) -> None:
        """Find out what is meant, and on which tasks it can run; nothing is run yet. See `bench`."""
        self.folder, self.data = folder, data
        self.cells = atlas("cells", folder=folder).query("seeds > 0")
        every = atlas("tasks", folder=folder)
        repository = find_repository()
        grid = AtlasGrid(repository)
        self.method = own_method(target, options, grid.entries)
        if self.method.name in set(self.cells["method"]):
            self.method = self.method._replace(name=f"{self.method.name}{RUN_HERE}")
        wanted = tasks_named(names_of(tasks, "tasks"), every[every["task"].isin(self.cells["task"])])
        self.specs, reasons = self._specs(grid.specs(), wanted, repository)
        if not self.specs:
            where = f" ({self.method.place})" if self.method.place else ""
            raise PlumblineError(f"{target}: no task that it can run on: {next(iter(reasons.values()))}{where}")
        self.titles = dict(zip(every["task"], every["title"], strict=True))
        self.here = self.cells[self.cells["task"].isin(self.specs)]
        self.against = self._against(names_of(against, "against"), {*grid.entries.methods, *self.cells["method"]})
        entries = grid.entries.methods
        self.legends = {name: entries[name].legend for name in self.against if name in entries}
        paired = int(self.here.loc[self.here["method"].isin(self.against), "seeds"].max())
        self.seeds = len(seed_numbers(paired if seeds is None else seeds))
        self.notes = [f"{task}: left out: {reason}" for task, reason in reasons.items()]
        if self.seeds > paired:
            self.notes.append(
                f"seeds {paired} to {self.seeds - 1}: run, unpaired: the atlas has none of {', '.join(self.against)}"
            )
        self.notes += changed_versions(self.here[self.here["method"].isin(self.against)])

    def _specs(
        self, specs: "Mapping[str, TrialSpec]", wanted: list[str], repository: Path
    ) -> "tuple[dict[str, TrialSpec], dict[str, str]]":
        """Return the spec of each task that the method can run on, and the reasons of the others."""
        found: dict[str, TrialSpec] = {}
        reasons: dict[str, str] = {}
        for task in wanted:
            if task not in specs:
                reasons[task] = f"not in the study atlas of {repository}"
                continue
            spec = specs[task].model_copy(update={"method": self.method.ref})
            spec.check("method")
            try:
                reason = refusal_of(self.method.ref, domain_of(spec, self.data))
            except PlumblineError as error:  # its data are not there
                reason = str(error)
            except Exception:  # of the user's code: the trials will say where
                reason = ""
            if reason:
                reasons[task] = reason
            else:
                found[task] = spec
        return found, reasons

    def _against(self, names: list[str], known: Set[str]) -> list[str]:
        """Return the methods of the atlas that are compared with, of those that are known."""
        there = sorted(set(self.here["method"]))
        usual = [name for name in USUAL if name in there]
        for name in names:
            if name in known and name not in there:
                raise PlumblineError(f"the atlas has no {name} on these tasks, but {', '.join(usual or there[:3])}")
            if name not in there:
                raise unknown("method", name, there, are="methods are in the atlas on these tasks")
        found = list(dict.fromkeys(names)) or usual
        if not found:
            raise PlumblineError(
                f"the atlas has none of {', '.join(USUAL)} on these tasks: name others by {option_named('against')}: "
                f"{', '.join(there)}"
            )
        return found

    def run(self, store: Path, cores: int | None = None, timeout: float | None = TIMEOUT) -> Iterator[TaskTrials]:
        """Run what is not in the store, and yield the trials of each task as they are finished.

        Args:
            store: the folder of all trials.
            cores: processes; all cores of the machine where None, and with 1 this process.
            timeout: seconds that a call of the method's code may take before its trial fails; None: no limit.

        Raises:
            PlumblineError: the number of cores is below 1, the timeout is not above 0, or the machine killed a
                process.
        """
        from plumbline.store.keys import look_again

        look_again()
        specs = [spec.with_seed(seed) for spec in self.specs.values() for seed in range(self.seeds)]
        folders = run_each(specs, store, self.data, cores, timeout)
        for task, spec in self.specs.items():
            done = [(spec.with_seed(seed), next(folders)) for seed in range(self.seeds)]
            yield self._of_one_task(task_trials(task, self.method, done))

    def _of_one_task(self, one: TaskTrials) -> TaskTrials:
        """Return trials as they are, or without their rounds if their initial designs are not the atlas'."""
        import pandas as pd

        from plumbline.analysis.atlas.starts import first_apart

        if one.rounds is None:
            return one
        there = self.edition[self.edition["task"] == one.task]
        apart = first_apart(pd.concat([one.rounds, there], ignore_index=True))
        if apart is None:
            return one
        return one._replace(
            rounds=None,
            refusal=f"{one.task}: not compared: the best value of seed {apart.seed}'s initial design is "
            f"{apart.value:.6g} here and {apart.other_value:.6g} in the atlas: data, a model or a library differ",
        )

    @cached_property
    def edition(self) -> "pd.DataFrame":
        """The rounds of the methods of the atlas on the tasks."""
        from plumbline.analysis.atlas.edition import read_rounds

        folder = own_or_shipped(ATLAS) if self.folder is None else Path(self.folder)
        return read_rounds(folder, self.specs).astype({"task": str, "method": str})

    def compared(self, done: list[TaskTrials]) -> Compared:
        """Return one's own method among those of the atlas, on the tasks of which some trial ended well."""
        import pandas as pd

        from plumbline.analysis.atlas.scores import TRIAL, trials, with_regret
        from plumbline.analysis.atlas.standing import paired_differences, standing

        mine = self.method.name
        failures = [line for one in done if (line := self.failure(one))]
        frames = {one.task: one.rounds for one in done if one.rounds is not None}
        rounds = pd.concat([self.edition[self.edition["task"].isin(frames)], *frames.values()], ignore_index=True)
        found = trials(with_regret(rounds))
        failed = pd.DataFrame(
            [(one.task, mine, seed, error) for one in done for seed, error in one.failures.items()],
            columns=[*TRIAL, "error"],
        )
        own = pd.concat([found[found["method"] == mine].assign(error=""), failed], ignore_index=True)
        return Compared(
            found,
            own.sort_values(TRIAL, ignore_index=True),
            standing(found, mine),
            paired_differences(found, mine, self.against),
            failures,
            [one.refusal for one in done if one.refusal],
        )

    def failure(self, one: TaskTrials) -> str:
        """Return how many trials failed on a task, and why the first did, with file and line; empty where none did."""
        if not one.failures:
            return ""
        return f"{one.task}: {len(one.failures)} of {self.seeds} trials failed: {self.reason(one)}"

    def reason(self, one: TaskTrials) -> str:
        """Return why the first of the trials that failed on a task did, with file and line."""
        reason = next(iter(one.failures.values()))
        file = self.method.place.partition(",")[0]
        where = f" ({self.method.place})" if file and file not in reason else ""
        again = (
            "; with a longer timeout, or after `plumbline failures --forget`, they run again"
            if "TimeoutError" in reason
            else ""
        )
        return f"{reason}{where}{again}"


def tasks_named(names: list[str], tasks: "pd.DataFrame") -> list[str]:
    """Return the tasks that are named, or whose track is, in the order of the atlas; all where nothing is.

    Raises:
        PlumblineError: a name that is neither.
    """
    known = {*tasks["task"], *tasks["track"]}
    for name in names:
        if name not in known:
            raise unknown("task or track of the atlas", name, known, "plumbline atlas")
    wanted = tasks["task"].isin(names) | tasks["track"].isin(names)
    return [str(one) for one in (tasks[wanted] if names else tasks)["task"]]


def changed_versions(cells: "pd.DataFrame") -> list[str]:
    """Return a line for each method of the atlas with other versions of its libraries than are installed."""
    lines = []
    for method, libraries in cells.dropna(subset="libraries").groupby("method")["libraries"]:
        theirs = sorted({one for text in libraries for one in str(text).split("; ") if one})
        other = [
            f"{one} (installed: {installed_version(one.split(' ')[0]) or 'none'})"
            for one in theirs
            if installed_version(one.split(" ")[0]) != one.split(" ")[-1]
        ]
        if other:
            lines.append(f"{method} was run with {', '.join(other)}")
    return lines


def run_each(
    specs: "list[TrialSpec]", store: Path, data: Path, cores: int | None, timeout: float | None
) -> "Iterator[TrialFolder]":
    """Run or resume trials, and yield their folders in their order; see `Bench.run`.

    Raises:
        PlumblineError: the number of cores is below 1, the timeout is not above 0, or the machine killed a process.
    """
    from joblib import cpu_count

    from plumbline.trials.processes import run_in_processes, run_within

    processes = cpu_count() if cores is None else cores
    if processes < 1:
        raise PlumblineError(f"cores: one or more (got {cores})")
    if processes > 1:
        yield from run_in_processes(specs, store, data, processes, timeout)
        return
    for spec in specs:
        with one_thread():
            folder = run_within(timeout, spec, store, data)
        yield folder


def task_trials(task: str, method: OwnMethod, done: "list[tuple[TrialSpec, TrialFolder]]") -> TaskTrials:
    """Return what is known of finished trials on a task."""
    from plumbline.analysis.atlas.rounds import rounds_of
    from plumbline.metrics.frames import frame_of
    from plumbline.store import records

    failures = {spec.seed: " ".join(folder.reason().split()) for spec, folder in done if folder.failed}
    tables = [folder.table(spec) for spec, folder in done if not folder.failed]
    if not tables:
        return TaskTrials(task, None, failures)
    rounds = rounds_of(frame_of(records.concatenate(tables)))
    return TaskTrials(task, rounds.assign(task=task, method=method.name), failures)
