"""The whitened cross-covariance and its gradient by hand."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from sparse_cases import KERNELS, normal, uniform

from plumbline.models.algebra import (
    CORRELATIONS,
    Kernel,
    SparseKernel,
    add_product,
    cholesky_vjp,
    correlations,
    product,
    squared_distances,
)
from plumbline.models.svgp.cross_covariance import JITTER, factorise

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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", CORRELATIONS)
def test_correlations_of_arrays_are_those_of_tensors(kernel: Kernel) -> None:
    r2 = squared_distances(*POINTS)
    r2[0, 0, :2] = torch.tensor([0.0, 1e-15])
    before = r2.clone()
    for found, expected in zip(CORRELATIONS[kernel](r2.numpy()), CORRELATIONS[kernel](r2), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-14, atol=0)
    assert torch.equal(r2, before)


@pytest.mark.parametrize(("kernel", "order"), [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)])
def test_matern_correlations_and_their_slopes(kernel: Kernel, order: float) -> None:
    X, Y = POINTS
    r2 = squared_distances(X, Y).requires_grad_()
    found, slope = CORRELATIONS[kernel](r2.detach())
    base = MaternKernel(nu=order).double()
    base.lengthscale = 1.0
    torch.testing.assert_close(found, base(X, Y).to_dense().detach(), rtol=1e-10, atol=1e-10)
    value, _ = correlations(r2, kernel)
    (to_r2,) = torch.autograd.grad(value.sum(), r2)
    torch.testing.assert_close(slope, -2 * to_r2)
    step = 1e-6
    ahead, behind = (CORRELATIONS[kernel](r2.detach() + h)[0] for h in (step, -step))
    torch.testing.assert_close(slope, -(ahead - behind) / step, rtol=1e-6, atol=1e-8)


def test_the_kink_of_matern_12_has_no_slope() -> None:
    k, slope = CORRELATIONS["matern12"](torch.zeros(3, dtype=torch.float64))
    assert torch.equal(k, torch.ones_like(k))
    assert torch.equal(slope, torch.zeros_like(k))


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlations_are_gpytorchs(kernel: SparseKernel) -> None:
    base = RBFKernel() if kernel == "rbf" else MaternKernel(nu=2.5)
    covariance = ScaleKernel(base).double()
    Z, X = POINTS
    for i in range(2):
        base.lengthscale, covariance.outputscale = LENGTHSCALE[i], OUTPUTSCALE[i]
        found = factorise(Z, LENGTHSCALE, OUTPUTSCALE, kernel).whiten(X)
        among, across, L = found.inducing.covariances.value[i], found.covariances.value[i], found.inducing.L[i]
        for own, points in ((among, Z[i]), (across, X[i])):
            torch.testing.assert_close(own, covariance(Z[i], points).to_dense().detach(), rtol=1e-8, atol=1e-8)
        jittered = among + JITTER * torch.eye(4, dtype=torch.float64)
        torch.testing.assert_close(L @ L.mT, jittered, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(L @ found.A[i], across, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_of_correlations_against_differences(kernel: SparseKernel) -> None:
    r2 = torch.tensor([1e-3, 0.1, 1.0, 7.0], dtype=torch.float64)
    h = 1e-6 * r2
    correlation = CORRELATIONS[kernel]
    numerical = -2 * (correlation(r2 + h)[0] - correlation(r2 - h)[0]) / (2 * h)
    torch.testing.assert_close(correlation(r2)[1], numerical, rtol=1e-7, atol=1e-9)
    assert torch.autograd.gradcheck(lambda one: correlations(one, kernel)[0], r2.clone().requires_grad_())


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlation_is_smooth_where_points_coincide(kernel: SparseKernel) -> None:
    """At distance zero the slope in the squared distance is -1/2, or -5/6, and in the points it is zero."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(correlations(zero, kernel)[0].sum(), zero)
    assert slope.item() == pytest.approx(-0.5 if kernel == "rbf" else -5 / 6)
    x = uniform(1, 1, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(correlations(squared_distances(x, x.detach()), kernel)[0].sum(), x)
    assert gradient.abs().max() < 1e-12


def test_squared_distances_are_never_negative() -> None:
    A = 1e4 + uniform(2, 6, 3)
    found = squared_distances(A, A)
    assert (found >= 0).all()
    A, B = uniform(2, 6, 3), uniform(2, 4, 3, seed=1)
    torch.testing.assert_close(squared_distances(A, B), torch.cdist(A, B).square(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("places", [lambda: POINTS, coincident], ids=["apart", "coincident"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_vjp_against_autograd(kernel: SparseKernel, places) -> None:
    """Coincident inducing points leave a condition number near a million: digits are lost on both sides."""
    Z, X = places()
    grad_A = normal(2, 4, 5, seed=3)
    leaves = [one.clone().requires_grad_() for one in (Z, X, LENGTHSCALE, OUTPUTSCALE)]
    expected = torch.autograd.grad((grad_A * by_autograd(*leaves, kernel)).sum(), leaves)
    found = factorise(Z, LENGTHSCALE, OUTPUTSCALE, kernel).whiten(X)
    tolerance = 1e-9 if places is not coincident else 1e-4
    slopes = found.vjp(grad_A)
    own_all = (slopes.inducing, found.vjp_to_points(grad_A), slopes.lengthscale, slopes.outputscale)
    for own, other in zip(own_all, expected, strict=True):
        scale = other.abs().max()
        torch.testing.assert_close(own / scale, other / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
def test_vjp_against_differences(kernel: SparseKernel) -> None:
    Z, X = POINTS
    grad_A, h = normal(2, 4, 5, seed=3), 1e-6
    leaves = [Z, X, LENGTHSCALE, OUTPUTSCALE]
    found = factorise(Z, LENGTHSCALE, OUTPUTSCALE, kernel).whiten(X)
    slopes = found.vjp(grad_A)
    for i, own in enumerate((slopes.inducing, found.vjp_to_points(grad_A), slopes.lengthscale, slopes.outputscale)):
        direction = normal(*leaves[i].shape, seed=10 + i)

        def value(step: float, i: int = i, direction: torch.Tensor = direction) -> torch.Tensor:
            moved = [*leaves[:i], leaves[i] + step * direction, *leaves[i + 1 :]]
            return (grad_A * factorise(moved[0], *moved[2:], kernel).whiten(moved[1]).A).sum()

        numerical = (value(h) - value(-h)) / (2 * h)
        assert (own * direction).sum().item() == pytest.approx(numerical.item(), rel=1e-6, abs=1e-6)


def test_a_process_without_a_factor_is_flagged_and_leaves_the_others_alone() -> None:
    Z, X = uniform(2, 60, 3, seed=1), POINTS[1]
    flat = torch.tensor([10.0, 0.8], dtype=torch.float64)
    huge = torch.tensor([1e13, 0.5], dtype=torch.float64)  # jitter is nothing beside it
    found = factorise(Z, flat, huge, "rbf").whiten(X)
    assert found.inducing.broken.tolist() == [True, False]
    alone = factorise(Z[1:], flat[1:], huge[1:], "rbf").whiten(X[1:])
    torch.testing.assert_close(found.A[1:], alone.A)
    Z = Z.clone()
    Z[0] = torch.nan
    assert factorise(Z, LENGTHSCALE, OUTPUTSCALE, "matern52").whiten(X).inducing.broken.tolist() == [True, False]


def test_vjp_of_the_cholesky_factor_against_autograd() -> None:
    """As a gradient in both triangles, whatever the gradient above the factor's diagonal says."""
    G, root = normal(2, 4, 4, seed=1), normal(2, 4, 4, seed=2)
    leaf = (root @ root.mT + torch.eye(4, dtype=torch.float64)).requires_grad_()
    factor = torch.linalg.cholesky(leaf)
    (expected,) = torch.autograd.grad((G * factor).sum(), leaf)
    found = cholesky_vjp(factor.detach(), G)
    torch.testing.assert_close(found, (expected + expected.mT) / 2, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found, found.mT, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("n", "m", "k"), [(40, 30, 1), (1, 30, 40), (1, 30, 1), (20, 30, 40), (20, 1, 40)])
def test_products_are_the_same_in_any_company(n: int, m: int, k: int) -> None:
    A, B, C = normal(8, n, m, seed=1), normal(8, m, k, seed=2), normal(8, n, k, seed=3)
    torch.testing.assert_close(product(A, B), A @ B)
    torch.testing.assert_close(add_product(C.clone(), A, B, -2.0), C - 2 * A @ B)

    def found(part: slice) -> list[torch.Tensor]:
        return [
            product(A[part], B[part]),
            add_product(C[part].clone(), A[part], B[part]),
            squared_distances(A[part], B[part].mT),
        ]

    together = found(slice(None))
    for i in range(8):
        for own, other in zip(found(slice(i, i + 1)), together, strict=True):
            assert torch.equal(own[0], other[i])


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_factorised_once_serves_any_points(kernel: SparseKernel) -> None:
    Z, X = POINTS
    inducing = factorise(Z, LENGTHSCALE, OUTPUTSCALE, kernel)
    torch.testing.assert_close(inducing.whiten(X[:, 1:3]).A, inducing.whiten(X).A[..., 1:3], rtol=1e-12, atol=1e-12)
