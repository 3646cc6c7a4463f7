"""Archives become files of images, each with its own reader; what is missing is said by name."""

import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from plumbline.core.errors import PlumblineError
from plumbline.data.models import ModelEntry, load_models
from plumbline.data.sources.cifar import FOLDER, META, TEST, TRAIN
from plumbline.models.learned.images import read_images
from plumbline.trainers.base import train


def made(name: str, trainer: str, data: Path, seed: int = 0, **options: Any) -> Any:
    entries = {name: ModelEntry(title="for tests", trainer=trainer, options=options, seed=seed)}
    output = data / "models" / f"{name}.npz"
    train(name, entries, data, output)
    return read_images(output)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder of downloads with four images of each class, or two, under the names of CIFAR-10 and SVHN."""
    folder = tmp_path / "raw"
    folder.mkdir()
    labels = [*range(10)] * 4
    data = np.repeat(np.arange(40, dtype=np.uint8)[:, None], 3072, axis=1)
    rows = {name: slice(8 * i, 8 * i + 8) for i, name in enumerate(TRAIN)}
    rows[TEST] = slice(0, 20)
    batches: dict[str, Any] = {name: {b"data": data[at], b"labels": labels[at]} for name, at in rows.items()}
    batches[META] = {b"label_names": [b"a%d" % i for i in range(10)]}
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name, batch in batches.items():
            content = pickle.dumps(batch, 4)
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    for name, count in (("train", 40), ("test", 20)):
        pixels = data[:count].T.reshape(3, 32, 32, count).transpose(1, 2, 0, 3)
        savemat(folder / f"{name}_32x32.mat", {"X": pixels, "y": np.array(labels[:count])[:, None] + 1})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["cifar-10", "svhn"])
def test_all_of_an_archive_or_some_of_each_class(raw: Path, trainer: str) -> None:
    whole = made("whole", trainer, raw.parent)
    assert (len(whole.train.labels), len(whole.test.labels)) == (40, 20)
    assert whole.train.pixels[:, 1, 3, 3].tolist() == [*range(40)]
    part = made("part", trainer, raw.parent, a_class=1)
    assert (len(part.train.labels), len(part.test.labels)) == (10, 10)
    assert sorted(part.train.labels.tolist()) == [*range(10)]
    same, other = (made("part", trainer, raw.parent, seed=seed, a_class=1) for seed in (0, 1))
    assert np.array_equal(part.train.pixels, same.train.pixels)
    assert not np.array_equal(part.train.pixels, other.train.pixels)


@pytest.mark.parametrize(
    ("trainer", "missing"),
    [
        ("cifar-10", "cifar-10-python.tar.gz"),
        ("cifar-10-jpegs", "cifar10-jpeg-subset.tar.gz"),
        ("svhn", "train_32x32.mat"),
        ("svhn", "test_32x32.mat"),
    ],
)
def test_a_missing_file_is_named_and_nothing_is_written(raw: Path, trainer: str, missing: str) -> None:
    (raw / missing).unlink(missing_ok=True)
    with pytest.raises(PlumblineError, match=f"no file .*{missing}: `plumbline fetch` gets it"):
        made("images", trainer, raw.parent)
    assert not (raw.parent / "models").exists()


def test_digits_need_no_download(tmp_path: Path) -> None:
    digits = made("digits", "generated-digits", tmp_path, a_class=3)
    assert len(digits.train.labels) == len(digits.test.labels) == 30
    assert not np.array_equal(digits.train.pixels, made("others", "generated-digits", tmp_path, a_class=3).train.pixels)


def test_the_studys_images_are_read_from_its_datasets(root: Path) -> None:
    models = load_models(root / "config/models.yaml")
    trainers = {name: models[name].trainer for name in ("cifar-10-images", "cifar-10-subset", "svhn-images")}
    assert set(trainers.values()) == {"cifar-10", "svhn"}
    assert models["cifar-10-subset"].options == {"a_class": 100}
    assert models["generated-digits"].stands_in_for == "svhn-subset"
