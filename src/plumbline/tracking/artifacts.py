"""Artifacts of runs: files of the trial store, which share their space on the disk, and texts."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from plumbline.store.folder import TrialFolder


def trial_files(folder: TrialFolder) -> dict[str, Path]:
    """Return the files of a trial that its run holds, as far as the store has them."""
    paths = (
        folder.path / "spec.json",
        folder.provenance_path,
        folder.records_path,
        folder.timings_path,
        folder.error_path,
    )
    return {path.name: path for path in paths if path.is_file()}


def put(files: Mapping[str, Path | str], folder: Path) -> None:
    """Put files and texts into a folder, by their paths in it; what is there under those paths is replaced."""
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # it may be a file of the store: never write into one
        if isinstance(content, str):
            target.write_text(content, encoding="utf-8")
        else:
            _share(content, target)


def _share(source: Path, target: Path) -> None:
    """Let `target` be the file at `source` under another name, a copy of it where the file system cannot do so.

    Files of the store are replaced and never written into: a target stays what it was when it was made.
    """
    try:
        os.link(source, target)
    except OSError:  # file systems say in many ways that they have no such links; copying says what else is wrong
        shutil.copyfile(source, target)
