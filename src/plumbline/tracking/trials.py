"""Finished trials -> drafts of their runs: a run a trial, and one with the means of each method on each task."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as compute
from mlflow.entities import Dataset

from plumbline.registry.references import short_digest
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.spec import TrialSpec
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun
from plumbline.tracking.artifacts import trial_files
from plumbline.tracking.drafts import Draft, Point
from plumbline.tracking.finished import Finished
from plumbline.tracking.means import mean_curves
from plumbline.tracking.plot import curves_svg
from plumbline.tracking.runs import (
    ENDS,
    ERROR,
    KIND,
    MARK,
    NOTE_TAG,
    SYSTEM,
    TASK,
    logged_rounds,
    milliseconds,
    outcome,
    rows_of,
    run_name,
    run_params,
    run_tags,
    shown_as,
    streamed,
    trial_metrics,
)
from plumbline.tracking.shown import core_metrics, figure_metrics, first_metrics, minimises

LAYOUT = 1
"""Of runs: another number, and an import makes all of them anew."""

DATA = "plumbline.data"
"""The tag that says whether data are real or generated."""
COLOUR = "mlflow.runColor"
"""The tag with the colour of a run's line."""

LONG = 60.0
"""Seconds from which on the machine's share in a job is of interest."""

OF_JOB = {
    "s": "job_seconds",
    "cpu_time": "job_cpu_seconds",
    "mean_load": "job_cpu_percent",
    "max_rss": "job_memory_megabytes",
}
"""Columns of Snakemake's benchmarks, and what they are called in MLflow."""


