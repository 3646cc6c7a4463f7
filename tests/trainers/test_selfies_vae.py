"""The training of a SELFIES-VAE: what it learns, that it can be killed, and what it says of mistakes."""

import json
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset, Features
from plumbline.data.features import read_features, write_features
from plumbline.data.generated.antibodies import generated_antibodies
from plumbline.data.models import ModelEntry
from plumbline.data.sources.antibodies import describe_pairs
from plumbline.models.learned.arrays import read_curves
from plumbline.models.learned.selfies_vae import Architecture, SelfiesVAE, padded, read_selfies_vae
from plumbline.models.learned.selfies_vocabulary import PUBLISHED, selfies_of, vocabulary_of
from plumbline.trainers import checkpoint
from plumbline.trainers.base import train
from plumbline.trainers.checkpoint import Checkpoint
from plumbline.trainers.selfies_vae import (
    SelfiesVaeOptions,
    Training,
    batches,
    learning_rate,
    losses,
    readable,
    reconstruction,
    validity,
)

SOURCE = "generated-molecules"
SIZES = {
    "vectors": 2,
    "width": 16,
    "heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_hidden": 16,
    "decoder_hidden": 16,
}
OPTIONS: dict[str, Any] = {
    "dataset": SOURCE,
    "architecture": SIZES,
    "epochs": 3,
    "batch": 16,
    "warmup": 3,
    "holdout": 20,
    "samples": 10,
}


def entry(**changes: Any) -> ModelEntry:
    return ModelEntry(title="for tests", trainer="selfies-vae", options=OPTIONS | changes)


def trained(data: Path, output: Path, **changes: Any) -> bytes:
    train("small", {"small": entry(**changes)}, data, output)
    return output.read_bytes()


