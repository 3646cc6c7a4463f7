"""Small telescopes: effects that few seeds see one time in three."""

import numpy as np
import pytest
from scipy.stats import t as student

from plumbline.statistics.inference import TAIL
from plumbline.statistics.telescope import LEAST_POWER, least_visible, p_of_telescope


@pytest.mark.parametrize("seeds", [2, 5, 7, 20, 100])
def test_students_test_sees_it_one_time_in_three(seeds: int) -> None:
    samples = least_visible(seeds) + np.random.default_rng(seeds).standard_normal((20_000, seeds))
    scores = samples.mean(axis=1) / samples.std(axis=1, ddof=1) * np.sqrt(seeds)
    assert np.mean(scores >= student.isf(TAIL, seeds - 1)) == pytest.approx(LEAST_POWER, abs=0.01)


def test_more_seeds_see_smaller_effects() -> None:
    found = [least_visible(seeds) for seeds in range(2, 60)]
    assert found == sorted(set(found), reverse=True)


def test_at_the_least_visible_effect_the_test_has_its_level() -> None:
    """And it is sure where the effect is that great or greater."""
    for effect, low, high in ((least_visible(5), 0.015, 0.035), (2.0, 0.0, 1e-9)):
        samples = effect + np.random.default_rng(1).standard_normal((10_000, 50))
        found = samples.mean(axis=1) / samples.std(axis=1, ddof=1)
        assert low <= np.mean([p_of_telescope(one, 50, 5) <= TAIL for one in found]) <= high


@pytest.mark.parametrize(("seeds", "paper"), [(50, 5), (3000, 2), (10, 7)])
def test_it_is_a_probability_however_far_out(seeds: int, paper: int) -> None:
    found = [p_of_telescope(effect, seeds, paper) for effect in (-30.0, -3.0, -1.0, 0.0, 0.5, 3.0, 30.0)]
    assert all(0.0 <= p <= 1.0 for p in found)
    assert max(found[:3]) <= 1e-2
