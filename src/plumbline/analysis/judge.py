"""The verdicts of a run: each experiment's runs read once, by the columns that its claims need."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from plumbline.analysis.claims import COLUMNS, claim_rows, judged
from plumbline.analysis.draw import data_label, evidence_of
from plumbline.analysis.runs import COLUMNS as RUN
from plumbline.analysis.runs import Runs, runs_of
from plumbline.errors import PlumblineError
from plumbline.measures.metrics import columns_of
from plumbline.measures.shortened import whole
from plumbline.plan import Plan
from plumbline.study import Study

RUNS = "{0}/{0}-runs.csv"
"""Of an experiment, in the folder of the reference results."""


class Ran(NamedTuple):
    """The runs of an experiment that its claims are about, the preset that made them, and the data that they read."""

    runs: pd.DataFrame
    preset: str
    data: str


def ran(plan: Plan, experiment: str, records: Path) -> Ran | None:
    """Return what was run of an experiment, from its collected records; None where no claim is about it.

    Raises:
        PlumblineError: records that cannot be read; trials that are not there.
    """
    there = {(trial.task, trial.method.label) for trial in plan.trials(experiment)}
    claims = [one for one in plan.study_of(experiment).claims.values() if one.experiment == experiment]
    asked = [one for claim in claims if (tests := judged(claim, there)) for one in tests.asked]
    if not asked:
        return None
    evidence = evidence_of(plan, experiment, columns_of(whole(metric)[0] for _, _, metric in asked), records)
    return Ran(runs_of(evidence, asked), plan.config.preset, data_label(plan, experiment) or "synthetic")


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
        return Ran(pd.read_csv(path, usecols=RUN), about["preset"], about["data"])
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
        claimed = dict.fromkeys(claim.experiment for claim in study.claims.values() if claim.experiment)
        there = {name: one for name in claimed if (one := found(name)) is not None}
        runs = {name: Runs(one.runs) for name, one in there.items()}
        for name, claim in study.claims.items():
            if claim.experiment not in there:
                continue
            of = claim.experiment
            if tests := judged(claim, runs[of].trials):
                frames.append(claim_rows(name, claim, tests, runs[of], there[of].preset, there[of].data))
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
