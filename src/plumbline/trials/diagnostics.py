"""Diagnostics of a model: scores of forecasts, coverage and widths of sets, snapshots of the model.

All of them concern forecasts made before the observations.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from plumbline.core.history import History as Data
from plumbline.forecasts.predictive import GaussianPredictive, Predictive, SetPredictive
from plumbline.methods.base import Method, Predictor, Proposal


def assess(forecast: SetPredictive, Y: Tensor, F: Tensor, alphas: Sequence[float]) -> dict[str, Tensor]:
    """Return scores and coverage of forecasts, one row per point.

    Several outcomes have joint scores. Coverage is that of their joint set, or the mean over sets of single outcomes.

    Args:
        forecast: made before the observations.
        Y: `q x m` observations; a point with a missing one has NaN scores.
        F: `q x m` values without noise.
        alphas: `k` miscoverage levels of the sets to check.

    Returns:
        Columns of the record: `q`, or `q x k` for sets.
    """
    y, complete = _complete(Y)
    f, _ = _complete(F)
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
    if not complete.all():
        for column in of_y.values():
            column[~complete] = torch.nan
    if F.isnan().any():
        columns["f_covered"][F.isnan().any(dim=-1)] = torch.nan
    return columns | of_y


def _complete(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Return observations (`q`, or `q x m` for several outcomes), and whether each row is complete.

    Missing observations are set to 0, since distributions refuse NaN; callers must ignore them.
    """
    missing = Y.isnan()
    return Y.where(~missing, 0.0).squeeze(-1), ~missing.any(dim=-1)


def coverage(forecast: SetPredictive, Y: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return the share of `n x m` observations in their sets, one a level: `k`; rows with a NaN do not count."""
    y, complete = _complete(Y)
    return torch.stack([forecast.covers(y, alpha)[complete].mean() for alpha in alphas])


def coverage_of_a_share(
    method: Method, data: Data, share: float, stream: Callable[[], torch.Generator], alphas: Sequence[float]
) -> Tensor:
    """Return the coverage on a random share of the data by a model of the rest, one a level: `k`, or an empty tensor.

    Args:
        method: the method with the model.
        data: all data.
        share: held-out share of the data.
        stream: makes the random generator of the split, if there is one.
        alphas: miscoverage levels.
    """
    held = round(share * len(data))
    if held == 0:
        return torch.empty(0)
    order = torch.randperm(len(data), generator=stream())
    test, train = order[:held], order[held:].sort().values  # methods rely on the history's order in time
    if not _complete(data.Y[train])[1].any():
        return torch.empty(0)
    predict = method.predictor(Data(data.X[train], data.Y[train], int((train < data.initial).sum())))
    if predict is None:
        return torch.empty(0)
    return coverage(predict(data.X[test]), data.Y[test], alphas)


def mean_width(predict: Predictor, X: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return the mean width of sets over `X` (`n x d`), one a level: `k`."""
    forecast = predict(X)
    return torch.stack([forecast.width(alpha).expand(len(X)).mean() for alpha in alphas])


def within(reach: float, X: Tensor, data: Tensor, bounds: Tensor) -> Tensor:
    """Whether each of `X` (`n x d`) lies within a distance, in sides of the box, of any datum (`m x d`): `n`."""
    sides = bounds[1] - bounds[0]
    return torch.cdist(X / sides, data / sides).amin(dim=-1) <= reach


def relative_widths(predict: Predictor, X: Tensor, alphas: Sequence[float]) -> Tensor:
    """Return the length of sets at `X` (`n x d`) in units of the credible interval of the same level: `k x n`."""
    forecast = cast(Predictive, predict(X))
    credible = GaussianPredictive(forecast.mean, forecast.sd)
    return torch.stack([forecast.width(alpha) / credible.width(alpha) for alpha in alphas])


def middle(values: Tensor) -> Tensor:
    """Return the lower median of each row, which may be infinite; NaN for an empty row."""
    return values.median(dim=-1).values if values.shape[-1] else values.new_full(values.shape[:-1], torch.nan)


PICTURE = ("x", "f", "mean", "sd", "width", "acquisition", "threshold")
"""Columns of a snapshot of the model: `width` is that of its sets at the first level, `threshold` is LOCBO's."""


def picture(
    proposal: Proposal, values: Callable[[Tensor], Tensor], bounds: Tensor, points: int, alpha: float
) -> Tensor | None:
    """Return a snapshot of the model on a grid of a one-dimensional problem: `points x 7`; None without a model.

    Args:
        proposal: the round's proposal.
        values: maps `n x 1` points to noise-free values, `n`.
        bounds: `2 x 1`.
        points: number of grid points.
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
