"""What molecules cost, decoded and encoded, at the size of the published model."""

import pytest
import torch

from plumbline.models.learned.selfies_vae import Architecture, SelfiesVAE
from plumbline.models.learned.selfies_vocabulary import PUBLISHED

MEAN_LENGTH = 46
"""Symbols of a GuacaMol molecule, on average."""


@pytest.fixture(scope="module")
def model() -> SelfiesVAE:
    """An untrained model of the published size whose strings have no end."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SelfiesVAE(PUBLISHED, Architecture()).eval().requires_grad_(False)
    model.decoder_token_unembedding[:, PUBLISHED.stop] = 0.0
    return model


@pytest.mark.parametrize("n", [20, 1000])
def test_decoding(benchmark, model, n, monkeypatch):
    """Required: 1,000 points in 5 s; here each string has the length of an average molecule."""
    monkeypatch.setattr("plumbline.models.learned.selfies_vae.LONGEST", MEAN_LENGTH)
    Z = 16 * torch.rand(n, 256, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 8
    strings = benchmark.pedantic(model.decode, (Z,), rounds=3, warmup_rounds=1)
    assert sum(string.count("[") for string in strings) > 0.9 * n * MEAN_LENGTH


def test_decoding_to_the_longest(benchmark, model):
    """The worst case: no string ends."""
    Z = 16 * torch.rand(1000, 256, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 8
    benchmark.pedantic(model.decode, (Z,), rounds=1)


def test_encoding_1000_molecules(benchmark, model):
    symbols = torch.randint(2, len(PUBLISHED), (1000, MEAN_LENGTH), generator=torch.Generator().manual_seed(0)).tolist()
    tokens = [[*row, PUBLISHED.stop] for row in symbols]
    assert benchmark.pedantic(model.encode_tokens, (tokens,), rounds=1).shape == (1000, 256)
