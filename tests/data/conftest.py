"""What the tests of several archives share."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Return what packs files into an archive."""

    def pack(contents: Mapping[str, bytes], name: str = "posts.tar.gz") -> Path:
        with tarfile.open(tmp_path / name, "w:gz") as packed:
            for member, content in contents.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
        return tmp_path / name

    return pack
