"""States that are saved are those that are loaded, or one line."""

import pickle
from pathlib import Path

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import write_sealed
from plumbline.core.saved_state import load_state, save_state


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    state = {"X": torch.arange(3.0, dtype=torch.float64), "seconds": [0.5, 1], "name": "a"}
    save_state(tmp_path / "state.pt", state)
    loaded = load_state(tmp_path / "state.pt")
    assert torch.equal(loaded.pop("X"), state.pop("X"))
    assert loaded == state


def test_each_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    save_state(path, {"n": 3})
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(PlumblineError, match="checksum"):
            load_state(path)


def test_code_is_not_run(tmp_path: Path) -> None:
    write_sealed(tmp_path / "state.pt", pickle.dumps(print))
    with pytest.raises(pickle.UnpicklingError):
        load_state(tmp_path / "state.pt")
