"""The model on its own: names, shapes, decoding, files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.molecules import DRUGS
from plumbline.models.learned import selfies_vae
from plumbline.models.learned.arrays import read_curves
from plumbline.models.learned.latent import LinearLatent, write_latent
from plumbline.models.learned.selfies_vae import (
    LONGEST,
    Architecture,
    SelfiesVAE,
    padded,
    read_selfies_vae,
    write_selfies_vae,
)
from plumbline.models.learned.selfies_vocabulary import PUBLISHED

TINY = Architecture(
    vectors=3, width=16, heads=4, encoder_layers=2, decoder_layers=2, encoder_hidden=24, decoder_hidden=20, dropout=0.2
)
MOLECULES = list(DRUGS.values())[:30]


@pytest.fixture(scope="module")
def model() -> SelfiesVAE:
    """An untrained model whose strings end: `stop` is made likelier than the rest."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = SelfiesVAE(PUBLISHED, TINY).eval().requires_grad_(False)
    model.decoder_token_unembedding *= 8  # confident, so that no two symbols are close
    model.decoder_token_unembedding[:, 1] *= 3
    return model


@pytest.fixture(scope="module")
def points() -> torch.Tensor:
    return 16 * torch.rand(40, TINY.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 8


def test_parameters_are_those_of_the_published_model() -> None:
    """Names, shapes and size of the published state dict, from its code: 25 MB, places included."""
    state = SelfiesVAE(PUBLISHED, Architecture()).state_dict()
    own = {name: tuple(value.shape) for name, value in state.items() if not name.startswith(("encoder.", "decoder."))}
    assert own == {
        "encoder_token_embedding.weight": (97, 256),
        "encoder_position_encoding.pe": (1, 5000, 256),
        "decoder_token_embedding.weight": (97, 128),
        "decoder_position_encoding.pe": (1, 5000, 128),
        "decoder_token_unembedding": (128, 97),
    }
    encoder = torch.nn.TransformerEncoderLayer(256, 8, 512, batch_first=True).state_dict()
    decoder = torch.nn.TransformerDecoderLayer(128, 8, 256, batch_first=True).state_dict()
    expected = {f"encoder.layers.{i}.{name}": value.shape for i in range(6) for name, value in encoder.items()}
    expected |= {f"decoder.layers.{i}.{name}": value.shape for i in range(6) for name, value in decoder.items()}
    assert {name: value.shape for name, value in state.items() if name not in own} == expected
    assert sum(value.numel() for value in state.values()) * 4 == 25_299_968
    assert {value.dtype for value in state.values()} == {torch.float32}
    assert Architecture().dim == 256


def test_places_are_told_by_sines_and_cosines(model: SelfiesVAE) -> None:
    pe = model.decoder_position_encoding.pe[0]
    for place, i in [(0, 0), (7, 0), (7, 3), (4999, 7)]:
        angle = place / 10_000 ** (2 * i / 16)
        assert pe[place, 2 * i].item() == pytest.approx(np.sin(angle), abs=1e-3)
        assert pe[place, 2 * i + 1].item() == pytest.approx(np.cos(angle), abs=1e-3)
    X = torch.zeros(1, 2, 16)
    assert torch.equal(model.decoder_position_encoding(X, 5)[0], pe[5:7])


def test_one_symbol_after_another_is_what_whole_strings_say(model: SelfiesVAE, points: torch.Tensor) -> None:
    z = points.float().reshape(len(points), 3, 16)
    tokens = model.greedy(z)
    lengths = ((tokens == 1).cumsum(dim=1) == 0).sum(dim=1)
    assert lengths.unique().numel() > 5, "strings should end at different places for this to be a test"
    logits = model.logits(z, tokens)
    logits[..., 0] = -torch.inf
    ended = (tokens == 1).cumsum(dim=1) - (tokens == 1).long() > 0
    assert torch.equal(logits.argmax(dim=-1)[~ended], tokens[~ended])
    assert (tokens[ended] == 1).all()


@pytest.mark.slow
def test_strings_do_not_depend_on_their_company(
    model: SelfiesVAE, points: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = model.decode(points)
    assert len(set(together)) > 5
    assert [model.decode(point[None])[0] for point in points] == together
    monkeypatch.setattr(selfies_vae, "AT_ONCE", 7)
    assert model.decode(points) == together


def test_strings_are_cut_off_after_the_longest(model: SelfiesVAE, points: torch.Tensor) -> None:
    endless = SelfiesVAE(PUBLISHED, TINY).eval()
    with torch.no_grad():
        endless.load_state_dict(model.state_dict())
        endless.decoder_token_unembedding[:, 1] = 0.0
        endless.decoder_token_unembedding[:, 2:] = endless.decoder_token_unembedding[:, 2:].abs()
        for layer in endless.decoder.layers:
            layer.norm3.weight.zero_()  # type: ignore[union-attr, operator]
            layer.norm3.bias.fill_(1.0)  # type: ignore[union-attr, operator]
    strings = endless.decode(points[:3])
    assert [string.count("[") for string in strings] == [LONGEST] * 3


def test_padding_changes_no_encoding(model: SelfiesVAE) -> None:
    together = model.encode(MOLECULES)
    assert together.shape == (len(MOLECULES), TINY.dim)
    assert together.dtype == torch.float64
    alone = torch.cat([model.encode([one]) for one in MOLECULES])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    assert (together[0] - together[1]).abs().max() > 0.1


def test_it_computes_where_its_parameters_are() -> None:
    """On the device `meta`, which has no values, and refuses tensors of the CPU beside its own."""
    with torch.random.fork_rng():
        model = SelfiesVAE(PUBLISHED, TINY).to("meta")
    tokens = torch.zeros(3, 7, dtype=torch.long, device="meta")
    mean, sd = model.posterior(tokens)
    assert {one.device.type for one in (mean, sd, model.logits(mean, tokens))} == {"meta"}


def test_the_decoder_sees_no_future(model: SelfiesVAE, points: torch.Tensor) -> None:
    z = points[:1].float().reshape(1, 3, 16)
    tokens = padded([model.tokens(MOLECULES[0])], 1)
    changed = tokens.clone()
    changed[0, 6:] = 50
    before, after = model.logits(z, tokens), model.logits(z, changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], atol=1e-5, rtol=1e-5)
    assert (before[:, 7:] - after[:, 7:]).abs().max() > 1e-2


@settings(max_examples=20)
@given(rows=st.lists(st.lists(st.integers(2, 96), min_size=1, max_size=9), min_size=1, max_size=4))
def test_padded_rows_end_with_stops(rows: list[list[int]]) -> None:
    tensor = padded(rows, 1)
    for found, row in zip(tensor.tolist(), rows, strict=True):
        assert found == row + [1] * (max(map(len, rows)) - len(row))


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        ("", "SELFIES has no string for ''"),
        ("C1CC", "SELFIES has no string for 'C1CC'"),
        ("C", "C has 2 tokens: the model takes 3 to 128"),
        ("C" * 128, "has 129 tokens: the model takes 3 to 128"),
        ("[Au]CC", r"the model does not know \[Au\]"),
    ],
)
def test_molecules_that_it_cannot_read(model: SelfiesVAE, smiles: str, message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        model.encode(["CCO", smiles])
    assert "\n" not in str(caught.value)


def test_a_file_holds_all_of_it(model: SelfiesVAE, points: torch.Tensor, tmp_path: Path) -> None:
    path = tmp_path / "models" / "one.npz"
    curves = [{"epoch": 1, "kl": 0.5}]
    write_selfies_vae(path, model, curves, {"seed": 0})
    again = read_selfies_vae(path)
    assert again.architecture == TINY
    assert again.vocabulary == PUBLISHED
    assert again.decode(points) == model.decode(points)
    assert torch.equal(again.encode(MOLECULES), model.encode(MOLECULES))
    assert read_curves(path) == curves
    other = tmp_path / "other.npz"
    write_selfies_vae(other, again, curves, {"seed": 0})
    assert other.read_bytes() == path.read_bytes()


def test_files_that_are_no_model(model: SelfiesVAE, tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    with pytest.raises(PlumblineError, match=r"no model at .*one\.npz: `plumbline model one` trains it"):
        read_selfies_vae(path)
    write_latent(path, LinearLatent(("a",), np.zeros(1), np.ones(1), np.eye(1)), {})
    with pytest.raises(PlumblineError, match=r"one\.npz is no SELFIES-VAE"):
        read_selfies_vae(path)
    assert read_curves(path) == []
    write_selfies_vae(path, model, [], {})
    with np.load(path) as held:
        parts = dict(held)
    name = "decoder_token_unembedding"
    for wrong, said in ((parts[name] * np.nan, "NaN or infinite"), (np.zeros((16, 97), int), "is int64, not float32")):
        np.savez(path, **{**parts, name: wrong})
        with pytest.raises(PlumblineError, match=rf"one\.npz.*{name}.* {said}"):
            read_selfies_vae(path)
    np.savez(path, **{**parts, "decoder_token_unembedding": np.zeros((16, 5), np.float32)})
    with pytest.raises(PlumblineError, match=r"is corrupt \(decoder_token_unembedding is \(16, 5\), not \(16, 97\)\)"):
        read_selfies_vae(path)
    del parts["decoder_token_embedding.weight"]
    np.savez(path, **parts)
    with pytest.raises(PlumblineError, match=r"is corrupt \(.*decoder_token_embedding.weight"):
        read_selfies_vae(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(PlumblineError, match=r"one\.npz is corrupt"):
        read_selfies_vae(path)


@pytest.mark.parametrize("sizes", [{"width": 20, "heads": 8}, {"width": 9, "heads": 3}])
def test_heads_share_the_width_evenly(sizes: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="not even, or no multiple of heads"):
        Architecture.model_validate(sizes)
