"""Only arrays come out of a pickle; what would be run is not."""

import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.data.sources.array_pickles import read_pickle


def of_python_2(texts: dict[bytes, list[bytes]], name: bytes, array: np.ndarray) -> bytes:
    """Return a mapping with an array of bytes as Python 2 and NumPy 1 pickled it, protocol 2: CIFAR-10's own way."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    rows, columns = array.shape
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xff" * 1
    kind += b"J\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    shape = b"M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", columns) + b"\x86"
    filled = b"(K\x01" + shape + kind + b"\x89T" + struct.pack("<i", array.size) + array.tobytes() + b"tb"
    lists = b"".join(text(key) + b"](" + b"".join(map(text, some)) + b"e" for key, some in texts.items())
    return b"\x80\x02}(" + lists + text(name) + made + filled + b"u."


def test_an_array_of_python_2_is_read() -> None:
    array = np.arange(600, dtype=np.uint8).reshape(2, 300)
    found = read_pickle(of_python_2({b"filenames": [b"a.png", b"b.png"]}, b"data", array))
    assert found[b"filenames"] == [b"a.png", b"b.png"]
    assert found[b"data"].dtype == np.uint8
    assert np.array_equal(found[b"data"], array)


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_and_lists_of_our_own_are_read(protocol: int) -> None:
    data = {b"data": np.arange(12, dtype=np.uint8).reshape(3, 4), b"labels": [3, 1, 2]}
    found = read_pickle(pickle.dumps(data, protocol))
    assert np.array_equal(found[b"data"], data[b"data"])
    assert found[b"labels"] == [3, 1, 2]


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_in_a_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "was here"
    content = pickle.dumps({b"data": np.zeros(3), b"labels": [Bomb(mark)]}, protocol)
    with pytest.raises(pickle.UnpicklingError, match="which is no array"):
        read_pickle(content)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(OrderedDict(), 2),
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"\x80\x04\x8c\x0cnumpy\x8c\x12ndarray.__class__\x93.",
        b"cnumpy\nload\n(S'x'\ntR.",
    ],
)
def test_any_other_name_is_refused(content: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        read_pickle(content)


@pytest.mark.parametrize("length", [0, 1, 10, 60, 200])
def test_a_truncated_pickle_is_refused(length: int) -> None:
    content = pickle.dumps({b"data": np.arange(100)}, 4)
    with pytest.raises(pickle.UnpicklingError):
        read_pickle(content[: min(length, len(content) - 1)])
