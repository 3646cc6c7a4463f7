"""The studentised bootstrap of means: resamples, their scores, and the probability of one as high."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from plumbline.core.seeding import stream_seed

Array = NDArray[np.float64]

RESAMPLES = 9_999


def resamples(name: str, n: int, count: int = RESAMPLES) -> Array:
    """Return the share of each of `n` values in samples that are drawn from them: `count x n`."""
    rng = np.random.default_rng(stream_seed(name, n, "bootstrap"))
    drawn = rng.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
    return np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n) / n


def studentised(means: Array, variances: Array, n: int, variance: Array | float) -> Array:
    """Return means of resamples in units of their own standard errors.

    A resample that is one value over and over is infinitely far from the mean, or is at it.

    Args:
        means: of resamples, minus the sample's.
        variances: of resamples, around their means.
        n: values of the sample.
        variance: of the sample; of several samples, one each, where means and variances are `resamples x samples`.
    """
    away = np.where(np.abs(means) > 1e-9 * np.sqrt(variance), means, 0.0)
    error = np.sqrt(np.where(variances > 1e-12 * variance, variances, 0.0) / (n - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0, 0.0, away / error)


def p_of_score(score: float | Array, scores: Array, n: int) -> Array:
    """Return the probability of a studentised mean as high as `score`: of Student's and the bootstrap's the greater.

    Args:
        score: of the sample, or of several, `studies`.
        scores: of resamples, `resamples`, or `resamples x studies`.
        n: values of each sample.
    """
    farther = np.count_nonzero(scores >= score, axis=0)
    found: Array = np.maximum(stdtr(n - 1, -score), (farther + 1) / (len(scores) + 1))
    return found


def p_of_constant(away: float, n: int) -> float:
    """Return the probability of `n` equal values beyond a threshold.

    Nothing is known of their spread: a sign test is what is left.
    """
    return 0.5**n if away > 0 else 1.0
