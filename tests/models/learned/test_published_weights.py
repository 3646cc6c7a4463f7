"""Weights from elsewhere: what is read, and what is refused."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.published_weights import POINTER, load_weights, read_state_dict


class Evil:
    """Unpickled as code would have it, it leaves a folder behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_weights_arrive(tmp_path: Path) -> None:
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    load_weights(other, read_state_dict(tmp_path / "w.pt"), tmp_path / "w.pt")
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(other.bias, model.bias)


def test_code_is_named_and_not_run(tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(2), "more": Evil(tmp_path / "done")}, tmp_path / "w.pt")
    with pytest.raises(PlumblineError, match=r"w\.pt has code in it \(posix\.mkdir\) and is not read"):
        read_state_dict(tmp_path / "w.pt")
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"no weights at .*w\.pt"),
        (POINTER + b".github.com/spec/v1\noid sha256:00\nsize 25\n", r"w\.pt is a pointer of Git LFS"),
        (b"", r"w\.pt is corrupt"),
        (b"some text, not weights", r"w\.pt is corrupt"),
        (b"PK\x03\x04 half of it", r"w\.pt is corrupt"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "w.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlumblineError, match=message) as caught:
        read_state_dict(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [[1, 2], {"weight": 3.0}, torch.zeros(2)])
def test_other_things_than_a_state_dict(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(PlumblineError, match=r"w\.pt holds no state dict"):
        read_state_dict(tmp_path / "w.pt")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"weight": torch.zeros(2, 3)}, "w lacks bias: these are the weights of another model"),
        ({}, "w lacks bias and 1 more"),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(2), "extra": torch.zeros(1)},
            "w has, and the model has not, extra",
        ),
        ({"weight": torch.zeros(3, 2), "bias": torch.zeros(2)}, "w: weight is 3 x 2, not 2 x 3"),
    ],
)
def test_weights_of_another_model(weights: dict[str, torch.Tensor], message: str) -> None:
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    with pytest.raises(PlumblineError, match=message):
        load_weights(model, weights, Path("w"))
    assert torch.equal(model.weight, before)
