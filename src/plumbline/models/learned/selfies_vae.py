"""The SELFIES-VAE: a transformer that encodes molecules as a few vectors and decodes vectors to molecules.

Parameters have the names and shapes of the model that AABO published (`InfoTransformerVAE` in its code), so that its
weights can be loaded. They are float32, as there. Latent points are float64 outside, as all numbers in this package.
"""

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse
from plumbline.models.learned.arrays import Curves, as_json, finite, read_arrays, write_arrays
from plumbline.models.learned.selfies_vocabulary import Vocabulary, selfies_of

LONGEST = 128
"""Greatest number of tokens of a string, the stop token included."""

LEAST_SD = 1e-4
"""Least standard deviation of the posterior, added to the encoder's output."""

AT_ONCE = 64
"""Number of strings encoded or decoded together. A step costs as much with fewer, and with more the cached keys and
values exceed a processor's cache."""


class Architecture(Options):
    """Sizes of a model; the defaults are those of the published one.

    Attributes:
        vectors: number of vectors of a latent point.
        width: width of each vector and of the decoder; the encoder has twice the width, for means and deviations.
        heads: number of attention heads.
        encoder_layers, decoder_layers: numbers of layers.
        encoder_hidden, decoder_hidden: units of the hidden layer in each layer.
        dropout: dropout probability.
    """

    vectors: PositiveInt = 2
    width: PositiveInt = 128
    heads: PositiveInt = 8
    encoder_layers: PositiveInt = 6
    decoder_layers: PositiveInt = 6
    encoder_hidden: PositiveInt = 512
    decoder_hidden: PositiveInt = 256
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Architecture":
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width: {self.width} is not even, or no multiple of heads: {self.heads}")
        return self

    @property
    def dim(self) -> int:
        """The dimension of the latent space."""
        return self.vectors * self.width


class Positions(nn.Module):
    """Sinusoidal position encoding (Vaswani et al., 2017)."""

    pe: Tensor

    def __init__(self, width: int, length: int = 5_000) -> None:
        super().__init__()
        angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-log(10_000.0) / width))
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(1, length, width))

    def forward(self, X: Tensor, first: int = 0) -> Tensor:
        """Add position encodings to embedded symbols `X` (`n x T x width`), the first of which is at place `first`."""
        return X + self.pe[:, first : first + X.shape[1]]


