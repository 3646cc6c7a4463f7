"""The verdicts of a run: each experiment's runs read once, by the columns that its claims need."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from plumbline.analysis.evidence.runs import COLUMNS as RUN
from plumbline.analysis.evidence.runs import Asked, Runs, runs_of
from plumbline.analysis.outputs.draw import data_label, evidence_of, output_of
from plumbline.analysis.verdicts.verdict import COLUMNS, claim_rows, judged
from plumbline.core.errors import PlumblineError
from plumbline.metrics.registry import columns_of
from plumbline.study.claims import whole
from plumbline.study.experiments import Study
from plumbline.study.plan import Plan

RUNS = "{0}/{0}-runs.parquet"
"""Of an experiment, in the folder of the reference results."""


class Ran(NamedTuple):
    """The runs of an experiment that its claims are about, the preset that made them, and the data that they read."""

    runs: pd.DataFrame
    preset: str
    data: str


def asked_by_claims(plan: Plan, experiment: str) -> list[Asked]:
    """Return what the claims that are about an experiment ask of its runs at the plan's preset."""
    claims = [one for one in plan.study_of(experiment).claims.values() if experiment in one.experiments]
    tests = [judged(claim, trials(plan, claim.experiments)) for claim in claims]
    here = trials(plan, [experiment])
    return [run for one in tests if one for run in one.asked if run[:2] in here]


def asked_by_outputs(plan: Plan, experiment: str) -> list[Asked]:
    """Return what an experiment's figure and table show of its runs: enough to compare any two methods by."""
    kinds = [kind for kind in ("figure", "table") if getattr(plan.experiment(experiment), kind) is not None]
    metrics = [metric for kind in kinds for metric in output_of(plan, experiment, kind)[1].names().metrics]
    return [(task, method, metric) for task, method in sorted(trials(plan, [experiment])) for metric in metrics]


def ran(plan: Plan, experiment: str, records: Path, besides: Iterable[Asked] = ()) -> Ran | None:
    """Return what was run of an experiment, from its collected records: what claims ask for, and what is asked for
    `besides`; None where that is nothing.

    Raises:
        PlumblineError: records that cannot be read; trials that are not there.
    """
    asked = [*asked_by_claims(plan, experiment), *besides]
    if not asked:
        return None
    evidence = evidence_of(plan, experiment, columns_of(whole(metric)[0] for _, _, metric in asked), records)
    return Ran(runs_of(evidence, asked), plan.config.preset, data_label(plan, experiment) or "synthetic")


def trials(plan: Plan, experiments: Iterable[str]) -> set[tuple[str, str]]:
    """Return the (task, method) of experiments at the plan's preset."""
    return {(trial.task, trial.method.label) for name in experiments for trial in plan.trials(name)}


def together(parts: Sequence[Ran]) -> Ran:
    """Return the runs of several experiments as those of one; their presets and data are named once each."""
    presets, data = (", ".join(dict.fromkeys(names)) for names in zip(*(part[1:] for part in parts), strict=True))
    return Ran(pd.concat([part.runs for part in parts], ignore_index=True), presets, data)


def kept(reference: Path, experiment: str) -> Ran | None:
    """Return what was run of an experiment, from the reference results; None where there is nothing.

    Raises:
        PlumblineError: a file that cannot be read.
    """
    path = reference / RUNS.format(experiment)
    if not path.is_file():
        return None
    try:
        about = json.loads((path.parent / "provenance.json").read_text(encoding="utf-8"))
        return Ran(pd.read_parquet(path, columns=RUN), about["preset"], about["data"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path.parent}: {' '.join(str(error).split())[:200]}") from error


def judge(studies: Iterable[Study], found: Callable[[str], Ran | None]) -> pd.DataFrame:
    """Return the verdicts on the claims of studies, in their order.

    Args:
        studies: with the claims.
        found: what was run of an experiment, None where nothing was.

    Raises:
        PlumblineError: a claim whose runs or values are not there.
    """
    frames = []
    for study in studies:
        claimed = dict.fromkeys(name for claim in study.claims.values() for name in claim.experiments)
        there = {name: one for name in claimed if (one := found(name)) is not None}
        joined: dict[tuple[str, ...], tuple[Ran, Runs]] = {}
        for name, claim in study.claims.items():
            ready = tuple(one for one in claim.experiments if one in there)
            if not ready:
                continue
            if ready not in joined:
                about = together([there[one] for one in ready])
                joined[ready] = about, Runs(about.runs)
            about, runs = joined[ready]
            if tests := judged(claim, runs.trials):
                missing = [one for one in claim.experiments if one not in there]
                frames.append(claim_rows(name, claim, tests, runs, about.preset, about.data, missing))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def judge_folder(plan: Plan, folder: Path) -> pd.DataFrame:
    """Return the verdicts on all claims of this run, from the collected records in the folder of its results."""
    claimed = set(plan.claimed())

    def found(name: str) -> Ran | None:
        return ran(plan, name, folder / "records" / f"{name}.parquet") if name in claimed else None

    return judge(plan.studies.values(), found)


def judge_reference(plan: Plan, reference: Path) -> pd.DataFrame:
    """Return the verdicts on all claims from the runs that are kept with the reference results."""
    return judge(plan.studies.values(), lambda name: kept(reference, name))
