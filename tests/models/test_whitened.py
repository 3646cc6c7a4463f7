"""The whitened cross-covariance and its gradient by hand."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from sparse_cases import KERNELS, normal, uniform

from plumbline.models.whitened import (
    CORRELATIONS,
    JITTER,
    Correlation,
    SparseKernel,
    pull_back_factor,
    squared_distances,
    whiten,
)

LENGTHSCALE = torch.tensor([0.3, 0.8], dtype=torch.float64)
OUTPUTSCALE = torch.tensor([2.0, 0.5], dtype=torch.float64)
POINTS = (uniform(2, 4, 3, seed=1), uniform(2, 5, 3, seed=2))


def coincident() -> tuple[torch.Tensor, torch.Tensor]:
    """Inducing points of which two are the same, and points of which one is an inducing point."""
    Z, X = (part.clone() for part in POINTS)
    Z[:, 1] = Z[:, 0]
    X[:, 2] = Z[:, 3]
    return Z, X


def by_autograd(
    Z: torch.Tensor, X: torch.Tensor, lengthscale: torch.Tensor, outputscale: torch.Tensor, kernel: SparseKernel
) -> torch.Tensor:
    """`A`, by operations that torch differentiates; the square root of the distance is safe at zero."""
    m = Z.shape[-2]
    points = torch.cat([Z, X], -2) / lengthscale[:, None, None]
    r2 = (points[:, :m].unsqueeze(-2) - points.unsqueeze(-3)).square().sum(-1)
    if kernel == "rbf":
        k = (-0.5 * r2).exp()
    else:
        s = torch.where(r2 > 0, 5 * r2, 1.0).sqrt() * (r2 > 0)
        k = (1 + s + 5 * r2 / 3) * (-s).exp()
    k = outputscale[:, None, None] * k
    L = torch.linalg.cholesky(k[..., :m] + JITTER * torch.eye(m, dtype=torch.float64))
    return torch.linalg.solve_triangular(L, k[..., m:], upper=False)


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlations_are_gpytorchs(kernel: SparseKernel) -> None:
    base = RBFKernel() if kernel == "rbf" else MaternKernel(nu=2.5)
    covariance = ScaleKernel(base).double()
    Z, X = POINTS
    for i in range(2):
        base.lengthscale, covariance.outputscale = LENGTHSCALE[i], OUTPUTSCALE[i]
        found = whiten(Z, X, LENGTHSCALE, OUTPUTSCALE, kernel)
        everything = torch.cat([Z, X], -2)[i]
        torch.testing.assert_close(
            found.covariance[i], covariance(Z[i], everything).to_dense().detach(), rtol=1e-8, atol=1e-8
        )
        among = found.covariance[i, :, :4] + JITTER * torch.eye(4, dtype=torch.float64)
        torch.testing.assert_close(found.L[i] @ found.L[i].mT, among, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found.L[i] @ found.A[i], found.covariance[i, :, 4:], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_of_correlations_against_differences(kernel: SparseKernel) -> None:
    r2 = torch.tensor([1e-3, 0.1, 1.0, 7.0], dtype=torch.float64)
    h = 1e-6 * r2
    correlation = CORRELATIONS[kernel]
    numerical = -2 * (correlation(r2 + h)[0] - correlation(r2 - h)[0]) / (2 * h)
    torch.testing.assert_close(correlation(r2)[1], numerical, rtol=1e-7, atol=1e-9)
    assert torch.autograd.gradcheck(lambda one: Correlation.apply(one, kernel), r2.clone().requires_grad_())


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlation_is_smooth_where_points_coincide(kernel: SparseKernel) -> None:
    """At distance zero the slope in the squared distance is -1/2, or -5/6, and in the points it is zero."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Correlation.apply(zero, kernel).sum(), zero)
    assert slope.item() == pytest.approx(-0.5 if kernel == "rbf" else -5 / 6)
    x = uniform(1, 1, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(Correlation.apply(squared_distances(x, x.detach()), kernel).sum(), x)
    assert gradient.abs().max() < 1e-12


def test_squared_distances_are_never_negative() -> None:
    A = 1e4 + uniform(2, 6, 3)
    found = squared_distances(A, A)
    assert (found >= 0).all()
    A, B = uniform(2, 6, 3), uniform(2, 4, 3, seed=1)
    torch.testing.assert_close(squared_distances(A, B), torch.cdist(A, B).square(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("places", [lambda: POINTS, coincident], ids=["apart", "coincident"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_pull_back_against_autograd(kernel: SparseKernel, places) -> None:
    """Coincident inducing points leave a condition number near a million: digits are lost on both sides."""
    Z, X = places()
    to_A = normal(2, 4, 5, seed=3)
    leaves = [one.clone().requires_grad_() for one in (Z, X, LENGTHSCALE, OUTPUTSCALE)]
    expected = torch.autograd.grad((to_A * by_autograd(*leaves, kernel)).sum(), leaves)
    found = whiten(Z, X, LENGTHSCALE, OUTPUTSCALE, kernel)
    tolerance = 1e-9 if places is not coincident else 1e-4
    for own, other in zip(found.pull_back(to_A), expected, strict=True):
        scale = other.abs().max()
        torch.testing.assert_close(own / scale, other / scale, rtol=tolerance, atol=tolerance)
    direct = found.pull_back_to_points(to_A)
    torch.testing.assert_close(direct, found.pull_back(to_A).points, rtol=1e-9, atol=1e-9 * direct.abs().max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_pull_back_against_differences(kernel: SparseKernel) -> None:
    Z, X = POINTS
    to_A, h = normal(2, 4, 5, seed=3), 1e-6
    leaves = [Z, X, LENGTHSCALE, OUTPUTSCALE]
    found = whiten(Z, X, LENGTHSCALE, OUTPUTSCALE, kernel).pull_back(to_A)
    for i, own in enumerate(found):
        direction = normal(*leaves[i].shape, seed=10 + i)

        def value(step: float, i: int = i, direction: torch.Tensor = direction) -> torch.Tensor:
            moved = [*leaves[:i], leaves[i] + step * direction, *leaves[i + 1 :]]
            return (to_A * whiten(*moved, kernel).A).sum()

        numerical = (value(h) - value(-h)) / (2 * h)
        assert (own * direction).sum().item() == pytest.approx(numerical.item(), rel=1e-6, abs=1e-6)


def test_a_process_without_a_factor_is_flagged_and_leaves_the_others_alone() -> None:
    Z, X = uniform(2, 60, 3, seed=1), POINTS[1]
    flat = torch.tensor([10.0, 0.8], dtype=torch.float64)
    huge = torch.tensor([1e13, 0.5], dtype=torch.float64)  # jitter is nothing beside it
    found = whiten(Z, X, flat, huge, "rbf")
    assert found.broken.tolist() == [True, False]
    alone = whiten(Z[1:], X[1:], flat[1:], huge[1:], "rbf")
    torch.testing.assert_close(found.A[1:], alone.A)
    Z = Z.clone()
    Z[0] = torch.nan
    assert whiten(Z, X, LENGTHSCALE, OUTPUTSCALE, "matern52").broken.tolist() == [True, False]


@pytest.mark.parametrize("q", [1, 2, 5])
def test_the_gradient_of_a_factor(q: int) -> None:
    root, to_L = normal(3, q, q, seed=1), normal(3, q, q, seed=2)
    covariance = (root @ root.mT + torch.eye(q)).requires_grad_()
    L = torch.linalg.cholesky(covariance)
    (slope,) = torch.autograd.grad((L * to_L).sum(), covariance)
    torch.testing.assert_close(pull_back_factor(L.detach(), to_L), slope, rtol=1e-10, atol=1e-12)
