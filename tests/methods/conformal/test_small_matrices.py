"""Products and factors of small matrices against PyTorch's."""

import pytest
import torch
from gp_cases import assert_same_gradient, normal

from plumbline.methods.conformal.small_matrices import cholesky
from plumbline.models.algebra import cholesky_vjp


@pytest.mark.parametrize("q", [1, 2, 4])
def test_gradients_are_pulled_back_through_cholesky_factors(q: int) -> None:
    A = normal(3, q, q)
    S = (A @ A.mT + torch.eye(q).double()).requires_grad_()
    root, grad_root = cholesky(S), normal(3, q, q, seed=1)
    found = cholesky_vjp(root, grad_root)
    assert torch.equal(found, found.mT) or torch.allclose(found, found.mT, rtol=1e-12)
    assert_same_gradient(found, root, grad_root, S)
