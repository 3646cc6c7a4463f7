"""The verdicts of a run: each experiment's evidence read once, by the columns that its claims need."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from plumbline.analysis.claims import COLUMNS, claim_rows
from plumbline.analysis.draw import data_label, evidence_of
from plumbline.analysis.metrics import columns_of
from plumbline.plan import Plan
from plumbline.study import Claim


def claim_of_run(plan: Plan, claim: Claim) -> Claim | None:
    """Return a claim as this run can judge it, or None where it cannot, as where the claim is not run.

    Tests of trials that the preset leaves out are left out.
    """
    if claim.experiment is None:
        return None
    there = {(trial.task, trial.method.label) for trial in plan.trials(claim.experiment)}
    tests = tuple(test for test in claim.tests if there.issuperset(test.trials))
    return claim.model_copy(update={"tests": tests}) if tests else None


def claimed(plan: Plan) -> dict[str, dict[str, Claim]]:
    """Return the claims that this run can judge, by experiment and name."""
    found: dict[str, dict[str, Claim]] = {}
    built = {name for _, name, _ in plan.experiments()}
    for study in plan.studies.values():
        for name, claim in study.claims.items():
            here = claim_of_run(plan, claim)
            if here is not None and here.experiment in built:
                found.setdefault(here.experiment, {})[name] = here
    return found


def judge(plan: Plan, records: Mapping[str, Path]) -> pd.DataFrame:
    """Return the verdicts on the claims of the experiments in `records` (name to file), in the order of the studies.

    Raises:
        PlumblineError: records that cannot be read; a claim whose trials or values are not there.
    """
    frames: dict[str, pd.DataFrame] = {}
    for experiment, claims in claimed(plan).items():
        if experiment not in records:
            continue
        metrics = [test.metric for claim in claims.values() for test in claim.tests]
        found = evidence_of(plan, experiment, columns_of(metrics), records[experiment])
        data = data_label(plan, experiment) or "synthetic"
        for name, claim in claims.items():
            frames[name] = claim_rows(name, claim, found, plan.config.preset, data)
    order = [name for study in plan.studies.values() for name in study.claims if name in frames]
    if not order:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat([frames[name] for name in order], ignore_index=True)


def judge_folder(plan: Plan, folder: Path) -> pd.DataFrame:
    """Return the verdicts on all claims of this run, from the collected records in the folder of its results."""
    return judge(plan, {name: folder / "records" / f"{name}.parquet" for name in claimed(plan)})
