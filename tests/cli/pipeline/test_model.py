"""The command that trains a model or copies it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


def test_without_an_output_a_model_is_where_trials_look_for_it(
    run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As errors about a file that is not there say it."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("model", "selfies-vae-10k", "--catalogue", root / "config/models.yaml")
    assert code == 0
    assert out.startswith("data/models/selfies-vae-10k.npz: a copy of ")
    assert (tmp_path / "data/models/selfies-vae-10k.npz").is_file()


def test_a_model_that_is_kept_with_the_atlas_is_copied(run: Run, root: Path, tmp_path: Path) -> None:
    kept = root / "results/atlas/models/selfies-vae-10k.npz"
    command = (
        "model",
        "selfies-vae-10k",
        "--catalogue",
        root / "config/models.yaml",
        "-o",
        "models/selfies-vae-10k.npz",
    )
    code, output, _ = run(*command)
    assert code == 0
    assert output == f"models/selfies-vae-10k.npz: a copy of {kept}\n"
    assert (tmp_path / "models/selfies-vae-10k.npz").read_bytes() == kept.read_bytes()
    code, _, errors = run(*command, "--anew")
    assert code == 2
    assert "guacamol-10k" in errors, "a training needs its data"