@pytest.fixture(scope="module")
def whole(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of a training that nobody disturbed."""
    path = tmp_path_factory.mktemp("models") / "small.npz"
    trained(molecules, path)
    return path


@pytest.mark.slow
def test_it_leaves_a_model_and_its_curves(whole: Path) -> None:
    model = read_selfies_vae(whole)
    assert model.architecture == Architecture.model_validate(SIZES)
    curves = read_curves(whole)
    assert [row["epoch"] for row in curves] == [1, 2, 3]
    names = {"epoch", "cross_entropy", "kl", "loss", "token_accuracy", "reconstruction", "validity"}
    assert all(set(row) == names for row in curves)
    assert curves[2]["cross_entropy"] < curves[0]["cross_entropy"]
    assert all(row["loss"] == pytest.approx(row["cross_entropy"] + 0.1 * row["kl"]) for row in curves)
    with np.load(whole) as held:
        assert json.loads(str(held["origin"])) == {
            "name": "small",
            "trainer": "selfies-vae",
            "options": OPTIONS,
            "seed": 0,
        }
    assert not list(whole.parent.glob(".*")), "nothing is left of the checkpoint"


def test_a_gpu_trains_and_decodes_alike(whole: Path, molecules: Path, tmp_path: Path, gpu: torch.device) -> None:
    train("small", {"small": entry()}, molecules, tmp_path / "small.npz", gpu)
    here, there = (read_curves(path)[-1] for path in (whole, tmp_path / "small.npz"))
    assert there["cross_entropy"] == pytest.approx(here["cross_entropy"], abs=0.1), "dropout draws other numbers there"
    assert there["reconstruction"] == pytest.approx(here["reconstruction"], abs=0.2)
    model = read_selfies_vae(whole)
    Z = torch.randn(30, model.architecture.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    strings = model.decode(Z)
    same = [one == other for one, other in zip(strings, model.to(gpu).decode(Z), strict=True)]
    assert sum(same) >= 28, "ties to seven digits aside"
    torch.testing.assert_close(model.encode(["CCOCC"]), read_selfies_vae(whole).encode(["CCOCC"]), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_the_same_entry_is_the_same_file(whole: Path, molecules: Path, tmp_path: Path) -> None:
    before = torch.get_rng_state()
    assert trained(molecules, tmp_path / "again.npz") == whole.read_bytes()
    assert torch.equal(torch.get_rng_state(), before), "the global stream is left alone"
    assert trained(molecules, tmp_path / "other.npz", kl_weight=0.2) != whole.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 4, 7, 12])
def test_an_interrupted_training_ends_with_the_same_bytes(
    whole: Path, molecules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whether it is stopped within an epoch or between two (four steps are one)."""
    learn = Training._learn
    taken = []

    def stop(self: Training, rows: list[int]) -> None:
        if self.step == step and not taken:
            taken.append(self.step)
            raise KeyboardInterrupt
        learn(self, rows)

    monkeypatch.setattr(Training, "_learn", stop)
    monkeypatch.setattr(Checkpoint, "due", True)
    path = tmp_path / "small.npz"
    if step < 12:
        with pytest.raises(KeyboardInterrupt):
            trained(molecules, path)
        assert (tmp_path / ".small.unfinished").is_file()
        assert not path.exists()
    steps = []
    monkeypatch.setattr(Training, "_learn", lambda self, rows: (steps.append(self.step), learn(self, rows))[1])
    assert trained(molecules, path) == whole.read_bytes()
    assert steps == list(range(step if step < 12 else 0, 12)), "it goes on from where it was"
    assert not (tmp_path / ".small.unfinished").exists()


@pytest.mark.slow
def test_a_killed_process_is_gone_on_with(molecules: Path, tmp_path: Path, one_core: dict[str, str]) -> None:
    """A SIGKILL at any moment: what is there then is a whole checkpoint or none."""
    (tmp_path / "models.yaml").write_text(json.dumps({"small": entry(epochs=15).model_dump()}))
    code = (
        "from plumbline.trainers.checkpoint import Checkpoint; Checkpoint.due = True; "
        "from plumbline.cli.main import app; app()"
    )
    command = [sys.executable, "-c", code, "model", "small", "--data", str(molecules)]
    command += ["--catalogue", str(tmp_path / "models.yaml"), "--output"]
    subprocess.run([*command, str(tmp_path / "whole.npz")], env=one_core, check=True)
    unfinished = tmp_path / ".small.unfinished"
    for _ in range(2):
        seen = unfinished.stat().st_mtime_ns if unfinished.exists() else 0
        process = subprocess.Popen([*command, str(tmp_path / "small.npz")], env=one_core)
        while process.poll() is None and not (unfinished.exists() and unfinished.stat().st_mtime_ns > seen):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    subprocess.run([*command, str(tmp_path / "small.npz")], env=one_core, check=True)
    assert (tmp_path / "small.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.slow
def test_a_checkpoint_of_another_training_is_said_and_left(
    whole: Path, molecules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, unfinished = tmp_path / "small.npz", tmp_path / ".small.unfinished"
    Checkpoint(unfinished, "something else").save({})
    with pytest.warns(
        UserWarning, match=r"cannot be read \(it belongs to another training\), kept as .*: the training starts"
    ):
        assert trained(molecules, path) == whole.read_bytes()
    unfinished.write_bytes(b"half of it")
    with pytest.warns(UserWarning, match="cannot be read"):
        assert trained(molecules, path) == whole.read_bytes()


def test_a_checkpoint_is_due_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint, "monotonic", lambda: now[0])
    one = Checkpoint(tmp_path / "c", "asked", seconds=10)
    assert not one.due
    now[0] = 10.0
    assert one.due
    one.save({"step": 3})
    assert not one.due
    assert Checkpoint(tmp_path / "c", "asked").restore() == {"step": 3}
    one.remove()
    assert one.restore() is None


@pytest.mark.slow
def test_it_learns_to_come_back(molecules: Path, tmp_path: Path) -> None:
    """A few molecules by heart: decoding takes each encoding back to its molecule."""
    strings = readable(read_features(molecules / "features" / f"{SOURCE}.parquet")["smiles"].tolist()[:6], 2)
    vocabulary = vocabulary_of(strings)
    tokens = [vocabulary.tokens(string) for string in strings]
    sizes = SIZES | {"width": 32, "encoder_hidden": 64, "decoder_hidden": 64, "dropout": 0.0}
    settings = {"architecture": sizes, "epochs": 200, "batch": 6, "learning_rate": 0.005, "kl_weight": 0.0}
    options = entry(**settings).options
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SelfiesVAE(vocabulary, Architecture.model_validate(sizes))
        training = Training(model, tokens, tokens[:1], SelfiesVaeOptions.model_validate(options), 0)
        training._measure = lambda: training.sums.clear()  # type: ignore[method-assign]
        training.run(Checkpoint(tmp_path / "c", "asked"))
    assert reconstruction(model, tokens) == 1.0


def test_losses_are_those_of_the_text() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SelfiesVAE(PUBLISHED, Architecture.model_validate(SIZES)).eval()
        tokens = padded([PUBLISHED.tokens("[C][O]"), PUBLISHED.tokens("[C][N][=O][C]")], PUBLISHED.stop)
        torch.manual_seed(1)
        found = losses(model, tokens)
        torch.manual_seed(1)
        mean, sd = model.posterior(tokens)
        z = mean + sd * torch.randn_like(sd)
        logits = model.logits(z, tokens).log_softmax(dim=-1)
    counted = [(0, t) for t in range(3)] + [(1, t) for t in range(5)]
    expected = -sum(logits[i, t, tokens[i, t]] for i, t in counted) / 8
    torch.testing.assert_close(found["cross_entropy"], expected)
    right = sum(bool(logits[i, t].argmax() == tokens[i, t]) for i, t in counted) / 8
    assert float(found["token_accuracy"]) == pytest.approx(right)
    normal = torch.distributions.Normal
    divergence = torch.distributions.kl_divergence(normal(mean, sd), normal(0.0, 1.0)).mean()
    torch.testing.assert_close(found["kl"], divergence)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 9))
