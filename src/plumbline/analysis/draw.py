"""An experiment's figure, table and claims, from its records, its illustration and its YAML."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from plumbline.analysis.claims import COLUMNS, claim_rows, with_stand_ins
from plumbline.analysis.collect import TRIAL, Evidence, evidence
from plumbline.analysis.outputs import figures, tables
from plumbline.config import Plan
from plumbline.errors import PlumblineError
from plumbline.files import atomic
from plumbline.options import parse
from plumbline.study import Claim, Study, datasets_of


def data_label(plan: Plan, name: str) -> str:
    """Return the datasets that an experiment reads, stand-ins named as such; empty if it reads none."""
    datasets = datasets_of(plan.study_of(name).trials(name, plan.config.preset, plan.stand_ins))
    real = {stand_in: dataset for dataset, stand_in in plan.stand_ins.items()}
    return ", ".join(f"{name} (generated, stands in for {real[name]})" if name in real else name for name in datasets)


def budget_label(rows: pd.DataFrame) -> str:
    """Return the evaluations of a trial in words, initial design first; empty where there are no trials."""
    if rows.empty:
        return ""
    counts = rows.groupby(TRIAL)["iteration"].agg(first=lambda column: int((column == 0).sum()), all="size")
    texts = sorted({f"{row.first} + {row.all - row.first}" for row in counts.itertuples()})
    return f"{' or '.join(texts)} evaluations"


def draw(plan: Plan, name: str, found: Evidence, outputs: Sequence[Path]) -> None:
    """Draw the figure of experiment `name` into each of `outputs`.

    Raises:
        PlumblineError: the experiment has no figure, or its options are wrong.
    """
    import matplotlib.pyplot as plt

    from plumbline.analysis import style

    output = plan.experiment(name).figure
    if output is None:
        raise PlumblineError(f"{name} has no figure")
    entry = figures[output.kind]
    if found.rows.empty and found.illustration.empty:
        raise PlumblineError(
            f"{name} has no trial that ended well and no illustration: nothing to draw; see `plumbline failures`"
        )
    with style.house_style():
        figure = entry.build(found, parse(entry.options, output.options, f"figure of {name}"))
        illustrated = found.rows.empty  # one draw of all that is random in it
        footer = style.Footer(
            plan.config.preset,
            1 if illustrated else found.seeds,
            "illustration" if illustrated else budget_label(found.rows),
            data_label(plan, name),
            len(found.failures),
        )
        style.add_footer(figure, footer)
        try:
            for path in outputs:
                with atomic(path) as part:
                    # Without a date two drawings of the same records are the same file.
                    metadata = {"Date": None} if path.suffix == ".svg" else {}
                    figure.savefig(part, format=path.suffix.removeprefix("."), metadata=metadata)
        finally:
            plt.close(figure)


def tabulate(plan: Plan, name: str, found: Evidence | None) -> pd.DataFrame:
    """Return the table of experiment `name`; raise PlumblineError where it has none."""
    output = plan.experiment(name).table
    if output is None:
        raise PlumblineError(f"{name} has no table")
    entry = tables[output.kind]
    return entry.build(found, parse(entry.options, output.options, f"table of {name}"), plan.study_of(name))


def claim_of_run(plan: Plan, study: Study, name: str) -> Claim | None:
    """Return claim `name` as this run can judge it, or None where it cannot.

    Problems are named as the run has them, stand-ins included; tests of trials that the preset leaves out are left out.
    """
    claim, preset = study.claims[name], plan.config.preset
    claim = with_stand_ins(claim, study.problem_labels(claim.experiment, preset, plan.stand_ins))
    trials = study.trials(claim.experiment, preset, plan.stand_ins)
    there = {(trial.problem.label, trial.method.label) for trial in trials}
    tests = tuple(test for test in claim.tests if there.issuperset(test.trials))
    return claim.model_copy(update={"tests": tests}) if tests else None


def judge_claims(plan: Plan, paths: Mapping[str, Path]) -> pd.DataFrame:
    """Return the verdicts on the claims of all experiments in `paths` (name to records)."""
    frames = [
        claim_rows(
            name,
            claim,
            evidence(paths[claim.experiment]),
            plan.config.preset,
            data_label(plan, claim.experiment) or "synthetic",
        )
        for study in plan.studies.values()
        for name in study.claims
        if study.claims[name].experiment in paths and (claim := claim_of_run(plan, study, name)) is not None
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
