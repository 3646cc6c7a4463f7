"""A trained model: from its entry to a problem that reads it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.data.features import read_features
from plumbline.data.models import ModelEntry, load_models
from plumbline.data.sources.molecules import DESCRIPTORS
from plumbline.models.learned.latent import read_latent
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.store.keys import trial_inputs, trial_key
from plumbline.store.spec import TrialSpec
from plumbline.trainers.base import train

SOURCE = "generated-molecules"
ENTRY = ModelEntry(title="for tests", trainer="principal-components", options={"dataset": SOURCE, "components": 4})
ASKED = {"dataset": SOURCE, "target": "qed", "pool": 30, "latent": "small"}


@pytest.fixture
def data(molecules: Path, tmp_path: Path) -> Path:
    """A data folder with features and the model trained on them."""
    features = tmp_path / "features" / f"{SOURCE}.parquet"
    features.parent.mkdir()
    features.write_bytes((molecules / "features" / f"{SOURCE}.parquet").read_bytes())
    train("small", {"small": ENTRY}, tmp_path, tmp_path / "models" / "small.npz")
    return tmp_path


def spec(**latent: str) -> TrialSpec:
    options = {**{name: value for name, value in ASKED.items() if name != "latent"}, **latent}
    return TrialSpec.model_validate(
        {
            "problem": {"name": "molecules", "options": options},
            "method": "random",
            "seed": 0,
            "budget": {"initial": {"design": "uniform", "size": 3}, "rounds": 1},
        }
    )


def test_it_keeps_most_of_what_varies(data: Path) -> None:
    latent = read_latent(data / "models" / "small.npz")
    X = torch.from_numpy(
        read_features(data / "features" / f"{SOURCE}.parquet")[list(DESCRIPTORS)].to_numpy("float64", copy=True)
    )
    Z = latent.encode(X)
    assert Z.shape == (len(X), 4)
    np.testing.assert_allclose(latent.axes @ latent.axes.T, np.eye(4), atol=1e-12)
    covariance = np.cov(Z.numpy().T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
    standard = (X.numpy() - latent.mean) / latent.scale
    assert np.diag(covariance).sum() > 0.6 * standard.var(axis=0, ddof=1).sum()


def test_the_same_entry_is_the_same_file(data: Path) -> None:
    again = data / "again.npz"
    train("small", {"small": ENTRY}, data, again)
    assert again.read_bytes() == (data / "models" / "small.npz").read_bytes()


def test_a_problem_sees_rows_through_it(data: Path) -> None:
    plain = {name: value for name, value in ASKED.items() if name != "latent"}
    seen, bare = (
        build_problem("molecules", options, Context(data, torch.Generator().manual_seed(0)))
        for options in (ASKED, plain)
    )
    assert seen.space.dim == 4
    rows = read_latent(data / "models" / "small.npz").encode(bare.space.rows)  # type: ignore[attr-defined]
    assert torch.equal(seen.space.rows, rows)  # type: ignore[attr-defined]
    assert torch.equal(seen.function(rows, noise=False), bare.function(bare.space.rows, noise=False))  # type: ignore[attr-defined]


def test_it_is_part_of_a_trials_key(data: Path) -> None:
    with_it = spec(latent="small")
    assert trial_inputs(with_it) == [f"features/{SOURCE}.parquet", "models/small.npz"]
    before = trial_key(with_it, data), trial_key(spec(), data)
    train(
        "small",
        {"small": ENTRY.model_copy(update={"options": {"dataset": SOURCE, "components": 3}})},
        data,
        data / "models" / "small.npz",
    )
    assert trial_key(with_it, data) != before[0]
    assert trial_key(spec(), data) == before[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"dataset": "nowhere"}}, r"no features at .*nowhere\.parquet"),
        ({"options": {"dataset": SOURCE, "components": 99}}, "components: 99 of 12 descriptors"),
        ({"options": {"datset": SOURCE}}, "model 'small': trainer 'principal-components': unknown field 'datset'"),
        ({"trainer": "principal-component"}, r"unknown trainer .*did you mean 'principal-components'"),
    ],
)
def test_mistakes_are_one_line(data: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        train("small", {"small": ENTRY.model_copy(update=change)}, data, data / "x.npz")
    assert "\n" not in str(caught.value)
    assert not (data / "x.npz").exists()


def test_unknown_models_are_named(data: Path) -> None:
    with pytest.raises(PlumblineError, match="unknown model 'smal': did you mean 'small'"):
        train("smal", {"small": ENTRY}, data, data / "x.npz")
    path = data / "models.yaml"
    assert load_models(path) == {}
    path.write_text("small: {title: T, trainer: principal-components, stands_in_for: large}")
    with pytest.raises(PlumblineError, match=r"models\.yaml: small: stands_in_for: unknown model 'large'"):
        load_models(path)
    path.write_text("small: {titel: T, trainer: principal-components}")
    with pytest.raises(PlumblineError, match=r"models\.yaml: small: unknown field 'titel': did you mean 'title'"):
        load_models(path)


def test_a_model_that_is_declared_but_absent_is_one_line(data: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no model at .*other\.npz: `plumbline model other` trains it"):
        build_problem("molecules", {**ASKED, "latent": "other"}, Context(data, torch.Generator()))
    (data / "models" / "other.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(PlumblineError, match=r"other\.npz is corrupt"):
        build_problem("molecules", {**ASKED, "latent": "other"}, Context(data, torch.Generator()))


def test_a_model_of_other_features_does_not_fit(data: Path) -> None:
    path = data / "models" / "small.npz"
    with np.load(path) as held:
        parts = dict(held)
    np.savez(path, **{**parts, "columns": parts["columns"][::-1]})
    with pytest.raises(PlumblineError, match="model 'small' was trained on other features"):
        build_problem("molecules", ASKED, Context(data, torch.Generator()))
