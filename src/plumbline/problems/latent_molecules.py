"""Molecules with a high score of GuacaMol, searched for in the latent space of a SELFIES-VAE; AABO, section 4.1.

A point is decoded to a SELFIES string and scored. What is no molecule counts as -0.01, below all scores: strings that
SELFIES or RDKit cannot read, empty ones and, as in the published code, negative scores, of which GuacaMol has none.
Hence `f == INVALID` counts failed decodings in a trial's records; how many a round had is noted too.

The published code samples each symbol, so that its objective is another at each evaluation. Here decoding is greedy and
there is no noise.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from botorch.test_functions import SyntheticTestFunction
from numpy.typing import NDArray
from pydantic import field_validator
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.data.features import read_features
from plumbline.data.sources.guacamol import OBJECTIVES, Objective, score_smiles
from plumbline.models.learned.selfies_vae import SelfiesVAE, read_selfies_vae
from plumbline.models.learned.selfies_vocabulary import smiles_of
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import problem_of

REACH = 8.0
"""Of the box in every direction: the published encodings of 20,000 GuacaMol molecules lie between -6.4 and 7.3."""

INVALID = -0.01
"""The value of what is no molecule."""

BLOCK = 256
"""Molecules of a table that are encoded, and decoded, at once."""


class GuacamolOptions(Options):
    """Options of the problem.

    Attributes:
        objective: of GuacaMol, see `plumbline.data.sources.guacamol.OBJECTIVES`.
        model: a trained SELFIES-VAE (`config/models.yaml`).
        molecules: the dataset whose molecules, encoded, are the problem's examples: the design `examples` begins there.
    """

    objective: str
    model: Annotated[str, Input("models/{}.npz")] = "selfies-vae"
    molecules: Annotated[str, Input("features/{}.parquet")] | None = None

    @field_validator("objective")
    @classmethod
    def _is_known(cls, objective: str) -> str:
        if objective not in OBJECTIVES:
            raise ValueError(str(unknown("objective", objective, OBJECTIVES)))
        return objective


class LatentMolecules(SyntheticTestFunction):
    """The score of the molecule that a latent point is decoded to.

    Args:
        model: that decodes.
        objective: that scores.
        examples: points whose strings are known; None for none.
    """

    _is_minimization_by_default = False

    def __init__(self, model: SelfiesVAE, objective: Objective, examples: "EncodedMolecules | None" = None) -> None:
        self.dim = model.architecture.dim
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(-REACH, REACH)] * self.dim
        super().__init__(dtype=torch.float64)
        # A method, not the module itself: that would be cast to float64 together with this one.
        self.decode = model.decode
        self.objective = objective
        self._decoded = {} if examples is None else examples.decoded
        self._known: dict[str, float] = {}

    @property
    def optimizers(self) -> Tensor:
        """Nobody knows them."""
        raise NotImplementedError("the best molecules of a latent space are not known")

    def _evaluate_true(self, X: Tensor) -> Tensor:
        """Return the values of points `... x d`: `...`. A molecule is scored once, however many points lead to it."""
        strings = self.strings(X.reshape(-1, self.dim))
        new = [string for string in dict.fromkeys(strings) if string not in self._known]
        self._known.update(zip(new, worth(self.objective, new).tolist(), strict=True))
        return X.new_tensor([self._known[string] for string in strings]).reshape(X.shape[:-1])

    def strings(self, X: Tensor) -> list[str]:
        """Return what the points `n x d` are decoded to; those of examples are known."""
        found = [self._decoded.get(row.tobytes()) for row in X.numpy()]
        undecoded = X[[string is None for string in found]]
        new = iter(self.decode(undecoded) if len(undecoded) else [])
        return [next(new) if string is None else string for string in found]


def failed_decodings(X: Tensor, F: Tensor) -> dict[str, float]:
    """Return how many of the values `F` (`q x 1`) are of what is no molecule."""
    return {"failed_decodings": float((F == INVALID).sum())}


def worth(objective: Objective, strings: Sequence[str]) -> NDArray[np.float64]:
    """Return the values of n SELFIES strings, shape (n,): scores, or `INVALID`."""
    smiles = [smiles_of(string) for string in strings]
    scores = score_smiles(objective, smiles)
    counts = np.array([one != "" for one in smiles], dtype=bool) & (scores >= 0)  # NaN is not
    return np.where(counts, scores, INVALID)


class EncodedMolecules:
    """Molecules as points of the box, and what these are decoded to.

    Both in blocks of the table, whoever asks for which molecule: the last digits of a point, and the symbol at a tie,
    depend on what is computed at once, and here on no seed.

    Args:
        model: that encodes them: where it is least unsure of each, or at the edge of the box where that is outside.
        smiles: those that it cannot read are left out.

    Attributes:
        decoded: strings, by the bytes of their points, of all blocks that were asked for.
    """

    def __init__(self, model: SelfiesVAE, smiles: Sequence[str]) -> None:
        self.model = model
        self.smiles = smiles
        self.decoded: dict[bytes, str] = {}
        self._tokens: list[list[int]] | None = None
        self._blocks: dict[int, Tensor] = {}

    def __call__(self, n: int, generator: Generator) -> Tensor:
        """Return `n` different ones, `n x d`, in random order; each molecule is encoded once.

        Raises:
            PlumblineError: there are fewer.
        """
        if self._tokens is None:
            self._tokens = [tokens for one in self.smiles if (tokens := self._readable(one)) is not None]
        if n > len(self._tokens):
            raise PlumblineError(
                f"an initial design of {n} of the {len(self._tokens)} molecules that the model can read: "
                "lower `initial.size`"
            )
        rows = torch.randperm(len(self._tokens), generator=generator)[:n].tolist()
        for block in {row // BLOCK for row in rows} - set(self._blocks):
            Z = self.model.encode_tokens(self._tokens[block * BLOCK :][:BLOCK]).clamp(-REACH, REACH)
            self.decoded.update(zip((z.tobytes() for z in Z.numpy()), self.model.decode(Z), strict=True))
            self._blocks[block] = Z
        return torch.stack([self._blocks[row // BLOCK][row % BLOCK] for row in rows])

    def _readable(self, smiles: str) -> list[int] | None:
        try:
            return self.model.tokens(smiles)
        except PlumblineError:
            return None


@problems.register("guacamol", GuacamolOptions)
def guacamol(options: GuacamolOptions, context: Context) -> Problem:
    """Find a molecule with a high GuacaMol score, in the latent space of a SELFIES-VAE (256 dimensions)."""
    path, shelf = context.data / "models" / f"{options.model}.npz", context.shelf
    model = shelf.take(path, lambda: read_selfies_vae(path))
    examples = None
    if options.molecules is not None:
        table = context.data / "features" / f"{options.molecules}.parquet"
        examples = shelf.take((path, table), lambda: EncodedMolecules(model, smiles_in(table)))
    function = shelf.take(options, lambda: LatentMolecules(model, OBJECTIVES[options.objective], examples))
    return problem_of(function, notes=failed_decodings, examples=examples)


def smiles_in(path: Path) -> list[str]:
    """Return the molecules of a features file.

    Raises:
        PlumblineError: it has none.
    """
    table = read_features(path)
    if "smiles" not in table:
        raise PlumblineError(f"dataset {path.stem!r} has no column smiles: it is not of molecules")
    return list(table["smiles"])
