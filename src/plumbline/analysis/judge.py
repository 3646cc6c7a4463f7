"""The verdicts of a run: each experiment's evidence read once, by the columns that its claims need."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from plumbline.analysis.claims import COLUMNS, claim_rows
from plumbline.analysis.draw import data_label, evidence_of
from plumbline.measures.metrics import columns_of
from plumbline.plan import Plan
from plumbline.study import Claim


def claimed(plan: Plan) -> dict[str, dict[str, Claim]]:
    """Return the claims that this run can judge, by experiment and name: without tests that the preset leaves out."""
    found: dict[str, dict[str, Claim]] = {}
    for study, experiment, _ in plan.experiments():
        there = {(trial.task, trial.method.label) for trial in plan.trials(experiment)}
        for name, claim in study.claims.items():
            tests = tuple(test for test in claim.tests if there.issuperset(test.trials))
            if claim.experiment == experiment and tests:
                found.setdefault(experiment, {})[name] = claim.model_copy(update={"tests": tests})
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
