"""Moments at points and batches against the process's own, their gradients against automatic ones."""

from dataclasses import replace

import pytest
import torch
from exact_cases import BOUNDS, data, made, normal, uniform
from hypothesis import given, settings
from hypothesis import strategies as st

KERNELS = ["matern52", "matern32", "matern12", "rbf"]


def test_moments_at_points_are_the_same() -> None:
    process = replace(made(), deviation=1.7)
    X = uniform(6, seed=2)
    mean, variance = process.posterior_moments(X.unsqueeze(-2), joint=False)
    seen = process.marginal_posterior(X)
    torch.testing.assert_close(seen.mean, mean.squeeze(-1))
    torch.testing.assert_close(seen.sd, variance.squeeze(-1).sqrt())


@settings(max_examples=30)
@given(kernel=st.sampled_from(KERNELS), known=st.booleans(), near=st.booleans(), seed=st.integers(0, 99))
def test_gradients_of_moments(kernel: str, known: bool, near: bool, seed: int) -> None:
    process = replace(made(kernel, known), deviation=0.8)
    X = data()[0][:4] + 1e-6 if near else uniform(4, seed=seed)
    weights = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    leaf = X.clone().requires_grad_()
    mean, variance = process.posterior_moments(leaf.unsqueeze(-2), joint=False)
    value = weights[0] @ mean.squeeze(-1) + weights[1] @ variance.squeeze(-1).sqrt()
    (slope,) = torch.autograd.grad(value, leaf)
    found = process.marginal_posterior(X).vjp(*weights)
    # Some digits of short distances are rounding errors, which a kernel with a kink shows.
    rtol = 1e-4 if near and kernel == "matern12" else 1e-7
    torch.testing.assert_close(found, slope, rtol=rtol, atol=rtol / 100 * float(slope.abs().max()))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("known", [False, True])
def test_joint_moments_of_batches_are_the_same(kernel: str, known: bool) -> None:
    process = replace(made(kernel, known), deviation=1.7)
    X = uniform(4, 3, seed=2)
    mean, covariance = process.posterior_moments(X)
    seen = process.joint_posterior(X)
    torch.testing.assert_close(seen.mean, mean)
    torch.testing.assert_close(seen.root @ seen.root.mT, covariance)
    assert torch.equal(seen.root, seen.root.tril())


@settings(max_examples=30)
@given(
    kernel=st.sampled_from(KERNELS),
    known=st.booleans(),
    lengthscales=st.sampled_from([1, 2]),
    near=st.booleans(),
    q=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_gradients_of_joint_moments(kernel: str, known: bool, lengthscales: int, near: bool, q: int, seed: int) -> None:
    process = replace(made(kernel, known, lengthscales), deviation=0.8)
    X = uniform(3, q, seed=seed)
    if near:
        X[:, 0] = data()[0][:3] + 1e-4
    grad_mean, grad_root = normal(3, q, seed=seed), normal(3, q, q, seed=seed + 1)
    leaf = X.clone().requires_grad_()
    mean, covariance = process.posterior_moments(leaf)
    root = torch.linalg.cholesky(covariance)
    (slope,) = torch.autograd.grad((grad_mean * mean).sum() + (grad_root * root).sum(), leaf)
    # Rounding errors of a covariance count by its least conditional variance.
    share = 1e-15 / float(process.joint_posterior(X).factor.diagonal(dim1=-2, dim2=-1).min()) ** 2
    found = process.joint_posterior(X).vjp(grad_mean, grad_root)
    rtol = 1e-5 if near and kernel == "matern12" else 1e-7
    torch.testing.assert_close(found, slope, rtol=rtol, atol=(rtol / 100 + 10 * share) * float(slope.abs().max()))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_a_batch_with_a_point_twice_has_a_factor(kernel: str) -> None:
    process = made(kernel)
    X = uniform(3, 3, seed=2)
    X[1:, 2] = X[1:, 0]
    with pytest.warns(match="not p.d."):
        seen = process.joint_posterior(X)
    torch.testing.assert_close(seen.root @ seen.root.mT, process.posterior_moments(X)[1], rtol=1e-6, atol=1e-6 * 50**2)
    assert torch.isfinite(seen.vjp(normal(3, 3, seed=0), normal(3, 3, 3, seed=1))).all()


def test_far_from_the_data_it_is_the_prior() -> None:
    process = made("rbf")
    seen = process.marginal_posterior(BOUNDS[1:] + 1e6)
    assert float(seen.location) == pytest.approx(process.at.constant)
    assert float(seen.spread) == pytest.approx(process.at.outputscale**0.5)
    assert torch.equal(seen.vjp(torch.ones(1).double(), torch.ones(1).double()), torch.zeros(1, 2).double())
