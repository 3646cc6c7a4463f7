"""Published weights into our file: as they come, or why not."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset
from plumbline.data.fetch import fetch
from plumbline.data.models import ModelEntry, load_models
from plumbline.models.learned.selfies_vae import Architecture, SelfiesVAE, read_selfies_vae
from plumbline.models.learned.selfies_vocabulary import PUBLISHED
from plumbline.registry.catalogue import catalogue
from plumbline.store.keys import input_paths
from plumbline.study.plan import load_plan
from plumbline.trainers.base import train

NAME = "selfies-vae-state-dict.pt"


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    """A state dict like the published one."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SelfiesVAE(PUBLISHED, Architecture()).state_dict()


def converted(folder: Path, state: dict[str, torch.Tensor], **options: Any) -> SelfiesVAE:
    (folder / "raw").mkdir(exist_ok=True)
    torch.save(state, folder / "raw" / NAME)
    entry = ModelEntry(title="T", trainer="published-selfies-vae", options=options)
    train("published", {"published": entry}, folder, folder / "published.npz")
    return read_selfies_vae(folder / "published.npz")


@pytest.mark.slow
def test_the_weights_arrive(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    model = converted(tmp_path, state)
    assert model.vocabulary == PUBLISHED
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    content = (tmp_path / "published.npz").read_bytes()
    converted(tmp_path, state)
    assert (tmp_path / "published.npz").read_bytes() == content


def test_strings_may_begin_with_zeros(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    weight = converted(tmp_path, state, start="zeros").state_dict()["decoder_token_embedding.weight"]
    assert (weight[0] == 0).all()
    assert torch.equal(weight[1:], state["decoder_token_embedding.weight"][1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder.layers.5.norm3.bias": None}, r"state-dict\.pt lacks decoder\.layers\.5\.norm3\.bias: these are the"),
        ({"module.x": torch.zeros(1)}, r"state-dict\.pt has, and the model has not, module\.x"),
        ({"decoder_token_unembedding": torch.zeros(128, 96)}, r"decoder_token_unembedding is 128 x 96, not 128 x 97"),
    ],
)
def test_other_weights_are_refused(
    tmp_path: Path, state: dict[str, torch.Tensor], change: dict[str, torch.Tensor | None], message: str
) -> None:
    other = {name: value for name, value in {**state, **change}.items() if value is not None}
    with pytest.raises(PlumblineError, match=message) as caught:
        converted(tmp_path, other)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "published.npz").exists()


def test_another_checksum_is_refused(tmp_path: Path) -> None:
    """Whoever knows the checksum writes it into `config/datasets.yaml`."""
    (tmp_path / NAME).write_bytes(b"other weights")
    dataset = Dataset(name="weights", title="T", file=NAME, hash="0" * 64, licence="none", citation="none")
    with pytest.raises(PlumblineError, match=rf"wrong checksum of .*{NAME}: expected 000"):
        fetch(dataset, tmp_path / "raw", tmp_path)


def test_the_workflow_fetches_what_it_reads(root: Path) -> None:
    models = load_models(root / "config" / "models.yaml")
    options = models["selfies-vae-published"].options
    assert input_paths("trainer", "published-selfies-vae", options) == [f"raw/{NAME}"]
    plan = load_plan({"studies": ["approximation"]}, root)
    assert [one.name for one in plan.datasets.values() if one.file == NAME] == ["selfies-vae-weights"]
    assert "published-selfies-vae" in catalogue().trainer


def test_a_file_that_is_no_download_is_named(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "config", tmp_path / "config")
    path = tmp_path / "config" / "models.yaml"
    path.write_text(path.read_text().replace(f"{{weights: {NAME}}}", "{weights: selfies-vae-state-dict.pth}"))
    with pytest.raises(PlumblineError, match=rf"selfies-vae-published: unknown download .*did you mean '{NAME}'"):
        load_plan({"studies": ["approximation"]}, tmp_path)
