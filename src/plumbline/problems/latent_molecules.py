"""Molecules with a high GuacaMol score, optimised in the latent space of a SELFIES-VAE; AABO, section 4.1.

A point is decoded to a SELFIES string and scored. Invalid strings have the value -0.01, below all scores: strings that
SELFIES or RDKit cannot read, and empty ones. So do negative scores in the published code, but GuacaMol has none.
Hence `f == INVALID` counts failed decodings in a trial's records; a note gives their number in a round.

The published code samples each symbol, so that its objective is random. Here decoding is greedy, without noise.
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
"""Half the side of the box: a comment in the published code has encodings of GuacaMol molecules from -6.4 to 7.3."""

INVALID = -0.01
"""Value of a string that is not a molecule."""

BLOCK = 256
"""Number of molecules of a table that are encoded, and decoded, together."""


class GuacamolOptions(Options):
    """Options of the problem.

    Attributes:
        objective: objective of GuacaMol, see `plumbline.data.sources.guacamol.OBJECTIVES`.
        model: a trained SELFIES-VAE (`config/models.yaml`).
        molecules: the data set whose encoded molecules are the problem's examples, for the design `examples`.
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
    """The score of the molecule decoded from a latent point.

    Args:
        model: decoder.
        objective: score of a molecule.
        examples: points with known strings; None for none.
    """

    _is_minimization_by_default = False

    def __init__(self, model: SelfiesVAE, objective: Objective, examples: "EncodedMolecules | None" = None) -> None:
        self.dim = model.architecture.dim
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(-REACH, REACH)] * self.dim
        super().__init__(dtype=torch.float64)
        # The method, since the module itself would be cast to float64 together with this one.
        self.decode = model.decode
        self.objective = objective
        self._decoded = {} if examples is None else examples.decoded
        self._known: dict[str, float] = {}

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: they are unknown."""
        raise NotImplementedError("the best molecules of a latent space are not known")

    def _evaluate_true(self, X: Tensor) -> Tensor:
        """Return the values of points `... x d`: `...`. Each decoded molecule is scored once."""
        strings = self.strings(X.reshape(-1, self.dim))
        new = [string for string in dict.fromkeys(strings) if string not in self._known]
        self._known.update(zip(new, values_of(self.objective, new).tolist(), strict=True))
        return X.new_tensor([self._known[string] for string in strings]).reshape(X.shape[:-1])

    def strings(self, X: Tensor) -> list[str]:
        """Return the strings decoded from points `n x d`; those of examples are looked up."""
        known = [self._decoded.get(row.tobytes()) for row in X.numpy()]
        undecoded = X[[string is None for string in known]]
        new = iter(self.decode(undecoded) if len(undecoded) else [])
        return [next(new) if string is None else string for string in known]


def failed_decodings(X: Tensor, F: Tensor) -> dict[str, float]:
    """Return the number of failed decodings among the values `F` (`q x 1`)."""
    return {"failed_decodings": float((F == INVALID).sum())}


def values_of(objective: Objective, strings: Sequence[str]) -> NDArray[np.float64]:
    """Return the values of n SELFIES strings, shape (n,): scores, or `INVALID`."""
    smiles = [smiles_of(string) for string in strings]
    scores = score_smiles(objective, smiles)
    counts = np.array([one != "" for one in smiles], dtype=bool) & (scores >= 0)  # NaN is not
    return np.where(counts, scores, INVALID)


class EncodedMolecules:
    """Molecules as points of the box, with their decoded strings.

    We encode and decode fixed blocks of the table. The last digits of a point, and the symbol at a tie, depend on the
    batch of a computation, and must not depend on a seed.

    Args:
        model: encoder. A point is the posterior mean of a molecule, clipped to the box.
        smiles: molecules; unreadable ones are left out.

    Attributes:
        decoded: strings of all blocks decoded so far, keyed by the bytes of their points.
    """

    def __init__(self, model: SelfiesVAE, smiles: Sequence[str]) -> None:
        self.model = model
        self.smiles = smiles
        self.decoded: dict[bytes, str] = {}
        self._tokens: list[list[int]] | None = None
        self._blocks: dict[int, Tensor] = {}

    def __call__(self, n: int, generator: Generator) -> Tensor:
        """Return `n` different points, `n x d`, in random order; each molecule is encoded once.

        Raises:
            PlumblineError: there are fewer molecules.
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
    path, shared = context.data / "models" / f"{options.model}.npz", context.shared
    model = shared.take(path, lambda: read_selfies_vae(path))
    examples = None
    if options.molecules is not None:
        table = context.data / "features" / f"{options.molecules}.parquet"
        examples = shared.take((path, table), lambda: EncodedMolecules(model, smiles_in(table)))
    function = shared.take(options, lambda: LatentMolecules(model, OBJECTIVES[options.objective], examples))
    return problem_of(function, notes=failed_decodings, examples=examples)


def smiles_in(path: Path) -> list[str]:
    """Return the molecules of a features file.

    Raises:
        PlumblineError: the file has no molecules.
    """
    table = read_features(path)
    if "smiles" not in table:
        raise PlumblineError(f"dataset {path.stem!r} has no column smiles: it does not hold molecules")
    return list(table["smiles"])