class SelfiesVAE(nn.Module):
    """The SELFIES-VAE.

    A latent point is `vectors x width` numbers, flattened to `d` of them outside. Decoding starts with the embedding of
    the start symbol, in training too. (The published code trains with zeros in its place and samples with the
    embedding, which training has never changed.)
    """

    def __init__(self, vocabulary: Vocabulary, architecture: Architecture) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.architecture = sizes = architecture
        width, symbols = sizes.width, len(vocabulary)
        self.encoder_token_embedding = nn.Embedding(symbols, 2 * width)
        self.encoder_position_encoding = Positions(2 * width)
        self.decoder_token_embedding = nn.Embedding(symbols, width)
        self.decoder_position_encoding = Positions(width)
        self.decoder_token_unembedding = nn.Parameter(torch.randn(width, symbols) / width**0.5)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                2 * width, sizes.heads, sizes.encoder_hidden, dropout=sizes.dropout, batch_first=True
            ),
            sizes.encoder_layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(
                width, sizes.heads, sizes.decoder_hidden, dropout=sizes.dropout, batch_first=True
            ),
            sizes.decoder_layers,
        )
        self.dropout = nn.Dropout(sizes.dropout)

    def posterior(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the latent points of padded tokens `n x T`: `n x vectors x width`."""
        stop, sizes = self.vocabulary.stop, self.architecture
        ended = (tokens == stop).cumsum(dim=1)
        padding = ended - (tokens == stop).long() > 0  # after the first stop
        X = self.dropout(self.encoder_position_encoding(self.encoder_token_embedding(tokens)))
        encoded = self.encoder(X, src_key_padding_mask=padding)[:, : sizes.vectors]
        return encoded[..., : sizes.width], functional.softplus(encoded[..., sizes.width :]) + LEAST_SD

    def logits(self, z: Tensor, tokens: Tensor) -> Tensor:
        """Return logits of each token given those before it and a latent point.

        Args:
            z: `n x vectors x width`.
            tokens: `n x T`.

        Returns:
            `n x T x symbols`.
        """
        length = tokens.shape[1]
        before = functional.pad(tokens[:, :-1], (1, 0), value=self.vocabulary.start)
        X = self.dropout(self.decoder_position_encoding(self.decoder_token_embedding(before)))
        future = nn.Transformer.generate_square_subsequent_mask(length, device=z.device, dtype=z.dtype)
        return self.decoder(X, z, tgt_mask=future, tgt_is_causal=True) @ self.decoder_token_unembedding

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.decoder_token_unembedding.device

    def encode(self, smiles: Sequence[str]) -> Tensor:
        """Return the means of the latent points of molecules: `n x d`, float64.

        Raises:
            PlumblineError: SELFIES has no string for a molecule, or the string has unknown symbols, or is too short or
                too long for the model.
        """
        return self.encode_tokens([self.tokens(one) for one in smiles])

    @torch.inference_mode()
    def encode_tokens(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Return the means of the latent points of molecules given as tokens: `n x d`, float64."""
        by_length = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))  # for little padding
        Z = torch.empty(len(tokens), self.architecture.dim, dtype=torch.float64)
        for start in range(0, len(tokens), AT_ONCE):
            rows = by_length[start : start + AT_ONCE]
            mean, _ = self.posterior(padded([tokens[i] for i in rows], self.vocabulary.stop).to(self.device))
            Z[rows] = mean.flatten(start_dim=1).double().cpu()
        return Z

    def tokens(self, smiles: str) -> list[int]:
        """Return the tokens of a molecule.

        Raises:
            PlumblineError: SELFIES has no string for the molecule, or the string is empty, has unknown symbols, or is
                too short or too long for the model.
        """
        string = selfies_of(smiles)
        if string is None:
            raise PlumblineError(f"SELFIES has no string for {smiles[:80]!r}")
        tokens = self.vocabulary.tokens(string)
        if not self.fits(tokens):
            least = self.architecture.vectors
            raise PlumblineError(f"{smiles[:80]} has {len(tokens)} tokens: the model takes {least} to {LONGEST}")
        return tokens

    def fits(self, tokens: Sequence[int]) -> bool:
        """Return whether a string has at least a token per vector of its latent point, and is not too long."""
        return self.architecture.vectors <= len(tokens) <= LONGEST

    @torch.inference_mode()
    def decode(self, Z: Tensor) -> list[str]:
        """Return the likeliest SELFIES string, symbol by symbol, of each latent point in `Z` (`n x d`); some are empty.

        Decoding is deterministic; the published code samples each symbol, so that its objective is random. In float32 a
        tie of two symbols to seven digits may depend on the other strings of a batch.
        """
        z = Z.to(self.decoder_token_unembedding).reshape(len(Z), self.architecture.vectors, -1)
        decoded = (row for part in z.split(AT_ONCE) for row in self.greedy(part).tolist())
        return [self.vocabulary.string(row) for row in decoded]

    def greedy(self, z: Tensor) -> Tensor:
        """Return the tokens of the likeliest strings of `z` (`n x vectors x width`): `n x T`, ended by `stop`.

        Symbols are added one by one, with cached keys and values of the earlier ones, and strings that have ended are
        dropped. A string that does not end is truncated after `LONGEST` tokens.
        """
        stop, start = self.vocabulary.stop, self.vocabulary.start
        tokens = z.new_full((len(z), LONGEST), stop, dtype=torch.long)
        rows = torch.arange(len(z), device=z.device)
        steps = _Steps(self.decoder, z)
        last, going = tokens.new_full((len(z),), start), torch.ones_like(rows, dtype=torch.bool)
        for place in range(LONGEST):
            X = self.decoder_position_encoding(self.decoder_token_embedding(last)[:, None], place)
            logits = steps.add(X) @ self.decoder_token_unembedding
            logits[..., start] = -torch.inf  # no molecule has it
            last = torch.where(going, logits[:, 0].argmax(dim=-1), stop)
            tokens[rows, place] = last
            going = last != stop
            if not going.any():
                break
            # Dropping strings copies the cache of the others, so we wait until a quarter has ended.
            if going.sum() <= 0.75 * len(rows):
                steps.keep(going)
                rows, last, going = rows[going], last[going], going[going]
        return tokens


