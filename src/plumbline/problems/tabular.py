"""Problems over a table: finitely many candidates with known features and values."""

from collections.abc import Sequence
from typing import Annotated

import pandas as pd
import torch
from botorch.test_functions import SyntheticTestFunction
from pydantic import Field, PositiveInt
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.data.features import read_features
from plumbline.data.sources import antibodies as antibody_data
from plumbline.data.sources.molecules import DESCRIPTORS
from plumbline.models.learned.latent import LinearLatent, read_latent
from plumbline.problems.base import Context, Notes, Problem, problems
from plumbline.problems.build import problem_of
from plumbline.spaces.table import NONE, Table, row_numbers


class TabularProblem(SyntheticTestFunction):
    """A problem whose points are the rows of a table.

    Attributes:
        candidates: `N x d` features of the rows that may be queried.
        holdout: `M x d` features of held-out rows for checks of predictions.
    """

    _is_minimization_by_default = False

    def __init__(self, candidates: Tensor, values: Tensor, holdout: Tensor, holdout_values: Tensor) -> None:
        """Create the problem of a table.

        Args:
            candidates: `N x d`, no two rows alike.
            values: `N`, to be maximised; NaN where an evaluation fails.
            holdout: `M x d`.
            holdout_values: `M`.

        Raises:
            PlumblineError: no candidate has a value.
        """
        if bool(values.isnan().all()):
            raise PlumblineError(f"a table of {len(values)} rows to choose from, none of which has a value")
        self.dim = candidates.shape[1]
        self.continuous_inds = list(range(self.dim))
        self._optimal_value = float(values[~values.isnan()].max())
        rows = torch.cat([candidates, holdout])
        low, high = rows.amin(dim=0), rows.amax(dim=0)
        # A constant column still needs an interval for normalisation.
        self._bounds = [(a, b if b > a else a + 1.0) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        super().__init__(dtype=candidates.dtype)
        self.register_buffer("candidates", candidates)
        self.register_buffer("holdout", holdout)
        self.register_buffer("_rows", rows)
        self.register_buffer("_values", torch.cat([values, holdout_values]))

    def _evaluate_true(self, X: Tensor) -> Tensor:
        numbers = row_numbers(self._rows, X)
        if bool((numbers == NONE).any()):
            raise ValueError("a tabular problem has values at its own rows only")
        return self._values[numbers]


def places(values: Tensor) -> Notes:
    """Return the notes of a single evaluation in a table of `values` (`N`): the numbers of greater and of equal values,
    and the greatest smaller value. The best remaining row follows from the notes of all evaluated rows."""

    def notes(X: Tensor, F: Tensor) -> dict[str, float]:
        if len(F) > 1:
            return {}
        value = F.item()
        below = values[values < value]
        return {
            "greater": int((values > value).sum()),
            "equal": int((values == value).sum()),
            "next": below.max().item() if len(below) else value,
        }

    return notes


def pool(n_rows: int, size: int, holdout_fraction: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """Return the row numbers of candidates and holdout: a random pool of `size`, split in two.

    Raises:
        PlumblineError: the table has fewer rows than the pool.
    """
    if n_rows < size:
        raise PlumblineError(f"a pool of {size} rows from a table of {n_rows}: lower `pool` or build more features")
    rows = torch.randperm(n_rows, generator=generator)[:size]
    held = round(holdout_fraction * size)
    return rows[held:], rows[:held]


class RankingOptions(Options):
    """Options of the ranking problems; CBO, appendix C.3 and D.

    Attributes:
        dataset: data set whose table of features is read.
        target: the column to rank by.
        pool: number of rows drawn from the table, including the holdout.
        holdout_fraction: share of the pool that is held out.
        maximise: False for a target to be minimised, such as a docking score.
        latent: a trained model (`config/models.yaml`) that maps features to inputs; None for the features.
    """

    dataset: Annotated[str, Input("features/{}.parquet")]
    target: str
    pool: PositiveInt = 256
    holdout_fraction: float = Field(default=0.2, ge=0.0, lt=1.0)
    maximise: bool = True
    latent: Annotated[str, Input("models/{}.npz")] | None = None


class MoleculeOptions(RankingOptions):
    """Options of the molecule ranking problems."""


class AntibodyOptions(RankingOptions):
    """Options of the antibody ranking problem."""

    target: str = "stability"


def ranking_problem(
    table: pd.DataFrame,
    features: Sequence[str],
    options: RankingOptions,
    generator: Generator,
    latent: LinearLatent | None = None,
) -> Problem:
    """Return the ranking problem over a random pool of the rows of `table`.

    Inputs are the `features`, or their image under a `latent` map.

    Raises:
        PlumblineError: the table lacks the features or the target, has fewer rows than the pool, or no row to choose
            from has a value; or the `latent` map was trained on other features.
    """
    lacking = [name for name in features if name not in table]
    if lacking:
        raise PlumblineError(f"dataset {options.dataset!r} has no column {lacking[0]}: it is for another problem")
    targets = set(table.select_dtypes("number").columns) - set(features)
    if options.target not in targets:
        raise unknown("target", options.target, targets)
    X = torch.from_numpy(table[list(features)].to_numpy("float64", copy=True))
    if latent is not None:
        if latent.columns != tuple(features):
            raise PlumblineError(f"model {options.latent!r} was trained on other features than this problem has")
        X = latent.encode(X)
    y = torch.from_numpy(table[options.target].to_numpy("float64", copy=True)) * (1 if options.maximise else -1)
    rows, held = pool(len(table), options.pool, options.holdout_fraction, generator)
    function = TabularProblem(X[rows], y[rows], X[held], y[held])
    space = Table(function.bounds, function.candidates)
    return problem_of(function, space=space, holdout=function.holdout, notes=places(y[rows]))


def ranking(options: RankingOptions, features: Sequence[str], context: Context) -> Problem:
    """Return the ranking problem of a table in the data folder."""
    table = read_features(context.data / "features" / f"{options.dataset}.parquet")
    latent = None if options.latent is None else read_latent(context.data / "models" / f"{options.latent}.npz")
    return ranking_problem(table, features, options, context.generator, latent)


@problems.register("molecules", MoleculeOptions)
def molecules(options: MoleculeOptions, context: Context) -> Problem:
    """Rank a pool of molecules by a property, from RDKit descriptors (zinc250k, or zinc-drd3 for docking)."""
    return ranking(options, list(DESCRIPTORS), context)


@problems.register("antibodies", AntibodyOptions)
def antibodies(options: AntibodyOptions, context: Context) -> Problem:
    """Rank a pool of antibodies by stability, from BioPython descriptors of both chains (oas-paired)."""
    return ranking(options, antibody_data.DESCRIPTORS, context)
