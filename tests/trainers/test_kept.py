"""Models that are kept with the atlas are taken where they were trained as their entry says."""

from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.models import ModelEntry, load_models
from plumbline.models.learned.arrays import write_arrays
from plumbline.trainers.kept import kept_model, take_kept

ROOT = Path(__file__).parents[2]
ENTRY = ModelEntry(title="Mine", trainer="principal-components", options={"components": 2}, hours=1.0)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a model that is kept in a workspace, which is the working directory."""
    (tmp_path / "config/studies").mkdir(parents=True)
    path = tmp_path / "results/atlas/models/mine.npz"
    path.parent.mkdir(parents=True)
    write_arrays(path, {"weights": np.arange(3.0)}, ENTRY.origin("mine"))
    monkeypatch.chdir(tmp_path)
    return path


def test_it_is_copied_to_the_byte(kept: Path, tmp_path: Path) -> None:
    found = kept_model("mine", ENTRY)
    assert found == kept
    take_kept(found, tmp_path / "copy.npz")
    assert (tmp_path / "copy.npz").read_bytes() == kept.read_bytes()


def test_title_and_hours_do_not_matter(kept: Path) -> None:
    assert kept_model("mine", ENTRY.model_copy(update={"title": "Another", "hours": None})) == kept


@pytest.mark.parametrize("change", [{"options": {"components": 3}}, {"seed": 1}, {"trainer": "selfies-vae"}])
def test_one_that_was_trained_otherwise_is_not_taken(kept: Path, change: dict[str, object]) -> None:
    assert kept_model("mine", ENTRY.model_copy(update=change)) is None


@pytest.mark.usefixtures("kept")
def test_one_that_is_not_there_is_not_taken() -> None:
    assert kept_model("yours", ENTRY) is None


def test_a_damaged_one_is_an_error(kept: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(PlumblineError, match=r"mine\.npz is corrupt"):
        kept_model("mine", ENTRY)


def test_those_of_the_reference_are_trained_as_the_configuration_says() -> None:
    entries = load_models(ROOT / "config" / "models.yaml")
    names = sorted(path.stem for path in (ROOT / "results/atlas/models").iterdir())
    assert names == ["selfies-vae-10k"]
    assert all(kept_model(name, entries[name]) for name in names)
