"""A file that cannot be read for lack of memory, or by a fault of the disk, is not called damaged."""

import errno
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pyarrow import parquet

from plumbline.core.machine import ends_job
from plumbline.data.feature_table import read_table
from plumbline.data.sources import svhn
from plumbline.data.sources.cifar import _decoded
from plumbline.models.learned.arrays import read_arrays
from plumbline.models.learned.published_weights import read_state_dict


def held_arrays(path: Path) -> object:
    with ExitStack() as stack:
        return stack.enter_context(read_arrays(path))


def decoded(path: Path) -> object:
    return _decoded(path.read_bytes(), str(path))


READERS: list[tuple[ModuleType, str, Callable[[Path], Any]]] = [
    (parquet, "read_table", read_table),
    (np, "load", held_arrays),
    (torch, "load", read_state_dict),
    (Image, "open", decoded),
    (svhn, "Parallel", svhn._part),
]
"""What reads a kind of file, in whose hands it fails, and the function that calls it."""

ERRORS: list[tuple[Exception, int]] = [
    (MemoryError("Unable to allocate 8 EiB"), errno.ENOMEM),
    (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"), errno.ENOMEM),
    (OSError(errno.EIO, "the disk"), errno.EIO),
    (OSError(errno.EMFILE, "too many files"), errno.EMFILE),
]


@pytest.mark.parametrize(("error", "number"), ERRORS)
@pytest.mark.parametrize(("module", "name", "read"), READERS)
def test_a_fault_of_the_machine_is_no_damage(
    module: ModuleType,
    name: str,
    read: Callable[[Path], Any],
    error: Exception,
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "x.bin"
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, name, fail)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its number is looked at
        read(path)
    assert caught.value.errno == number
    assert ends_job(caught.value, []), "another attempt resumes the job"
    if number == errno.ENOMEM:
        assert caught.value.filename == str(path)