def test_batches_are_all_rows_of_like_length(lengths: list[int], size: int, seed: int) -> None:
    found = batches(lengths, size, torch.Generator().manual_seed(seed))
    assert sorted(row for batch in found for row in batch) == list(range(len(lengths)))
    assert all(len(batch) <= size for batch in found)
    spans = sorted((min(lengths[i] for i in batch), max(lengths[i] for i in batch)) for batch in found)
    assert all(before[1] <= after[1] and before[0] <= after[0] for before, after in pairwise(spans))
    assert found == batches(lengths, size, torch.Generator().manual_seed(seed))


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [learning_rate(step, 110, 10, 0.3) for step in range(110)]
    assert rates[:10] == pytest.approx([0.03 * (i + 1) for i in range(10)])
    assert max(rates) == rates[10] == pytest.approx(0.3)
    assert rates[60] == pytest.approx(0.15)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 1e-3
    assert learning_rate(0, 5, 0, 0.3) == 0.3


def test_more_molecules_are_learnt_and_none_of_them_is_held_out(
    molecules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are in both data sets are learnt once, or held out."""
    own = read_features(molecules / "features" / f"{SOURCE}.parquet")["smiles"].tolist()
    new = ["OCCOCCO", "NCCNCCN"]
    how = Features.model_validate({"kind": "smiles", "rows": 9})
    for name, table in (("own", own), ("others", own[:5] + new)):
        dataset = Dataset(name=name, title="T", licence="none", citation="none", features=how)
        write_features(pd.DataFrame({"smiles": table}), tmp_path / "features" / f"{name}.parquet", dataset)
    learnt = []

    def spied(self: Training, checkpoint: Checkpoint) -> list[dict[str, float]]:
        strings = [[self.model.vocabulary.string(one) for one in part] for part in (self.tokens, self.held)]
        learnt.append(strings)
        return []

    monkeypatch.setattr(Training, "run", spied)
    for more in (None, "own", "others"):
        trained(tmp_path, tmp_path / f"{more}.npz", dataset="own", more=more)
    alone, twice, with_more = learnt
    assert twice == alone
    assert with_more == [alone[0] + [selfies_of(one) for one in new], alone[1]]


def test_what_cannot_be_read_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    assert readable(["CCO", "C1CC", "C", "C" * 128], 3) == [selfies_of("CCO")]
    assert "3 of 4 molecules left out" in caplog.text
    caplog.clear()
    assert readable(["C", "C" * 127], 2) == ["[C]", "[C]" * 127]
    assert not caplog.text


def test_validity_counts_molecules(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.random.fork_rng():
        model = SelfiesVAE(PUBLISHED, Architecture.model_validate(SIZES))
    monkeypatch.setattr(model, "decode", lambda Z: ["[C][O]", "", "[Branch1]", "[N]"])
    assert validity(model, torch.zeros(4, 32)) == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "nowhere"}, r"no features at .*nowhere\.parquet"),
        ({"holdout": 80}, "80 molecules, 80 of them held out: lower `holdout`"),
        ({"learning_rate": 1e30}, "the loss is nan at step .*: lower `learning_rate`"),
        ({"architecture": {"width": 30}}, "trainer 'selfies-vae': architecture: width: 30 is not even"),
        ({"epoch": 3}, "unknown field 'epoch': did you mean 'epochs'"),
    ],
)
def test_mistakes_are_one_line(molecules: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        trained(molecules, tmp_path / "x.npz", **changes)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "x.npz").exists()


def test_a_dataset_without_molecules(tmp_path: Path) -> None:
    dataset = Dataset(
        name="pairs",
        title="T",
        licence="none",
        citation="none",
        features=Features.model_validate({"kind": "antibodies", "rows": 5}),
    )
    write_features(describe_pairs(generated_antibodies(5, 0)), tmp_path / "features" / "pairs.parquet", dataset)
    with pytest.raises(PlumblineError, match="dataset 'pairs' has no column smiles"):
        trained(tmp_path, tmp_path / "x.npz", dataset="pairs")
