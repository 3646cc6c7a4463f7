"""LOCBO's eq. 21, the update of OCBO's recalibrator: its sign; docs/methods/localised-erratum.md."""

import numpy as np
import pytest
from scipy.special import ndtri

LEVELS = [0.1, 0.3, 0.8, 0.95]
ETA, ROUNDS = 0.05, 4000


def share_below(level: float, forecast_sd: float, printed: bool) -> float:
    """Return how often `y ~ N(0, 1)` is at most the quantile at `R` of a forecast `N(0, forecast_sd^2)`."""
    y = np.random.default_rng(7).normal(size=ROUNDS)
    R, below = 0.5, 0
    for observed in y:
        inside = observed <= forecast_sd * ndtri(min(max(R, 0.0), 1.0))
        R += -ETA * (level - (not inside)) if printed else ETA * (level - inside)
        below += inside
    return below / ROUNDS


@pytest.mark.parametrize("forecast_sd", [1.0, 0.4])
@pytest.mark.parametrize("level", LEVELS)
def test_the_printed_sign_calibrates_the_complement(level: float, forecast_sd: float) -> None:
    """Within the bound of the telescoping sum: `R` never leaves [-ETA, 1 + ETA]."""
    bound = (1 + 2 * ETA) / (ETA * ROUNDS)
    assert share_below(level, forecast_sd, printed=False) == pytest.approx(level, abs=bound)
    assert share_below(level, forecast_sd, printed=True) == pytest.approx(1 - level, abs=bound)
