import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.svhn import read_svhn


def write(path: Path, labels: list[int], **changes: Any) -> Path:
    """Write digits as SVHN has them: the number of an image is its top left pixel, its green a row number."""
    X = np.zeros((32, 32, 3, len(labels)), dtype=np.uint8)
    X[0, 0, 0] = np.arange(len(labels))
    X[:, :, 1] = np.arange(32)[:, None, None]
    savemat(path, {"X": X, "y": np.array(labels, dtype=np.uint8)[:, None], **changes}, do_compression=True)
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "train.mat", [1, 9, 10, 2]), write(tmp_path / "test.mat", [10, 5])


def test_images_come_first_and_ten_is_a_zero(files: tuple[Path, Path]) -> None:
    images = read_svhn(*files)
    assert images.classes == tuple("0123456789")
    assert images.train.labels.tolist() == [1, 9, 0, 2]
    assert images.test.labels.tolist() == [0, 5]
    assert images.train.pixels.shape == (4, 3, 32, 32)
    assert images.train.pixels[:, 0, 0, 0].tolist() == [0, 1, 2, 3]
    assert images.train.pixels[2, 1, :, 17].tolist() == list(range(32))


def test_a_file_that_is_not_there_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    for pair in ((files[0], tmp_path / "none.mat"), (tmp_path / "none.mat", files[1])):
        with pytest.raises(PlumblineError, match=r"no file .*none\.mat: `plumbline fetch` gets it"):
            read_svhn(*pair)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_one_line_with_the_remedy(files: tuple[Path, Path], share: float) -> None:
    content = files[1].read_bytes()
    files[1].write_bytes(content[: int(share * len(content))])
    with pytest.raises(PlumblineError, match=r"test\.mat is no file of SVHN's digits .*: delete it and fet") as caught:
        read_svhn(*files)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_damaged_bytes_are_images_or_one_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    """SciPy's reader crashes on some of these files; its process is not ours."""
    draw, path, said = random.Random(0), tmp_path / "damaged.mat", []
    whole = loadmat(files[1])
    savemat(path, {name: whole[name] for name in ("X", "y")})
    content = path.read_bytes()
    for place in (*range(128, 200, 8), *range(len(content) - 64, len(content), 16), *draw.sample(range(400), 8)):
        damaged = bytearray(content)
        damaged[place] = draw.randrange(256)
        path.write_bytes(damaged)
        try:
            assert read_svhn(files[0], path).test.pixels.shape == (2, 3, 32, 32)
        except PlumblineError as error:
            said.append(str(error))
    assert len(said) > 5
    assert all("damaged.mat is no file of SVHN's digits" in one and "\n" not in one for one in said)


@pytest.mark.parametrize(
    "changes",
    [
        {"X": np.zeros((32, 32, 3, 5), np.uint8)},
        {"X": np.zeros((32, 32, 3, 2))},
        {"y": np.array([[0], [3]], np.uint8)},
        {"y": np.array([[11], [3]], np.uint8)},
    ],
)
def test_other_arrays_are_refused(files: tuple[Path, Path], changes: dict[str, Any]) -> None:
    write(files[1], [1, 2], **changes)
    with pytest.raises(PlumblineError, match=r"test\.mat is no file of SVHN's digits \(X is "):
        read_svhn(*files)


def test_a_page_is_no_file_of_digits(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[0].write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(PlumblineError, match=r"train\.mat is no file of SVHN's digits"):
        read_svhn(*files)
    savemat(files[0], {"Z": np.zeros(3)})
    with pytest.raises(PlumblineError, match=r"train\.mat is no file of SVHN's digits \('X'\)"):
        read_svhn(*files)
