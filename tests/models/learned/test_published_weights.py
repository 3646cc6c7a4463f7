"""Weights from elsewhere: what is read, and what is refused."""

import os
import pickle
import random
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
    with pytest.raises(PlumblineError, match=r"w\.pt holds code \(posix\.mkdir\) and was not read"):
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


@pytest.mark.parametrize("protocol", [0, 2])
def test_plain_pickles_with_code_are_not_run_and_no_unsafe_advice_is_passed_on(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "w.pt").write_bytes(pickle.dumps({"weight": Evil(tmp_path / "done")}, protocol))
    with pytest.raises(PlumblineError, match=r"w\.pt (holds code|is corrupt)") as caught:
        read_state_dict(tmp_path / "w.pt")
    assert "weights_only" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            torch.tensor([[0.0, float("nan"), 1.0], [0.0, float("nan"), 1.0]]),
            "2 of 6 numbers of weight are NaN or infinite",
        ),
        (torch.tensor([[0.0, float("-inf"), 1.0]] * 2), "2 of 6 numbers of weight are NaN or infinite"),
        (torch.full((2, 3), 1e300, dtype=torch.float64), "6 of 6 numbers of weight are NaN or infinite"),
        (torch.ones(2, 3).to_sparse(), "weight is no dense tensor"),
        (torch.ones(2, 3, device="meta"), "weight is no dense tensor"),
        (torch.ones(2, 3, dtype=torch.int64), "weight is torch.int64, not torch.float32"),
        (torch.ones(2, 3, dtype=torch.complex64), "weight is torch.complex64, not torch.float32"),
        (torch.ones(1).expand(10**12, 3), "weight is 1000000000000 x 3, not 2 x 3"),
    ],
)
def test_tensors_that_are_no_weights_are_named(tmp_path: Path, weight: torch.Tensor, message: str) -> None:
    model, path = nn.Linear(3, 2), tmp_path / "w.pt"
    before = model.weight.clone()
    torch.save({"weight": weight, "bias": torch.zeros(2)}, path)
    with pytest.raises(PlumblineError, match=rf"w\.pt: {message}") as caught:
        load_weights(model, read_state_dict(path), path)
    assert "\n" not in str(caught.value)
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_another_precision_are_weights(dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2)
    load_weights(model, {"weight": torch.full((2, 3), 0.5, dtype=dtype), "bias": torch.zeros(2)}, Path("w"))
    assert torch.equal(model.weight, torch.full((2, 3), 0.5))


def test_damaged_bytes_are_weights_or_one_line(tmp_path: Path) -> None:
    draw, path, said = random.Random(0), tmp_path / "w.pt", []
    torch.save(nn.Linear(3, 2).state_dict(), path)
    whole = path.read_bytes()
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 1, 5])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
        try:
            load_weights(nn.Linear(3, 2), read_state_dict(path), path)
        except PlumblineError as error:
            said.append(str(error))
    assert all(str(path) in one and "\n" not in one for one in said)


@pytest.mark.parametrize("content", [[1, 2], {1: torch.zeros(2)}, {"weight": 3.0}, torch.zeros(2)])
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
