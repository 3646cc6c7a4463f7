"""The construction of a conformal set, step by step: CBO, figure 2."""

import pandas as pd
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.illustrations.base import grid, illustrations, interval_rows, rows, table
from plumbline.illustrations.line import LineOptions, fit_line, observe
from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.density_ratio import LogRatio
from plumbline.methods.conformal.masses import conformity_mass, importance_weights
from plumbline.methods.conformal.scores import quadratics, scores
from plumbline.methods.conformal.sets import exact_sets


class StepsOptions(LineOptions):
    """Options of the illustration.

    Attributes:
        x: the test point, in [-1, 1].
        alpha: miscoverage level.
        query_sd: standard deviation of queries, normal about the test point, in units of the interval's length; the
            data are uniform.
        guess: the label of the first three steps, in predictive standard deviations from the predictive mean.
        guesses: number of labels of the last step.
        reach: greatest distance of these labels from the mean, in standard deviations.
    """

    n: PositiveInt = Field(default=15, ge=2)
    crowding: PositiveFloat = 1.0
    x: float = Field(default=0.2, ge=-1.0, le=1.0)
    alpha: float = Field(default=0.25, gt=0.0, lt=1.0)
    query_sd: PositiveFloat = 0.25
    guess: float = 0.8
    guesses: PositiveInt = 81
    reach: PositiveFloat = 4.0


def normal_over_uniform(centre: Tensor, sd: float) -> LogRatio:
    """Return the log ratio, up to a constant, of a normal density about `centre` (`d`) to the uniform density."""
    return lambda U: -0.5 * ((U - centre) / sd).square().sum(dim=-1)


@illustrations.register("conformal-steps", StepsOptions)
def conformal_steps(options: StepsOptions, generator: Generator) -> pd.DataFrame:
    """Scores, masked importance weights and their partial sums for one guess of a label, and the set of all guesses."""
    process = fit_line(observe(options, generator))
    with torch.no_grad():
        U = process.standardisation.inputs(torch.tensor([[[options.x]]], dtype=torch.float64))
        system = augment(process, U)
        log_ratio = normal_over_uniform(U.reshape(-1), options.query_sd)
        weights = importance_weights(log_ratio(process.U), log_ratio(U))
        coefficients = quadratics([system])
        one = torch.full((1, 1, 1), options.guess, dtype=torch.float64)
        of_data, own = scores(system, one)
        z = grid(options.guesses, -options.reach, options.reach)
        mass = conformity_mass(coefficients, weights, z.reshape(1, -1, 1, 1)).reshape(-1)
    standardisation = process.standardisation
    mean, sd = (
        standardisation.location + standardisation.scale * float(system.mean),
        standardisation.scale * float(system.sd),
    )
    return table(
        [
            *_one_guess(of_data.reshape(-1), own.reshape(-1), weights.reshape(-1)),
            *_many_guesses(mean + sd * z, mass, options.alpha),
            interval_rows("set", "set", [options.x], _in_units_of_y(coefficients, weights, options.alpha, mean, sd)),
            rows("set", "guess", x=mean + sd * options.guess),
            *(rows(panel, "alpha", value=options.alpha) for panel in ("sums", "set")),
        ]
    )


def _one_guess(of_data: Tensor, own: Tensor, weights: Tensor) -> list[pd.DataFrame]:
    """Return the first three steps: scores of `n` data and the guess, `n + 1` weights, and partial sums of weights."""
    index = torch.arange(len(of_data) + 1, dtype=torch.float64)
    better = of_data > own
    masked = torch.cat([torch.where(better, 0.0, weights[:-1]), weights[-1:]])
    parts = [
        rows("scores", "guess", x=index[-1:], value=own),
        rows("weights", "guess", x=index[-1:], value=weights[-1:]),
        rows("sums", "sum", x=index, value=masked.cumsum(dim=0)),
    ]
    for series, chosen in (("better", better), ("kept", ~better)):
        parts += [
            rows("scores", series, x=index[:-1][chosen], value=of_data[chosen]),
            rows("weights", series, x=index[:-1][chosen], value=weights[:-1][chosen]),
        ]
    return parts


def _many_guesses(labels: Tensor, mass: Tensor, alpha: float) -> list[pd.DataFrame]:
    accepted = mass > alpha
    return [
        rows("set", series, x=labels[chosen], value=mass[chosen])
        for series, chosen in (("accepted", accepted), ("rejected", ~accepted))
    ]


def _in_units_of_y(
    coefficients: Tensor, weights: Tensor, alpha: float, mean: float, sd: float
) -> list[list[tuple[float, float]]]:
    (intervals,) = exact_sets(coefficients, weights, alpha).intervals()
    return [[(mean + sd * low, mean + sd * high) for low, high in intervals]]
