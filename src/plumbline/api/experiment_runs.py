"""Runs of experiments."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.api.arguments import checked, option_named
from plumbline.api.repository import find_repository, find_study
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.places import ATLAS, REFERENCE, own_or_shipped
from plumbline.store.reference_files import ExperimentFiles
from plumbline.study.claims import split_metric

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.analysis.evidence.evidence import Evidence
    from plumbline.study.experiments import Study

NAMES = {
    "of": "rounds_in_all",
    "rounds": "rounds_with_value",
}
"""Columns of a file of runs that read better under other names."""


@checked
def runs(experiment: str, *, folder: str | Path | None = None, metric: str = "") -> "pd.DataFrame":
    """Return the runs of an experiment: the reference runs, or those of a preset that was run here.

    Args:
        experiment: its name (`pb.experiments()`).
        folder: results of a preset, for instance `results/quick`, or an edition of the atlas; if None, the
            reference results.
        metric: any of `pb.classes("metric")`, of reference results one that is kept; if empty, the metrics of the
            figure, table and claims.

    Returns:
        A row for each task, method, metric and seed: `last`, the metric after the last round; `mean` and `median` over
        rounds; `rounds_with_value`, `rounds_in_all`, and `evaluations`.

    Warns:
        UserWarning: methods of the reference results whose definition has changed since they ran.

    Raises:
        PlumblineError: no such experiment or metric, or none of its runs there.

    Examples:
        >>> pb.runs("CBO-X1").query("metric == 'best_f'").groupby(["task", "method"])["last"].mean()
    """
    from plumbline.analysis.evidence.former import former_in_words

    found = runs_by_column(experiment, folder, metric)
    home = own_or_shipped(REFERENCE / experiment)
    if folder is None and home.is_dir() and (former := former_in_words(home, found["method"].unique())):
        warnings.warn(f"{experiment}: {former}", stacklevel=2)
    return found.rename(columns=NAMES)


def runs_by_column(experiment: str, folder: str | Path | None = None, metric: str = "") -> "pd.DataFrame":
    """Return the runs of an experiment with the columns of the files (`plumbline.analysis.evidence.runs.COLUMNS`).

    Raises:
        PlumblineError: no such experiment, none of its runs there, no run with this metric, or a file that is damaged.
    """
    if (edition := edition_with(experiment, folder)) is not None:
        from plumbline.analysis.atlas.runs import runs

        return runs(edition, experiment, metric)
    repository = find_repository()
    if folder is not None:
        return _of_records(find_study(repository, experiment)[1], experiment, Path(folder), metric)
    from plumbline.analysis.verdicts.judge import runs_from_reference

    home = ExperimentFiles(own_or_shipped(REFERENCE / experiment))
    found = runs_from_reference(home.folder.parent, experiment)
    if found is None:
        find_study(repository, experiment)
        means = home.table.is_file()
        there = f"{experiment} has reference results, but no single runs" if means else f"no runs of {experiment}"
        raise PlumblineError(f"{there}: run it, and name its results, results/<preset>, by {option_named('folder')}")
    if not metric:
        return found.runs
    if metric not in set(found.runs["metric"]):
        raise unknown("metric", metric, found.runs["metric"].unique())
    return found.runs[found.runs["metric"] == metric]


def edition_with(experiment: str, folder: str | Path | None = None) -> Path | None:
    """Return the folder of the atlas that has an experiment, or None if the experiment is not in the atlas.

    Args:
        experiment: its name.
        folder: where to look; that in the workspace or the package where None.

    Raises:
        PlumblineError: the folder holds another edition, or one without this experiment.
    """
    from plumbline.analysis.atlas.edition import is_edition
    from plumbline.analysis.atlas.runs import PREFIX, index

    if folder is None and not experiment.startswith(PREFIX):
        return None  # whatever state the atlas is in
    place = own_or_shipped(ATLAS) if folder is None else Path(folder)
    if not is_edition(place):
        return None
    known = index(place)["experiment"].unique()
    if experiment in known:
        return place
    if folder is not None:
        raise unknown("experiment of the atlas", experiment, known)
    return None


def _of_records(study: "Study", experiment: str, folder: Path, metric: str) -> "pd.DataFrame":
    """Return the runs of collected records, of all tasks and methods there, whatever the preset was."""
    from plumbline.analysis.evidence.evidence import evidence
    from plumbline.analysis.evidence.runs import runs_of
    from plumbline.metrics.registry import columns_of

    if not folder.is_dir():
        raise PlumblineError(f"no folder of results at {folder}: name results/<preset> of a run, or an atlas")
    names = [metric] if metric else metrics_of(study, experiment)
    columns = columns_of(split_metric(name)[0] for name in names)
    found: Evidence = evidence(folder / "records" / f"{experiment}.parquet", columns)
    return runs_of(found, [(*pair, name) for pair in found.pairs for name in names])


def metrics_of(study: "Study", experiment: str) -> list[str]:
    """Return the metrics of an experiment's figure, table and claims; regret if these have none."""
    from plumbline.analysis.outputs.kinds import OutputOptions, figures, tables
    from plumbline.core.options import parse

    found: list[str] = []
    for registry, output in (
        (figures, study.experiments[experiment].figure),
        (tables, study.experiments[experiment].table),
    ):
        if output is not None:
            options = parse(registry[output.kind].options, output.options, f"{registry.kind} of {experiment}")
            assert isinstance(options, OutputOptions)
            found += options.names().metrics
    claims = (claim for claim in study.claims.values() if experiment in claim.all_experiments)
    found += [split_metric(test.metric)[0] for claim in claims for test in claim.tests]
    return list(dict.fromkeys(found)) or ["regret"]
