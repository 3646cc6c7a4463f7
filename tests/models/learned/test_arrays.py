"""Files of arrays: what is refused of files that are not ours, or were ours."""

import json
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.arrays import read_arrays, read_curves, write_arrays
from plumbline.models.learned.latent import LinearLatent, read_latent, write_latent

LATENT = LinearLatent(("a", "b"), np.zeros(2), np.ones(2), np.eye(2))


def test_an_array_of_objects_is_not_read_and_no_unsafe_advice_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, curves=np.array([{"epoch": 1}], dtype=object))
    with pytest.raises(PlumblineError, match=r"x\.npz holds code and was not read: delete it and run again") as caught:
        read_curves(path)
    assert "pickle" not in str(caught.value)


def test_what_unpacks_to_too_much_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_arrays(path, {"a": np.zeros(3)}, {})
    content = path.read_bytes()
    # The sizes in the central directory, as a bomb has them.
    at = content.index(b"PK\x01\x02") + 24
    path.write_bytes(content[:at] + struct.pack("<I", 0xFFFFFFF0) + content[at + 4 :])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", bytes(1 << 10))
    with pytest.raises(PlumblineError, match=r"x\.npz unpacks to 4096 MiB, more than 4096"):
        read_curves(path)


@pytest.mark.parametrize("name", ["mean", "scale", "axes"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_named(tmp_path: Path, name: str, value: float) -> None:
    arrays = {"mean": LATENT.mean, "scale": LATENT.scale, "axes": LATENT.axes}
    arrays[name] = arrays[name] + value
    write_latent(tmp_path / "x.npz", LinearLatent(LATENT.columns, **arrays), {})
    with pytest.raises(PlumblineError, match=rf"x\.npz: {name} has numbers that are NaN or infinite"):
        read_latent(tmp_path / "x.npz")


def test_arrays_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    write_latent(tmp_path / "x.npz", LinearLatent(("a",), LATENT.mean, LATENT.scale, LATENT.axes), {})
    with pytest.raises(PlumblineError, match=r"x\.npz is corrupt \(mean is \(2,\).* for 1 columns\)"):
        read_latent(tmp_path / "x.npz")


def test_damaged_bytes_are_a_model_or_one_line(tmp_path: Path) -> None:
    draw, path, said = random.Random(0), tmp_path / "x.npz", []
    write_latent(path, LATENT, {"trainer": "test"})
    whole = path.read_bytes()
    for _ in range(200):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 1, 5])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
        try:
            read_latent(path)
        except PlumblineError as error:
            said.append(str(error))
    assert all(str(path) in one and "\n" not in one for one in said)


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK", np.lib.format.magic(1, 0)])
def test_another_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(PlumblineError, match=r"x\.npz is corrupt .*: delete it and run again"), read_arrays(path):
        pass


@pytest.mark.parametrize("origin", [{"name": "real"}, {"trainer": "of an older version"}])
def test_a_model_is_read_under_its_name(tmp_path: Path, origin: dict[str, str]) -> None:
    write_arrays(tmp_path / "models/real.npz", {"a": np.arange(3)}, origin)
    with read_arrays(tmp_path / "models/real.npz") as held:
        assert held["a"].tolist() == [0, 1, 2]
        assert json.loads(str(held["origin"])) == origin


def test_a_stand_in_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "models/made-up.npz", {"a": np.arange(3)}, {"name": "made-up"})
    (tmp_path / "models/made-up.npz").rename(tmp_path / "models/real.npz")
    words = r"real\.npz is the model 'made-up', not 'real'"
    with pytest.raises(PlumblineError, match=words) as caught, read_arrays(tmp_path / "models/real.npz"):
        pass
    assert "\n" not in str(caught.value)
    (tmp_path / "models/real.npz").rename(tmp_path / "elsewhere.npz")
    with read_arrays(tmp_path / "elsewhere.npz") as held:
        assert len(held["a"]) == 3
