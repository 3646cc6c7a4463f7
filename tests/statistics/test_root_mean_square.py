import numpy as np
import pytest
from scipy import stats

from plumbline.statistics.root_mean_square import RootMeanSquare


def test_it_is_the_chi_squared_test() -> None:
    values = np.random.default_rng(1).standard_normal(12)
    found, n = RootMeanSquare(values), 12
    assert found.value == pytest.approx(np.sqrt(np.mean(values**2)))
    assert found.p_above(1.3) == pytest.approx(stats.chi2(n).sf(np.sum(values**2) / 1.69))
    assert found.p_below(1.3) == pytest.approx(stats.chi2(n).cdf(np.sum(values**2) / 1.69))
    low, high = found.interval()
    assert found.p_above(low) == pytest.approx(0.025)
    assert found.p_below(high) == pytest.approx(0.025)


@pytest.mark.parametrize("n", [4, 30])
def test_the_interval_has_the_truth_in_nineteen_of_twenty(n: int) -> None:
    rng = np.random.default_rng(2)
    ends = np.array([RootMeanSquare(3.0 * rng.standard_normal(n)).interval() for _ in range(2000)])
    share = np.mean((ends[:, 0] <= 3.0) & (ends[:, 1] >= 3.0))
    assert share == pytest.approx(0.95, abs=0.015)