class TrialRuns:
    """The runs of an experiment's trials.

    Args:
        run: that the experiment is part of.
        experiment: that has the trials.
        trials: those that have ended.
        store: the folder of all trials.
        datasets: what a trial reads.
        benchmarks: the folder of the jobs' benchmarks; None where there is none.
        colours: of methods, by label; MLflow gives others to those that have none.

    Attributes:
        name: of the MLflow experiment.
        place: of its artifacts.
        note: what its page says: the title of the experiment, and its document.
        tags: of the MLflow experiment: preset, study and experiment.
        groups: the trials of each task and method, by the digests of what their runs are made of.
        minimised: whether the figure minimises.
        core: metrics whose means are drawn, the first ones first.
    """

    def __init__(
        self,
        run: ResolvedRun,
        experiment: ResolvedExperiment,
        trials: Sequence[Finished],
        store: Path,
        datasets: Callable[[TrialSpec], list[Dataset]],
        benchmarks: Path | None,
        colours: Mapping[str, str],
    ) -> None:
        self.colours = colours
        preset, study = run.config.preset, experiment.study
        self.store, self.datasets, self.benchmarks = store, datasets, benchmarks
        self.name, self.place = f"{preset}/{study.study}/{experiment.name}", f"{preset}/{experiment.name}"
        self.note = (experiment.experiment.title, f"{study.title}. {study.citation}")
        self.tags = {
            "plumbline.preset": preset,
            "plumbline.study": study.study,
            "plumbline.experiment": experiment.name,
        }
        self.data = run.config.data
        self.minimised = minimises(experiment.experiment)
        self.core = core_metrics(experiment.experiment)
        also = [name for name in figure_metrics(experiment.experiment) if name not in (*streamed(), MARK)]
        self.names = [*streamed(), *also]
        about = short_digest(json.dumps([LAYOUT, self.minimised, self.core, self.names]))
        self.groups: dict[tuple[str, str], dict[str, Finished]] = {}
        for one in trials:
            made_of = short_digest(json.dumps([about, one.key, one.error, one.spec.task, one.spec.method.label]))
            self.groups.setdefault((one.spec.task, one.spec.method.label), {})[made_of] = one
        self.means = {
            pair: short_digest(json.dumps(sorted(group)))
            for pair, group in self.groups.items()
            if any(one.error is None for one in group.values())
        }

    def wanted(self) -> set[str]:
        """Return what all runs are made of."""
        return {*self.means.values()}.union(*self.groups.values())

    def drafts(self, missing: Collection[str]) -> Iterator[list[Draft]]:
        """Yield the drafts of those runs that are `missing`, those of a method on a task together."""
        for pair, group in self.groups.items():
            mean = self.means.get(pair)
            if not {mean, *group}.isdisjoint(missing):
                yield self._of_group(mean, group, missing)

    def _of_group(self, mean: str | None, group: Mapping[str, Finished], missing: Collection[str]) -> list[Draft]:
        first = next(iter(group.values()))
        columns = ["key", "status", *rows_of(self.names).names]
        tables = [records.read_table(path, columns) for path in dict.fromkeys(one.path for one in group.values())]
        table = records.concatenate(tables)
        table = table.filter(compute.equal(table["status"], "ok")).drop_columns(["key", "status"])
        rounds = table.select(["seed", "iteration", "evaluation", MARK]).to_pandas().fillna({MARK: 0.0})
        steps, seconds = (rounds.groupby(["seed", "iteration"])[name].last().unstack() for name in ("evaluation", MARK))
        curves = {**trial_metrics(table, self.names), MARK: seconds} if len(table) else {}
        params = run_params(first.spec)
        drafts = [
            self._of_trial(made_of, one, params, steps + 1, curves)
            for made_of, one in group.items()
            if made_of in missing
        ]
        if mean is not None and mean in missing:
            drafts.append(self._of_means(mean, list(group.values()), params, (steps + 1).max().astype(int), curves))
        return drafts

    def _of_trial(
        self,
        made_of: str,
        trial: Finished,
        params: Mapping[str, str],
        steps: pd.DataFrame,
        curves: Mapping[str, pd.DataFrame],
    ) -> Draft:
        """The draft of a trial's run: its times are those at which its rounds ended.

        Args:
            made_of: the digest of what it is made of.
            trial: that it is of.
            params: of all seeds.
            steps: evaluations at the end of each round, `seeds x rounds`.
            curves: metrics, by name, of the same shape.
        """
        folder, seed = TrialFolder(self.store, trial.key), trial.spec.seed
        origin = folder.provenance() if folder.provenance_path.is_file() else {}
        end = (folder.records_path if folder.done else trial.path).stat().st_mtime
        place = steps.index.get_loc(seed) if seed in steps.index else None
        own = {name: table.to_numpy()[place] for name, table in curves.items()} if place is not None else {}
        seconds = np.nan_to_num(own.get(MARK, np.empty(0)))
        begin = end - float(seconds.sum())
        times = np.rint(1000 * (begin + seconds.cumsum())).astype(np.int64)
        logged = steps.columns.isin(logged_rounds(trial.spec.budget.rounds))
        points: list[Point] = []
        drawn: dict[str, tuple[list[int], list[float]]] = {}
        for name, values in own.items():
            there = logged & np.isfinite(values)
            if not there.any():
                continue
            label, sign = shown_as(name, self.minimised)
            at, shown = steps.to_numpy()[place][there].astype(np.int64).tolist(), (sign * values[there]).tolist()
            points += map(Point, repeat(label), shown, times[there].tolist(), at)
            drawn[name] = at, shown
        plotted = {shown_as(name, self.minimised)[0]: drawn[name] for name in first_metrics(self.core, drawn)}
        plot = {"curves.svg": curves_svg(plotted)} if plotted else {}
        status, error = outcome(trial.error)
        tags = {**run_tags(trial.key, trial.spec, origin), DATA: self.data, **self._coloured(trial.spec)}
        return Draft(
            made_of=made_of,
            name=run_name(trial.spec),
            tags=tags if error is None else {**tags, ERROR: error},
            params={**params, "seed": str(seed)},
            points=[*points, *self._of_job(trial, milliseconds(end))],
            begin=milliseconds(begin),
            end=milliseconds(end),
            status=status,
            datasets=self.datasets(trial.spec),
            files={"spec.json": trial.spec.model_dump_json(indent=1), **trial_files(folder), **plot},
        )

    def _coloured(self, spec: TrialSpec) -> dict[str, str]:
        """Return the tag with the colour of a method's runs: the same for all seeds and on all tasks."""
        colour = self.colours.get(spec.method.label)
        return {COLOUR: colour} if colour else {}

    def _of_job(self, trial: Finished, time: int) -> list[Point]:
        """Return what Snakemake measured of the job that ran a trial, where it took a minute or more."""
        path = None if self.benchmarks is None or not trial.job else self.benchmarks / f"{trial.job}.tsv"
        if path is None or not path.is_file():
            return []
        measured = _benchmark(path)
        if measured.get("s", 0.0) < LONG:
            return []
        return [Point(f"{SYSTEM}{OF_JOB[name]}", value, time, 0) for name, value in measured.items()]

    def _of_means(
        self,
        made_of: str,
        trials: Sequence[Finished],
        params: Mapping[str, str],
        steps: pd.Series,
        curves: Mapping[str, pd.DataFrame],
    ) -> Draft:
        """The draft of the means over the seeds of a method on a task, those of trials that failed left out."""
        spec, time = trials[0].spec, milliseconds(max(one.path.stat().st_mtime for one in trials))
        whole = [one.spec.seed for one in trials if one.error is None]
        logged, points = logged_rounds(spec.budget.rounds), []
        for name, table in mean_curves(
            {name: of[of.index.isin(whole)] for name, of in curves.items()}, self.core
        ).items():
            label, sign = shown_as(name, self.minimised)
            ends = [f"{ENDS}{label}.low", label, f"{ENDS}{label}.high"][::sign]
            for i, *values in (sign * table[table.index.isin(logged)]).itertuples():
                named = zip(ends, values, strict=True)
                points += [Point(one, value, time, int(steps[i])) for one, value in named if math.isfinite(value)]
        tags = {TASK: spec.task, KIND: "mean", DATA: self.data, **self._coloured(spec)}
        if failed := len(trials) - len(whole):
            tags[NOTE_TAG] = f"{failed} of {len(trials)} trials failed: the means are of the others."
        return Draft(
            made_of=made_of,
            name=f"{spec.method.label} mean of {len(whole)} {spec.task}",
            tags=tags,
            params={**{name: value for name, value in params.items() if name != "seed"}, "seeds": str(len(whole))},
            points=points,
            begin=time,
            end=time,
        )


@cache
def _benchmark(path: Path) -> dict[str, float]:
    """Return what a benchmark of Snakemake's holds, of the columns of `OF_JOB`; nothing of one that cannot be read."""
    try:
        row = pd.read_csv(path, sep="\t", na_values="-").iloc[-1]
        found = {name: float(row[name]) for name in OF_JOB if name in row.index}
    except (ValueError, IndexError, pd.errors.ParserError):
        return {}
    return {name: value for name, value in found.items() if math.isfinite(value)}
