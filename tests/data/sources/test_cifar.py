"""CIFAR-10's two archives: what is in them, and what is said of others."""

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import find_dataset, load_datasets
from plumbline.data.fetch import fetch
from plumbline.data.sources.cifar import FOLDER, META, TEST, TRAIN, read_cifar, read_cifar_jpegs

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
Pack = Callable[..., Path]


@pytest.fixture
def pack(archive: Pack) -> Pack:
    """Write an archive of the given members."""
    return lambda contents: archive(contents, "cifar.tar.gz")


def batch(first: int, n: int = 3) -> dict[bytes, Any]:
    """A few images whose pixels are all their number; the first channel is one brighter, the last pixel is 255."""
    data = np.repeat(np.arange(first, first + n, dtype=np.uint8)[:, None], 3072, axis=1)
    data[:, :1024] += 1
    data[:, -1] = 255
    return {b"data": data, b"labels": [(first + i) % 10 for i in range(n)], b"batch_label": b"of a test"}


def python_members(**changes: Any) -> dict[str, bytes]:
    batches = {name: batch(10 * i) for i, name in enumerate((*TRAIN, TEST))}
    held = {**batches, META: {b"label_names": [name.encode() for name in CLASSES]}, **changes}
    packed = {f"{FOLDER}/{name}": pickle.dumps(one, 4) for name, one in held.items() if one is not None}
    return {**packed, f"{FOLDER}/readme.html": b"<html>"}


def test_the_batches_are_put_together_in_their_order(pack: Pack) -> None:
    images = read_cifar(pack(dict(reversed(python_members().items()))))
    assert images.classes == CLASSES
    assert images.train.pixels.shape == (15, 3, 32, 32)
    assert images.train.pixels[:, 1, 0, 0].tolist() == [10 * i + j for i in range(5) for j in range(3)]
    assert images.train.pixels[:, 0, 0, 0].tolist() == [10 * i + j + 1 for i in range(5) for j in range(3)]
    assert (images.train.pixels[:, 2, 31, 31] == 255).all()
    assert images.train.labels.tolist() == [0, 1, 2] * 5
    assert images.test.pixels[:, 1, 5, 5].tolist() == [50, 51, 52]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({TRAIN[2]: None}, rf"has no {FOLDER}/data_batch_3: it is not CIFAR-10's archive for Python"),
        ({META: None}, rf"has no {FOLDER}/batches.meta"),
        ({TEST: [1, 2]}, "test_batch holds no mapping"),
        ({TEST: {b"data": np.zeros((2, 3072), np.uint8)}}, r"test_batch has no b'labels'"),
        ({TEST: {b"data": np.zeros((2, 3072)), b"labels": [0, 1]}}, r"has data float64 \(2, 3072\) for 2 labels"),
        ({TEST: {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]}}, "for 1 labels"),
        ({TEST: {b"data": np.zeros((2, 99), np.uint8), b"labels": [0, 1]}}, r"\(2, 99\)"),
        ({TEST: {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]}}, "has labels beyond 0 to 9"),
    ],
)
def test_another_archive_is_one_line_that_names_it(pack: Pack, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlumblineError, match=said) as caught:
        read_cifar(pack(python_members(**changes)))
    assert "cifar.tar.gz" in str(caught.value)
    assert "\n" not in str(caught.value)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_a_malicious_pickle_is_refused_and_not_run(pack: Pack, tmp_path: Path) -> None:
    mark = tmp_path / "was here"
    with pytest.raises(PlumblineError, match=r"data_batch_2 is refused \(it asks for .*system, which is no array\)"):
        read_cifar(pack(python_members(data_batch_2={b"data": Bomb(mark)})))
    assert not mark.exists()


