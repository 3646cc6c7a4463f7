"""Experiments of the study's page: those of a run, from its files, and reference results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from plumbline.analysis.comparisons.numbers import significant
from plumbline.analysis.evidence.collect import failures_of
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.experiment_pages import kept, titled
from plumbline.analysis.publish.explorer import Explored, explored_records, explored_reference, reference_costs
from plumbline.analysis.publish.markdown import duration, number
from plumbline.analysis.publish.report_links import Link, address, check_svg, data_uri, links, specification
from plumbline.core.files import read_csv
from plumbline.core.places import REFERENCE, shipped
from plumbline.statistics.means import ROUNDING
from plumbline.store.records import read_table
from plumbline.store.reference_files import COSTS
from plumbline.study.experiments import Experiment, Study
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun


@dataclass(frozen=True)
class ExperimentView:
    """One experiment on the page.

    Attributes:
        name: of the experiment.
        anchor: its place on the page.
        study: that it belongs to.
        experiment: its settings.
        scale: the preset of its runs.
        facts: trials, what they took, and data, in words.
        picture: address of its figure; empty where there is none.
        table: with titles in place of names; None where there is none.
        links: its files.
        methods: legends.
        claims: verdicts on the claims that rest on it, by name.
        curves: what readers explore.
        failures: name and error of each trial that failed.
    """

    name: str
    anchor: str
    study: Study
    experiment: Experiment
    scale: str
    facts: list[str]
    picture: str
    table: pd.DataFrame | None
    links: list[Link]
    methods: list[str]
    claims: Mapping[str, str]
    curves: Explored | None
    failures: list[str] = field(default_factory=list)


def shown(table: pd.DataFrame, titles: Titles) -> pd.DataFrame:
    """Return a table with titles in place of names, and each mean with its error in one column, as `1.5 ± 0.2`."""
    found = titled(table, titles)
    for column in [name for name in map(str, found) if name.endswith(" ±")]:
        of = column.removesuffix(" ±")
        if of in found:
            pairs = zip(found[of], found.pop(column), strict=True)
            words = f"{column} {'error' if of.endswith(' published') else 'SE'}"
            found[of] = [with_error(value, error) for value, error in pairs]
            found = found.rename(columns={of: words})
    return found


def with_error(value: float, error: float | str) -> str:
    """Return a number with its error, or with the words for why there is none: `1.5 ± 0.2`, `1.5 (one seed)`.

    The error of values that are one up to rounding is 0.
    """
    if isinstance(error, str):
        return f"{number(value)} ({error})"
    if pd.isna(error):
        return number(value)
    return f"{number(value)} ± {significant(error if error > ROUNDING * abs(value) else 0.0, 2)}"


def of_run(
    resolved: ResolvedExperiment, folder: Path, logs: Path, page: Path, titles: Titles, verdicts: Mapping[str, str]
) -> ExperimentView:
    """Return an experiment of the run from the files of its results.

    Args:
        resolved: the experiment.
        folder: of the results of its preset.
        logs: of its jobs.
        page: that is written.
        titles: of methods and tasks.
        verdicts: of this run, by claim.
    """
    name, experiment = resolved.name, resolved.experiment
    figure, table = folder / "figures" / f"{name}.png", folder / "tables" / f"{name}.csv"
    records = folder / "records" / f"{name}.parquet"
    if figure.with_suffix(".svg").is_file():
        check_svg(figure.with_suffix(".svg"))
    files = [
        *(figure.with_suffix(ending) for ending in (".svg", ".pdf", ".png")),
        *(table, records, folder / "illustrations" / records.name, logs / f"{name}.log"),
    ]
    ran = bool(resolved.trials)
    trials = sum(len(seeds) for _, seeds in resolved.trials)
    facts = [f"{trials} trial{'s' * (trials != 1)}, {duration(seconds_in(records))}"] if ran else []
    return ExperimentView(
        name,
        f"run-{name}",
        resolved.study,
        experiment,
        resolved.preset,
        facts + [f"data: {resolved.data}"] * bool(resolved.data),
        data_uri(figure) if experiment.figure else "",
        shown(read_csv(table, remedy=f"snakemake {name}"), titles) if experiment.table else None,
        [*links(files, page), specification(name, experiment)],
        list(dict.fromkeys(legend.label for legend in resolved.legends.values())),
        verdicts_on(name, resolved.study, verdicts),
        explored_records(resolved, records) if ran else None,
        failures_in(records) if ran else [],
    )


def reference_views(run: ResolvedRun, reference: Path, page: Path, verdicts: Mapping[str, str]) -> list[ExperimentView]:
    """Return the experiments of the run's studies that have reference results.

    Args:
        run: with the studies.
        reference: folder of the reference results.
        page: that is written.
        verdicts: the reference verdicts, by claim.
    """
    titles = Titles(run.entries)
    costs = reference_costs(shipped() / REFERENCE / COSTS) | reference_costs(reference / COSTS)
    found = []
    for study in run.studies.values():
        for name, experiment in study.experiments.items():
            there = kept(reference, name)
            if there.about is None:
                continue
            curves = explored_reference(there.files, costs, run.entries, titles)
            about = there.about
            taken = duration(3600 * about.get("wall_hours", 0))
            facts = [f"{about['trials']} trials of {about['seeds']} seeds, {taken}"] if about.get("trials") else []
            found.append(
                ExperimentView(
                    name,
                    name,
                    study,
                    experiment,
                    str(about.get("preset", "")),
                    [*facts, f"data: {about.get('data', 'synthetic')}"],
                    address(there.files.figure, page) if there.figure else "",
                    None if there.table is None else shown(there.table, titles),
                    [*links(there.files.files, page), specification(name, experiment)],
                    [] if curves is None else list(dict.fromkeys(one["label"] for one in curves["methods"].values())),
                    verdicts_on(name, study, verdicts),
                    curves,
                )
            )
    return found


def verdicts_on(experiment: str, study: Study, verdicts: Mapping[str, str]) -> dict[str, str]:
    """Return the verdicts on the claims that rest on an experiment."""
    return {
        name: verdicts[name]
        for name, claim in study.claims.items()
        if experiment in claim.all_experiments and name in verdicts
    }


def failures_in(records: Path) -> list[str]:
    """Return name and error of each failed trial in an experiment's records, in words."""
    table = read_table(records, ["task", "method", "seed", "status", "error"])
    return [f"{task} {method} seed {seed}: {error}" for (task, method, seed), error in failures_of(table)]


def seconds_in(records: Path) -> float:
    """Return the seconds that all rounds of an experiment's trials took together, each trial on its own."""
    rounds = (
        read_table(records, ["key", "iteration", "round_seconds"]).to_pandas().drop_duplicates(["key", "iteration"])
    )
    return float(rounds["round_seconds"].sum())


def by_study(views: Iterable[ExperimentView]) -> list[tuple[Study, list[ExperimentView]]]:
    """Return the experiments of each study, in order."""
    groups: dict[str, tuple[Study, list[ExperimentView]]] = {}
    for one in views:
        groups.setdefault(one.study.study, (one.study, []))[1].append(one)
    return list(groups.values())