class _Steps:
    """A decoder for one place after another, with cached keys and values of the previous places.

    Its layers are equivalent to `nn.TransformerDecoderLayer` without dropout.

    Args:
        decoder: decoder with the layers.
        z: `n x vectors x width`, a latent point per string.
    """

    def __init__(self, decoder: nn.TransformerDecoder, z: Tensor) -> None:
        self.layers = [cast(nn.TransformerDecoderLayer, layer) for layer in decoder.layers]
        self.length = 0
        # Keys and values of each layer: of the string so far, with room for its rest, and of the latent point.
        self.own = [z.new_empty(2, len(z), layer.self_attn.num_heads, LONGEST, _head(layer)) for layer in self.layers]
        self.about = [_parts(layer.multihead_attn, z, slice(1, 3)).contiguous() for layer in self.layers]

    def add(self, X: Tensor) -> Tensor:
        """Return the decoder's output at the next place, with embedded symbols `X` (`n x 1 x width`)."""
        place, self.length = self.length, self.length + 1
        for layer, own, about in zip(self.layers, self.own, self.about, strict=True):
            query, key, value = _parts(layer.self_attn, X, slice(0, 3))
            own[0, :, :, place], own[1, :, :, place] = key[:, :, 0], value[:, :, 0]
            X = layer.norm1(X + _attend(layer.self_attn, query, own[:, :, :, : self.length]))
            (query,) = _parts(layer.multihead_attn, X, slice(0, 1))
            X = layer.norm2(X + _attend(layer.multihead_attn, query, about))
            X = layer.norm3(X + layer.linear2(layer.linear1(X).relu()))
        return X

    def keep(self, rows: Tensor) -> None:
        """Keep the strings of the mask `rows`."""
        self.own = [own[:, rows] for own in self.own]
        self.about = [about[:, rows] for about in self.about]


def _head(layer: nn.TransformerDecoderLayer) -> int:
    """Return the width of a head."""
    return layer.self_attn.embed_dim // layer.self_attn.num_heads


def _parts(attention: nn.MultiheadAttention, X: Tensor, which: slice) -> Tensor:
    """Return the queries (0), keys (1) and values (2) of `X` (`n x T x width`) that `which` selects.

    Returns:
        `parts x n x heads x T x width of a head`.
    """
    width, heads = attention.embed_dim, attention.num_heads
    chosen = slice(which.start * width, which.stop * width)
    parts = functional.linear(X, attention.in_proj_weight[chosen], attention.in_proj_bias[chosen])
    return parts.unflatten(-1, (-1, heads, width // heads)).permute(2, 0, 3, 1, 4)


def _attend(attention: nn.MultiheadAttention, query: Tensor, known: Tensor) -> Tensor:
    """Attend queries (`n x heads x T x w`) to keys and values (`2 x n x heads x S x w`): `n x T x width`."""
    key, value = known
    # Two products, since torch's fused attention takes up to 1.5 times as long with one query per string.
    shares = (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(dim=-1)
    return attention.out_proj((shares @ value).transpose(1, 2).flatten(start_dim=2))


def padded(rows: Sequence[Sequence[int]], stop: int) -> Tensor:
    """Return token strings as the rows of a tensor, padded with `stop`: `n x T`."""
    strings = [torch.tensor(row) for row in rows]
    return nn.utils.rnn.pad_sequence(strings, batch_first=True, padding_value=stop)


def write_selfies_vae(path: Path, model: SelfiesVAE, curves: Curves, origin: dict[str, Any]) -> None:
    """Write a model atomically, with its curves and its provenance; equal models give equal bytes."""
    arrays = {name: value.detach().cpu().numpy() for name, value in model.named_parameters()}
    about = {
        "symbols": np.array(model.vocabulary.symbols),
        "architecture": as_json(model.architecture.model_dump(mode="json")),
        "curves": as_json(curves),
    }
    write_arrays(path, {**arrays, **about}, origin)


def read_selfies_vae(path: Path) -> SelfiesVAE:
    """Read a model, ready to encode and decode.

    Raises:
        PlumblineError: the file is missing, corrupt, or a model of another kind, or a weight is not finite; the message
            has the remedy.
    """
    with read_arrays(path) as held:
        if "symbols" not in held:
            raise PlumblineError(f"{path} is no SELFIES-VAE: name a model whose trainer makes one")
        vocabulary = Vocabulary(tuple(str(symbol) for symbol in held["symbols"]))
        model = SelfiesVAE(vocabulary, parse(Architecture, json.loads(str(held["architecture"])), path))
        for name, value in model.named_parameters():
            weights = finite(held, name, path)
            if weights.shape != value.shape:
                raise ValueError(f"{name} is {weights.shape}, not {tuple(value.shape)}")
            if weights.dtype != np.float32:
                raise ValueError(f"{name} is {weights.dtype}, not float32")
            value.data = torch.from_numpy(weights)
    return model.eval().requires_grad_(False)