def jpeg(shade: int, size: tuple[int, int] = (32, 32), mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    colour = shade if mode == "L" else (shade, 0, 255 - shade)
    Image.new(mode, size, colour).save(stream, options.pop("format", "JPEG"), quality=100, **options)
    return stream.getvalue()


def jpeg_members(**changes: bytes | None) -> dict[str, bytes]:
    held: dict[str, bytes | None] = {
        f"cifar10/{part}/{label}/{i:04}.jpg": jpeg(40 * i + 10 * j)
        for part in ("train", "test")
        for j, label in enumerate(("dog", "cat"))
        for i in range(1, 3)
    }
    return {name: one for name, one in {**held, **changes}.items() if one is not None}


def test_jpegs_are_read_in_the_order_of_their_names(pack: Pack) -> None:
    images = read_cifar_jpegs(pack(dict(reversed(jpeg_members().items()))))
    assert images.classes == ("cat", "dog")
    for part in (images.train, images.test):
        assert part.labels.tolist() == [0, 0, 1, 1]
        assert part.pixels.shape == (4, 3, 32, 32)
        np.testing.assert_allclose(part.pixels[:, 0, 7, 9].astype(int), [50, 90, 40, 80], atol=3)
        np.testing.assert_allclose(part.pixels[:, 2, 7, 9].astype(int), [205, 165, 215, 175], atol=3)


def test_a_grey_jpeg_has_three_channels_too(pack: Pack) -> None:
    images = read_cifar_jpegs(pack(jpeg_members(**{"cifar10/test/cat/0001.jpg": jpeg(120, mode="L")})))
    np.testing.assert_allclose(images.test.pixels[0].astype(int), 120, atol=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cifar10/test/cat/0001.jpg": jpeg(9)[:300]}, r"0001\.jpg cannot be read .*: delete the archive"),
        ({"cifar10/test/cat/0001.jpg": b"GIF89a"}, r"0001\.jpg cannot be read"),
        ({"cifar10/test/cat/0001.jpg": jpeg(9, format="PNG")}, r"0001\.jpg cannot be read"),
        ({"cifar10/test/cat/0001.jpg": jpeg(9, (64, 32))}, "64 x 32 pixels, not 32 x 32"),
        ({"cifar10/test/owl/0001.jpg": jpeg(9)}, r"has no cifar10/train/CLASS/\*\.jpg of owl: it is another archive"),
    ],
)
def test_what_is_wrong_with_a_jpeg_is_one_line_that_names_it(pack: Pack, changes: dict[str, bytes], said: str) -> None:
    with pytest.raises(PlumblineError, match=said) as caught:
        read_cifar_jpegs(pack(jpeg_members(**changes)))
    assert "\n" not in str(caught.value)


def test_an_archive_without_jpegs_is_another(pack: Pack) -> None:
    with pytest.raises(PlumblineError, match=r"has no cifar10/train/CLASS/\*\.jpg: it is another archive"):
        read_cifar_jpegs(pack({"readme": b""}))


@pytest.mark.parametrize("name", ["cifar-10", "cifar-10-jpeg-subset", "svhn-train", "svhn-test"])
def test_a_file_of_another_checksum_is_not_taken(tmp_path: Path, root: Path, name: str) -> None:
    dataset = find_dataset(load_datasets(root / "config/datasets.yaml"), name)
    assert dataset.file is not None
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / dataset.file).write_bytes(b"something else")
    with pytest.raises(PlumblineError, match=f"wrong checksum of .*{dataset.file}: expected .*, got .*; replace or"):
        fetch(dataset, tmp_path / "raw", tmp_path / "mirror")
    assert not (tmp_path / "raw" / dataset.file).exists()


@pytest.mark.slow
def test_the_real_jpegs() -> None:
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "cifar10-jpeg-subset.tar.gz"
    if not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with cifar10-jpeg-subset.tar.gz")
    images = read_cifar_jpegs(path)
    assert images.classes == CLASSES
    for part in (images.train, images.test):
        assert part.pixels.shape == (1000, 3, 32, 32)
        assert np.unique(part.labels, return_counts=True)[1].tolist() == [100] * 10
