"""Reference figures, drawn anew from the other reference results: a new style takes no new trials."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import NotInReferenceError, Reference
from plumbline.analysis.evidence.runs import COLUMNS as RUN
from plumbline.analysis.outputs.draw import budget_label, draw
from plumbline.analysis.publish.reference import keep_figure
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_csv, read_json
from plumbline.store.records import read_table
from plumbline.store.reference_files import ExperimentFiles, drawn
from plumbline.study.plan import Plan
from plumbline.study.resolved import STANDS_IN, ResolvedExperiment

REPLACED = re.compile(rf"([\w.-]+) \((?:generated, )?{STANDS_IN} ([\w.-]+)\)")
"""A dataset in place of another, in a label of data."""

SAME = ("preset", "data", "commit")
"""Facts of a provenance that make trials of the same task, method and seed the same trials."""

Settings = Callable[[Mapping[str, Any]], Plan]
"""The plan under some values of the configuration."""


def settings_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the configuration that results were made under, by their provenance."""
    instead = {real: stand_in for stand_in, real in REPLACED.findall(about.get("data", ""))}
    return {"preset": about.get("preset", "paper"), "data": "real", "instead": instead}


def places(resolved: ResolvedExperiment) -> pd.DataFrame:
    """Return one row per evaluation of an experiment's trials, which identifies it and says nothing of its outcome."""
    frames = []
    for spec, seeds in resolved.trials:
        first, rounds, q = spec.budget.initial.size, spec.budget.rounds, spec.budget.q
        iterations = np.concatenate([np.zeros(first, dtype=int), np.repeat(np.arange(1, rounds + 1), q)])
        size = len(iterations)
        frame = pd.DataFrame(
            {
                "seed": np.repeat(list(seeds), size),
                "iteration": np.tile(iterations, len(seeds)),
                "evaluation": np.tile(np.arange(size), len(seeds)),
            }
        )
        frames.append(frame.assign(task=spec.task, method=spec.method.label))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def read_parquet(path: Path) -> pd.DataFrame:
    """Return a table of the reference results, empty where there is none."""
    return read_table(path).to_pandas() if path.is_file() else pd.DataFrame()


def reference_runs(
    reference: Path, name: str, about: Mapping[str, Any], evaluations: Mapping[Any, int]
) -> pd.DataFrame:
    """Return the runs of an experiment, and those of the same trials that other experiments keep.

    Args:
        reference: folder of the reference results.
        name: of the experiment.
        about: its provenance.
        evaluations: of its trials, by task, method and seed.
    """
    found = [read_parquet(ExperimentFiles(reference / name).runs)]
    for home in map(ExperimentFiles, sorted(reference.iterdir())):
        if home.name != name and home.runs.is_file():
            other = read_json(home.provenance)
            if all(other[fact] == about[fact] for fact in SAME):
                runs = read_parquet(home.runs)
                trials = zip(runs["task"], runs["method"], runs["seed"], runs["evaluations"], strict=True)
                found.append(runs[[evaluations.get(trial[:3]) == trial[3] for trial in trials]])
    return pd.concat(found, ignore_index=True).drop_duplicates(RUN[:4]) if any(map(len, found)) else pd.DataFrame()


def reference_evidence(resolved: ResolvedExperiment, reference: Path) -> Evidence:
    """Return the evidence of an experiment from its reference results.

    Raises:
        PlumblineError: its grid has changed since.
    """
    name = resolved.name
    home = ExperimentFiles(reference / name)
    found = Evidence(
        illustration=read_parquet(home.illustration),
        legends=resolved.legends,
        titles=resolved.titles,
    )
    if not resolved.trials:
        return found
    about = read_json(home.provenance, ("preset", "data", "commit", "budget", "seeds"))
    rows = places(resolved)
    now = (budget_label(rows), int(rows["seed"].nunique()), resolved.data or "synthetic")
    if now != (about["budget"], about["seeds"], about["data"]):
        raise NotInReferenceError(f"today's trials, but {about['budget']} of {about['seeds']} seeds on {about['data']}")
    kept = Reference(
        rounds=read_parquet(home.rounds),
        curves=read_parquet(home.curves),
        runs=reference_runs(reference, name, about, resolved.evaluations),
        table=read_csv(home.table) if home.table.is_file() else pd.DataFrame(),
    )
    return Evidence(
        rows, legends=resolved.legends, titles=resolved.titles, task_parameters=resolved.parameters, reference=kept
    )


def redraw(settings: Settings, reference: Path, names: Sequence[str] = ()) -> Iterable[tuple[str, str]]:
    """Draw reference figures anew, and yield each experiment with the reason why its figure stays as it is, if it does.

    Args:
        settings: the plan under given values of the configuration.
        reference: folder of the reference results.
        names: of experiments; all that have a reference figure where there are none.

    Raises:
        PlumblineError: an experiment without a reference figure.
    """
    there = drawn(reference)
    for name in names or there:
        home = ExperimentFiles(reference / name)
        if name not in there:
            raise PlumblineError(f"no figure of {name} in {reference}: keep one (plumbline reference {name})")
        about = read_json(next(iter(home.provenances), home.provenance))
        resolved = settings(settings_of(about)).resolve(name)
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / home.figure.name
                draw(resolved, reference_evidence(resolved, reference), [path])
                keep_figure(path, home.folder)
        except NotInReferenceError as error:
            yield name, f"not in the reference results: {error}"
        except PlumblineError as error:
            yield name, str(error)
        else:
            yield name, ""
