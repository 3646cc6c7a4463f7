"""Posteriors at a few points against the forward pass."""

import pytest
import torch
from point_posteriors import (
    KERNELS,
    LAYOUT,
    rows_of,
    sight_of,
    uniform,
)

from plumbline.methods.sparse.soft_improvement import (
    EVERY,
)
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.objective import forward


@pytest.mark.parametrize("kernel", KERNELS)
def test_sight_is_the_forward_pass(kernel: SparseKernel) -> None:
    rows, points = rows_of(2), uniform(2, 4, 2, seed=3)
    posteriors, passed = sight_of(rows, points, kernel), forward(rows, LAYOUT, points, kernel)
    torch.testing.assert_close(posteriors.mean, passed.mean)
    torch.testing.assert_close(posteriors.sd.square(), passed.variance)
    covariance = posteriors.covariance(posteriors.prior(EVERY, EVERY))
    torch.testing.assert_close(covariance.diagonal(dim1=-2, dim2=-1), passed.variance)
