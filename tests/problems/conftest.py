"""A features file small enough for any test, and the context that problems are built in."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.data.datasets import Dataset, Features
from plumbline.data.features import write_features
from plumbline.data.generated.antibodies import generated_antibodies
from plumbline.data.generated.digits import generated_digits
from plumbline.data.generated.dna import generated_dna
from plumbline.data.generated.molecules import DRUGS
from plumbline.data.sources.antibodies import describe_pairs
from plumbline.data.sources.molecules import DESCRIPTORS, TARGETS
from plumbline.models.learned.hyperparameter_grid import HyperparameterGrid, write_grid
from plumbline.models.learned.images import write_images
from plumbline.models.learned.selfies_vae import Architecture, SelfiesVAE, write_selfies_vae
from plumbline.models.learned.selfies_vocabulary import selfies_of, vocabulary_of
from plumbline.problems.base import Context
from plumbline.trainers.online_lda import OnlineLdaOptions, Point


@pytest.fixture(scope="session")
def molecule_table() -> pd.DataFrame:
    """Forty made-up rows; one column without spread, as radical electrons are in real data."""
    rng = np.random.default_rng(0)
    columns = [*DESCRIPTORS, *TARGETS]
    table = pd.DataFrame(rng.standard_normal((40, len(columns))), columns=columns)
    table["num_radical_electrons"] = 0.0
    table["qed"] = rng.uniform(size=40)
    table["sa"] = rng.uniform(1, 10, size=40)
    table.insert(0, "smiles", ["C" * (i + 1) for i in range(40)])
    return table


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory, molecule_table: pd.DataFrame) -> Path:
    """A data folder with the features of `small-molecules`, `-docking`, `-antibodies`, `-dna` and `-smiles`.

    And with `small-vae`, a model that has not been trained but whose strings end, the made-up `small-grid`, and
    `small-digits`.
    """
    folder = tmp_path_factory.mktemp("data")
    tables = {
        "molecules": molecule_table,
        "docking": molecule_table.assign(**{"3pbl_docking": -5.0 - molecule_table["sa"] / 10}),
        "antibodies": describe_pairs(generated_antibodies(40, 0)),
        "dna": generated_dna(300, 0),
        "smiles": pd.DataFrame({"smiles": [*DRUGS.values()]}),
    }
    for kind, table in tables.items():
        dataset = Dataset(
            name=f"small-{kind}",
            title="for tests",
            licence="none",
            citation="none",
            features=Features.model_validate({"kind": kind, "rows": 40}),
        )
        write_features(table, folder / "features" / f"small-{kind}.parquet", dataset)
    write_selfies_vae(folder / "models" / "small-vae.npz", untrained(), [], {})
    write_grid(folder / "models" / "small-grid.npz", perplexities(), {})
    write_images(folder / "models" / "small-digits.npz", generated_digits(10, np.random.default_rng(0)), {})
    return folder


def perplexities() -> HyperparameterGrid:
    """Return made-up perplexities at the points of the trainer's default grid."""
    points = np.array(OnlineLdaOptions(dataset="none").points(), float)
    perplexity = 900.0 + ((np.log2(points[:, 0]) - 4.3) ** 2 + (10 * points[:, 1] - 6.8) ** 2 + points[:, 2] / 7)
    measured = {"perplexity": perplexity, "with_topics": perplexity + 99 * points[:, 1], "passes": points[:, 0]}
    return HyperparameterGrid(Point._fields, points, measured, ("",) * len(points))


def untrained() -> SelfiesVAE:
    """Return a model that has not been trained: sure of its symbols, so that rounding changes none."""
    sizes = Architecture(
        vectors=2, width=8, heads=2, encoder_layers=1, decoder_layers=1, encoder_hidden=8, decoder_hidden=8, dropout=0.0
    )
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = SelfiesVAE(vocabulary_of(selfies_of(smiles) or "" for smiles in DRUGS.values()), sizes)
    with torch.no_grad():
        model.decoder_token_unembedding *= 8
        model.decoder_token_unembedding[:, model.vocabulary.stop] *= 3
    return model.eval()


@pytest.fixture(scope="session")
def context(data_folder: Path) -> Callable[[int], Context]:
    """Return a context whose generator has the given seed."""
    return lambda seed: Context(data=data_folder, generator=torch.Generator().manual_seed(seed))
