"""Trials that failed: listing them, and clearing them for another attempt."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from plumbline.core import files
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.store import records
from plumbline.store.folder import TrialFolder
from plumbline.store.observers import title
from plumbline.store.spec import TrialSpec


def failed_trials(store: Path) -> list[tuple[TrialFolder, str, str]]:
    """Return (folder, name, reason) of each failed trial in the store.

    A file of a trial that cannot be read is a warning of one line; a failed trial without its spec goes by its key.
    """
    failed = []
    for path in sorted(path for path in store.glob("*/") if any((path / name).is_file() for name in ENDS)):
        folder = TrialFolder(store, path.name)
        try:
            reason = folder.reason() if folder.failed else None
        except PlumblineError as error:
            warnings.warn(str(error), stacklevel=2)
            reason = "its reason cannot be read" if folder.error_path.is_file() else None
        if reason is not None:
            failed.append((folder, _name(folder), reason))
    return failed


OUTPUT = re.compile(r"[^/]+/[^/]+/[0-9a-f]{16}\.parquet")
"""Outputs of the workflow's jobs, in the folders of a task and a method (`Chunk.path`)."""

ENDS = ("error.json", "records.parquet")
"""Files that say how a trial ended."""


def _name(folder: TrialFolder) -> str:
    """The title of a trial, or its key, with a warning, where its spec cannot be read."""
    path = folder.path / "spec.json"
    try:
        return title(parse(TrialSpec, files.read_json(path, remedy="the trial goes by its key"), path))
    except PlumblineError as error:
        warnings.warn(str(error), stacklevel=3)
        return folder.key


def forget_failures(folders: Iterable[TrialFolder], trials: Path) -> list[Path]:
    """Clear the errors, and remove the job outputs that contain them, so that Snakemake reruns only those jobs.

    All job outputs are read before anything is removed. A damaged one is set aside, with a warning: its job runs again.
    Other tables that cannot be read, or have no keys of trials, are somebody else's, and stay untouched.

    Returns:
        The removed files. The other trials of a removed job remain done in the store.
    """
    folders = list(folders)
    if not folders:
        return []
    keys = {folder.key for folder in folders}
    concerned, damaged = [], []
    for path in sorted(trials.rglob("*.parquet")):
        try:
            if keys & set(records.read_table(path, ["key"])["key"].unique().to_pylist()):
                concerned.append(path)
        except (PlumblineError, KeyError) as error:
            if OUTPUT.fullmatch(path.relative_to(trials).as_posix()):
                damaged.append((path, str(error)))
    for path in concerned:
        path.unlink()
    for path, reason in damaged:
        files.warn_damaged(path, reason, "its job runs again")
    # The errors last: after a kill in between they are still listed.
    for folder in folders:
        folder.forget()
    return sorted([*concerned, *(path for path, _ in damaged)])
