"""The verdicts of a run: we read the records of each experiment once, and only the columns that its claims need."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from plumbline.analysis.evidence.runs import COLUMNS as RUN
from plumbline.analysis.evidence.runs import RunName, Runs, runs_of
from plumbline.analysis.outputs.draw import evidence_of, output_of
from plumbline.analysis.verdicts.verdict import COLUMNS, RunnableTests, by_number, claim_rows, runnable_tests
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.places import or_shipped
from plumbline.metrics.registry import columns_of
from plumbline.store.records import read_names, read_table
from plumbline.store.reference_files import ExperimentFiles
from plumbline.study.claims import Claim, split_metric
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import ResolvedExperiment, document_rounds

KEEP_AGAIN = "take it from version control, or keep the experiment again (`plumbline reference`)"


class ExperimentRuns(NamedTuple):
    """The runs of an experiment that its claims are about, the preset that made them, and the data that they read."""

    runs: pd.DataFrame
    preset: str
    data: str


def runs_for_claims(resolved: ResolvedExperiment) -> list[RunName]:
    """Return the runs of an experiment that its claims are about."""
    tests = [runnable_tests(claim, there) for claim, there in resolved.claims]
    return [run for one in tests if one for run in one.runs if run[:2] in resolved.pairs]


def runs_for_outputs(resolved: ResolvedExperiment) -> list[RunName]:
    """Return the runs that an experiment's figure and table show: enough to compare any two methods."""
    kinds = [kind for kind in ("figure", "table") if getattr(resolved.experiment, kind) is not None]
    metrics = [metric for kind in kinds for metric in output_of(resolved, kind)[1].names().metrics]
    return [(task, method, metric) for task, method in sorted(resolved.pairs) for metric in metrics]


def runs_from_records(
    resolved: ResolvedExperiment, records: Path, besides: Iterable[RunName] = ()
) -> ExperimentRuns | None:
    """Return the runs of an experiment from its collected records: those that claims need, and those `besides`.

    None where there are neither.

    Raises:
        PlumblineError: records that cannot be read; trials that are not there.
    """
    wanted = [*runs_for_claims(resolved), *besides]
    if not wanted:
        return None
    evidence = evidence_of(resolved, columns_of(split_metric(metric)[0] for _, _, metric in wanted), records)
    return ExperimentRuns(runs_of(evidence, wanted), resolved.preset, resolved.data or "synthetic")


def together(parts: Sequence[ExperimentRuns]) -> ExperimentRuns:
    """Return the runs of several experiments as those of one; each preset and dataset is named once."""
    presets, data = (", ".join(dict.fromkeys(names)) for names in zip(*(part[1:] for part in parts), strict=True))
    return ExperimentRuns(pd.concat([part.runs for part in parts], ignore_index=True), presets, data)


def runs_from_reference(reference: Path, experiment: str) -> ExperimentRuns | None:
    """Return the runs of an experiment among the reference results; None where there are none.

    Raises:
        PlumblineError: a file that cannot be read.
    """
    home = ExperimentFiles(or_shipped(reference / experiment))
    path = home.runs
    if not path.is_file():
        return None
    if missing := sorted({*RUN} - {*read_names(path, KEEP_AGAIN)}):
        raise PlumblineError(f"{path} has no column {missing[0]!r}: {KEEP_AGAIN}")
    about = read_json(home.provenance, ["preset", "data"], KEEP_AGAIN)
    return ExperimentRuns(read_table(path, RUN, remedy=KEEP_AGAIN).to_pandas(), about["preset"], about["data"])


class ReadyClaim(NamedTuple):
    """A claim with its tests whose trials were run.

    Attributes:
        study: of the claim.
        name: of the claim.
        claim: what was claimed.
        tests: its tests that can be judged.
        runs: of their trials.
        about: their preset and data.
        experiments: that it rests on.
        missing: those of them that were not run.
    """

    study: Study
    name: str
    claim: Claim
    tests: RunnableTests
    runs: Runs
    about: ExperimentRuns
    experiments: tuple[str, ...]
    missing: list[str]


def ready_claims(studies: Iterable[Study], found: Callable[[str], ExperimentRuns | None]) -> Iterator[ReadyClaim]:
    """Yield the claims of studies that can be judged, in their order.

    Args:
        studies: with the claims.
        found: the runs of an experiment by its name; None where there are none.
    """
    for study in studies:
        claimed = dict.fromkeys(name for claim in study.claims.values() for name in claim.all_experiments)
        there = {name: one for name in claimed if (one := found(name)) is not None}
        joined: dict[tuple[str, ...], tuple[ExperimentRuns, Runs]] = {}
        for name, claim in study.claims.items():
            experiments = claim.rests_on(there)
            ready = tuple(one for one in experiments if one in there)
            if not ready:
                continue
            if ready not in joined:
                about = together([there[one] for one in ready])
                joined[ready] = about, Runs(about.runs)
            about, runs = joined[ready]
            if tests := runnable_tests(claim, runs.trials):
                missing = [one for one in experiments if one not in there]
                yield ReadyClaim(study, name, claim, tests, runs, about, experiments, missing)


def judge(
    studies: Iterable[Study], library: MethodsAndTasks, found: Callable[[str], ExperimentRuns | None]
) -> pd.DataFrame:
    """Return the verdicts on the claims of studies, in their order.

    Args:
        studies: with the claims.
        library: all methods and tasks.
        found: the runs of an experiment by its name; None where there are none.

    Raises:
        PlumblineError: a claim whose runs or values are not there.
    """
    frames = []
    for one in ready_claims(studies, found):
        full = document_rounds([one.study.experiments[name] for name in one.claim.all_experiments], library)
        about = one.about.preset, one.about.data
        frames.append(claim_rows(one.name, one.claim, one.tests, one.runs, *about, one.experiments, one.missing, full))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def judge_folder(experiments: Mapping[str, ResolvedExperiment], folder: Path) -> pd.DataFrame:
    """Return the verdicts on all claims that rest on `experiments`, from the collected records in a folder of results.

    Args:
        experiments: those of a run, by name.
        folder: results of its preset.

    Raises:
        PlumblineError: as `judge`.
    """

    def found(name: str) -> ExperimentRuns | None:
        return (
            runs_from_records(experiments[name], folder / "records" / f"{name}.parquet")
            if name in experiments
            else None
        )

    studies = {one.study.study: one.study for one in experiments.values()}
    library = next((one.entries for one in experiments.values()), MethodsAndTasks())
    judged = judge(studies.values(), library, found)
    claimed = {
        name
        for study in studies.values()
        for name, claim in study.claims.items()
        if set(claim.all_experiments).intersection(experiments)
    }
    if claimed and judged.empty:
        # Not an error: figures and page of these experiments may be all that is wanted.
        warnings.warn(
            f"no test is judged: preset {next(iter(experiments.values())).preset!r} has the trials of no test of "
            f"{', '.join(sorted(claimed, key=by_number))}: choose another preset, or more experiments",
            stacklevel=2,
        )
    return judged


def judge_reference(studies: Iterable[Study], library: MethodsAndTasks, reference: Path) -> pd.DataFrame:
    """Return the verdicts on all claims from the runs among the reference results."""
    return judge(studies, library, lambda name: runs_from_reference(reference, name))
