"""How what a model said fared: forecasts judged, coverage and widths of sets, pictures of the model.

All of it is about what was said before anything was observed.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from plumbline.core.history import History as Data
from plumbline.forecasts.predictive import GaussianPredictive, Predictive, SetPredictive
from plumbline.methods.base import Method, Predictor, Proposal


def judge(forecast: SetPredictive, Y: Tensor, F: Tensor, alphas: Sequence[float]) -> dict[str, Tensor]:
    """Return how the forecasts fared, a row a point; with several outcomes, how the joint ones did.

    Args:
        forecast: made before the observations.
        Y: `q x m` observations; what is said of a point that lacks one is NaN.
        F: `q x m` values without noise.
        alphas: `k` miscoverage levels of the sets to check.

    Returns:
        Columns of the record: `q`, or `q x k` for sets.
    """
    y, whole = _whole(Y)
    f, _ = _whole(F)
    of_y = {
        "nll": -forecast.log_prob(y),
        "covered": torch.stack([forecast.covers(y, alpha) for alpha in alphas], dim=-1),
    }
    columns = {
        "alpha": torch.tensor(alphas, dtype=torch.float64).expand(len(Y), -1),
        "f_covered": torch.stack([forecast.covers(f, alpha) for alpha in alphas], dim=-1),
        "width": torch.stack([forecast.width(alpha).expand(len(y)) for alpha in alphas], dim=-1),
    }
    if Y.shape[1] == 1:
        single = cast(Predictive, forecast)
        columns |= {"predicted_mean": single.mean, "predicted_sd": single.sd}
        of_y |= {"pit": single.cdf(y), "crps": single.crps(y)}
    if not whole.all():
        for column in of_y.values():
            column[~whole] = torch.nan
    if F.isnan().any():
        columns["f_covered"][F.isnan().any(dim=-1)] = torch.nan
    return columns | of_y


def _whole(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return observations for a forecast to judge (`q`, or `q x m` if several outcomes), and which rows lack nothing:
    what is lacking is 0 instead, since distributions refuse NaN, and not to be looked at."""
    lacking = Y.isnan()
    return Y.where(~lacking, 0.0).squeeze(-1), ~lacking.any(dim=-1)


def coverage(forecast: SetPredictive, Y: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return the share of `n x m` observations in their sets, one a level: `k`; those with a NaN do not count."""
    y, whole = _whole(Y)
    return torch.stack([forecast.covers(y, alpha)[whole].mean() for alpha in alphas])


def coverage_of_a_share(
    method: Method, data: Data, share: float, stream: Callable[[], torch.Generator], alphas: Sequence[float]
) -> Tensor:
    """Return the coverage on a random share of the data by a model of the rest, one a level: `k`, or none of them.

    Args:
        method: whose model it is.
        data: all of them.
        share: of the data, to be checked on.
        stream: gives the randomness of the split, where it is needed.
        alphas: miscoverage levels.
    """
    held = round(share * len(data))
    if held == 0:
        return torch.empty(0)
    order = torch.randperm(len(data), generator=stream())
    asked, kept = order[:held], order[held:].sort().values  # methods read off a history's order when what was asked
    predict = method.predictor(Data(data.X[kept], data.Y[kept], int((kept < data.initial).sum())))
    if predict is None:
        return torch.empty(0)
    return coverage(predict(data.X[asked]), data.Y[asked], alphas)


def mean_width(predict: Predictor, X: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return how wide sets are on average over `X` (`n x d`), one a level: `k`."""
    forecast = predict(X)
    return torch.stack([forecast.width(alpha).expand(len(X)).mean() for alpha in alphas])


def within(reach: float, X: Tensor, data: Tensor, bounds: Tensor) -> Tensor:
    """Return which of `X` (`n x d`) lie within a distance, in sides of the box, of any of the data (`m x d`): `n`."""
    sides = bounds[1] - bounds[0]
    return torch.cdist(X / sides, data / sides).amin(dim=-1) <= reach


def relative_widths(predict: Predictor, X: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return how long sets are at `X` (`n x d`) in units of the credible interval of the same level: `k x n`."""
    forecast = cast(Predictive, predict(X))
    credible = GaussianPredictive(forecast.mean, forecast.sd)
    return torch.stack([forecast.width(alpha) / credible.width(alpha) for alpha in alphas])


def middle(values: Tensor) -> Tensor:
    """Return the median of each row, the lower one of two, which may be infinite; NaN of an empty row."""
    return values.median(dim=-1).values if values.shape[-1] else values.new_full(values.shape[:-1], torch.nan)


PICTURE = ("x", "f", "mean", "sd", "width", "acquisition", "threshold")
"""Columns of a picture of the model; `width` is that of its sets of the first level, `threshold` LOCBO's."""


def picture(
    proposal: Proposal, values: Callable[[Tensor], Tensor], bounds: Tensor, points: int, alpha: float
) -> Tensor | None:
    """Return a picture of the model on a grid of a one-dimensional problem: `points x 7`; None without a model.

    Args:
        proposal: of the round.
        values: maps `n x 1` points to noise-free values, `n`.
        bounds: `2 x 1`.
        points: of the grid.
        alpha: miscoverage level of the sets.
    """
    if proposal.predict is None:
        return None
    low, high = bounds[:, 0].tolist()
    grid = torch.linspace(low, high, points, dtype=torch.float64).unsqueeze(-1)
    forecast = cast(Predictive, proposal.predict(grid))
    utility = proposal.acquisition(grid) if proposal.acquisition else torch.full((points,), torch.nan)
    width = forecast.width(alpha).expand(points)
    threshold = getattr(forecast, "threshold", torch.full((points,), torch.nan))
    columns = (grid[:, 0], values(grid), forecast.mean, forecast.sd, width, utility, threshold)
    return torch.stack([column.detach().to(torch.float64) for column in columns], dim=-1)
