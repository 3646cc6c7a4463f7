"""Small telescopes: whether an effect is smaller than any that so few seeds could have shown; Simonsohn (2015)."""

from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import nctdtr, ndtr, stdtrit

from plumbline.statistics.inference import TAIL

LEAST_POWER = 1 / 3
"""An effect that is seen more seldom could not have been studied."""


@cache
def least_visible(seeds: int) -> float:
    """Return the effect that Student's paired test of level .05 sees one time in three, in standard deviations.

    Args:
        seeds: two or more.
    """
    critical = float(stdtrit(seeds - 1, 1 - TAIL))

    def power(score: float) -> float:
        return float(1 - nctdtr(seeds - 1, score, critical))

    return float(brentq(lambda score: power(score) - LEAST_POWER, 0.0, critical + 3) / np.sqrt(seeds))


def p_of_telescope(effect: float, seeds: int, paper: int) -> float:
    """Return the probability of so small an estimate, were the effect the least that the paper's seeds could see.

    Args:
        effect: the estimate in standard deviations of a seed's difference, positive on the claimed side.
        seeds: it rests on.
        paper: the paper's seeds, two or more.
    """
    least, score = least_visible(paper) * np.sqrt(seeds), effect * np.sqrt(seeds)
    exact = float(nctdtr(seeds - 1, least, score))
    # Far out SciPy gives up; there the normal approximation of Student's non-central distribution is all that is asked.
    return float(ndtr((score - least) / np.sqrt(1 + score**2 / (2 * (seeds - 1))))) if np.isnan(exact) else exact
