"""Figures, tables and reports -> drafts of the runs that hold them."""

import json
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.files import digest_of
from plumbline.registry.references import short_digest
from plumbline.store.reference_files import CLAIMS
from plumbline.study.resolved import ResolvedExperiment
from plumbline.tracking.drafts import Draft
from plumbline.tracking.runs import KIND, milliseconds


def experiment_outputs(experiment: ResolvedExperiment, folder: Path) -> Draft | None:
    """Return the draft of the run that holds an experiment's figure and table; None where neither is there."""
    paths = [folder / "figures" / f"{experiment.name}.{kind}" for kind in ("png", "svg")]
    return _holding([*paths, folder / "tables" / f"{experiment.name}.csv"], folder, "figure and table")


def preset_report(preset: str, folder: Path) -> Draft | None:
    """Return the draft of the run that holds a preset's report and claims; None where neither is there."""
    return _holding([folder / "report.html", folder / CLAIMS], folder, f"report of {preset}")


def _holding(paths: Sequence[Path], folder: Path, name: str) -> Draft | None:
    """Return the draft of a run that holds those of `paths` in `folder` that there are; None where none is."""
    files = {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}
    if not files:
        return None
    time = milliseconds(max(path.stat().st_mtime for path in files.values()))
    digests = {inner: digest_of(path) for inner, path in files.items()}
    return Draft(
        made_of=short_digest(json.dumps(digests)),
        name=name,
        tags={KIND: "outputs"},
        params={},
        points=[],
        begin=time,
        end=time,
        files=files,
    )
