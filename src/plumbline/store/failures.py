"""Trials that failed: listing them, and clearing them for another attempt."""

import json
from collections.abc import Iterable
from pathlib import Path

from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.observers import title
from plumbline.store.spec import TrialSpec


def failed_trials(store: Path) -> list[tuple[TrialFolder, str, str]]:
    """Return (folder, name, reason) of each failed trial in the store."""
    failed = []
    for path in sorted(store.glob("*/error.json")):
        spec = TrialSpec.model_validate_json((path.parent / "spec.json").read_text(encoding="utf-8"))
        reason = json.loads(path.read_text(encoding="utf-8"))["error"]
        failed.append((TrialFolder(store, path.parent.name), title(spec), reason))
    return failed


def forget_failures(folders: Iterable[TrialFolder], trials: Path) -> list[Path]:
    """Clear the errors, and remove the job outputs that contain them, so that Snakemake reruns only those jobs.

    Returns:
        The removed files. The other trials of a removed job remain done in the store.
    """
    keys = set()
    for folder in folders:
        folder.forget()
        keys.add(folder.key)
    removed = []
    for path in sorted(trials.rglob("*.parquet")):
        if keys & set(records.read_table(path, ["key"])["key"].unique().to_pylist()):
            path.unlink()
            removed.append(path)
    return removed
