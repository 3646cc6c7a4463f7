import numpy as np
import pytest
from scipy import stats

from plumbline.statistics.rank_correlation import RankCorrelation


def test_it_is_spearmans() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal(40)
    b = np.round(a + rng.standard_normal(40))  # ties
    found = RankCorrelation(a, b)
    assert found.value == pytest.approx(stats.spearmanr(a, b).statistic)
    low, high = found.interval()
    assert low < found.value < high
    assert found.p_two_sided() == pytest.approx(stats.spearmanr(a, b).pvalue, abs=0.01)


def test_interval_and_test_agree() -> None:
    rng = np.random.default_rng(2)
    found = RankCorrelation(rng.standard_normal(30), rng.standard_normal(30))
    for end in found.interval():
        assert min(found.p_above(end), found.p_below(end)) == pytest.approx(0.025, abs=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_order(sign: int) -> None:
    found = RankCorrelation(np.arange(10.0), sign * np.arange(10.0) ** 3)
    assert found.value == pytest.approx(sign)
    low, high = found.interval()
    assert -1 <= low <= high <= 1
    assert found.p_two_sided() < 1e-6


def test_of_a_constant_nothing_is_known() -> None:
    found = RankCorrelation(np.arange(10.0), np.ones(10))
    assert np.isnan(found.value)
    assert found.interval() == (-1.0, 1.0)
    assert found.p_two_sided() == 1.0


def test_independent_values_are_seldom_found_to_be_related() -> None:
    rng = np.random.default_rng(3)
    for n in (10, 40):
        p = [RankCorrelation(rng.random(n), rng.random(n)).p_two_sided() for _ in range(300)]
        assert np.mean(np.array(p) < 0.05) < 0.08
