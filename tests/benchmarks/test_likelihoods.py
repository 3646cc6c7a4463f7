"""An evaluation of the marginal likelihood beside the factor and the inverse that LAPACK makes for it."""

from time import process_time

import numpy as np
import pytest
from ratio import paired_ratio
from scipy.linalg.lapack import dpotrf, dpotri

from plumbline.models.gp.likelihood import Covariances, DataSets

LIMITS = {200: 2.5, 400: 2.0, 1000: 1.5}
"""Greatest ratio by n; 1.4 to 2, 1.5, and 1.3 were measured."""


@pytest.mark.parametrize("d", [5, 20])
@pytest.mark.parametrize("n", LIMITS)
def test_an_evaluation_beside_its_factor_and_inverse(benchmark, n, d):
    """What LAPACK does not do is to take half of its time or less at n = 1000."""
    draws = np.random.default_rng(0)
    data = DataSets(draws.random((1, n, d)), draws.normal(size=(1, n)))
    at = Covariances(np.full((1, 1), 1e-2), np.ones((1, 1)), np.full((1, d), 0.5))
    root = draws.random((n, n))
    covariance, space = root @ root.T + n * np.eye(n), np.empty((n, n))

    def evaluation():
        return data.log_likelihoods(at, "matern52")

    def lapack():
        space[:] = covariance
        factor, _ = dpotrf(space.T, lower=1, clean=1, overwrite_a=1)
        dpotri(factor, lower=1, overwrite_c=1)

    ratio = paired_ratio(evaluation, lapack, repeats=max(3, 4000 // n), clock=process_time)
    benchmark.group = f"likelihood, n = {n}, d = {d}"
    benchmark.extra_info["ratio to LAPACK"] = ratio
    print(f"\nlikelihood, n = {n}, d = {d}: {ratio:.2f} of its factor and inverse")
    benchmark.pedantic(evaluation, rounds=3)
    assert ratio <= LIMITS[n]
