from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.digits import generated_digits
from plumbline.data.sources.images import Images
from plumbline.models.learned.arrays import write_arrays
from plumbline.models.learned.images import read_images, write_images


@pytest.fixture(scope="module")
def digits() -> Images:
    return generated_digits(4, np.random.default_rng(0))


def test_images_come_back_and_the_same_are_the_same_bytes(digits: Images, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_images(tmp_path / f"{name}.npz", digits, {"trainer": "test"})
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    found = read_images(tmp_path / "one.npz")
    assert found.classes == digits.classes
    for part, read in ((digits.train, found.train), (digits.test, found.test)):
        assert read.pixels.dtype == np.uint8
        assert np.array_equal(read.pixels, part.pixels)
        assert np.array_equal(read.labels, part.labels)


def test_what_cannot_be_read_is_one_line(digits: Images, tmp_path: Path) -> None:
    path = tmp_path / "digits.npz"
    with pytest.raises(PlumblineError, match=r"no model at .*digits\.npz: `plumbline model digits` trains it"):
        read_images(path)
    write_images(path, digits, {})
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(PlumblineError, match=r"digits\.npz is corrupt .*: delete it and run again"):
        read_images(path)
    write_arrays(path, {"weights": np.zeros(3)}, {})
    with pytest.raises(PlumblineError, match=r"digits\.npz has no images: name another model"):
        read_images(path)
