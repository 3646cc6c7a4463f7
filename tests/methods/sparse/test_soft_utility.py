"""All soft utilities: bounds, processes in company, and the derivatives that the EULBO takes."""

from dataclasses import replace

import pytest
import torch
from point_posteriors import (
    KERNELS,
    LAYOUT,
    NAMES,
    expected_log,
    normal,
    rows_of,
    scalar,
    sight_of,
    uniform,
    utilities,
    value_of,
)

from plumbline.methods.sparse.point_posteriors import PointPosteriors
from plumbline.methods.sparse.soft_utility import ExpectedLog
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.objective import forward


@pytest.mark.parametrize("far", [1e6, -1e6])
@pytest.mark.parametrize("name", NAMES)
def test_neither_under_nor_overflows(name: str, far: float) -> None:
    """Far above all the utility is the improvement itself, far below its logarithm is the improvement."""
    utility, k = utilities(1)[name]
    rows, points = rows_of(1), uniform(1, k, 2, seed=3)
    passed = forward(rows, LAYOUT, points, "rbf")
    found = replace(utility, best=scalar(-far)).expected_log(PointPosteriors.of(passed))  # type: ignore[type-var]
    expected = torch.tensor(far).log().item() if far > 0 else far
    assert found.value.item() == pytest.approx(expected, rel=1e-4)
    assert all(torch.isfinite(part).all() for part in (*found.cotangents(), found.grad_points(passed)))


def test_joint_samples_without_a_factor_are_no_numbers() -> None:
    utility, _ = utilities(2)["batch-improvement"]
    posteriors = sight_of(rows_of(2), uniform(2, 2, 2, seed=3), "rbf")
    A = posteriors.A.clone()
    A[0] *= 100
    found, whole = utility.expected_log(replace(posteriors, A=A)), utility.expected_log(posteriors)
    assert torch.isnan(found.value).tolist() == [True, False]
    for one, other in zip(parts_of(found), parts_of(whole), strict=True):
        assert torch.equal(one[1], other[1])


@pytest.mark.parametrize("name", NAMES)
def test_some_processes_alone(name: str) -> None:
    utility, k = utilities(3)[name]
    rows, points = rows_of(3), uniform(3, k, 2, seed=3)
    every = utility.expected_log(sight_of(rows, points, "rbf")).value
    going = torch.tensor([2, 0])
    some = utility.of(going).expected_log(sight_of(rows[going], points[going], "rbf")).value
    torch.testing.assert_close(some, every[going])


@pytest.mark.parametrize("coincident", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_against_differences(name: str, kernel: SparseKernel, coincident: bool) -> None:
    """In the parameters and in the points, of which one may be an inducing point and two the same.

    A query on an inducing point, if its observation is an inducing value, has a gain that is a quotient of jitters,
    whose derivatives are finite and beyond differences.
    """
    b = 2
    utility, k = utilities(b)[name]
    rows, points = rows_of(b), uniform(b, k, 2, seed=3)
    if coincident:
        inducing = LAYOUT.parts(rows).inducing[:, 0]
        if k > 2:
            points[:, -1] = points[:, 0]
            if utility.q == 1:  # no query changes the mean at an inducing point: two would tie there
                points[:, -2] = inducing
        else:
            points[:, 0] = inducing

    def value(rows: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        return value_of(utility, rows, points, kernel)

    passed = forward(rows, LAYOUT, points, kernel)
    found = utility.expected_log(PointPosteriors.of(passed))
    to_rows, grad_points = passed.vjp(*found.cotangents(), torch.zeros(b).double()), found.grad_points(passed)
    torch.testing.assert_close(found.value, value(rows, points))
    assert grad_points.abs().amax((-1, -2)).min() > 1e-3
    h = 1e-6
    for seed in range(2):
        at, there = normal(b, LAYOUT.size, seed=seed), normal(b, k, 2, seed=seed + 9)
        in_rows = (value(rows + h * at, points) - value(rows - h * at, points)) / (2 * h)
        torch.testing.assert_close((to_rows * at).sum(-1), in_rows, rtol=1e-5, atol=1e-5)
        in_points = (value(rows, points + h * there) - value(rows, points - h * there)) / (2 * h)
        torch.testing.assert_close((grad_points * there).sum((-1, -2)), in_points, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if "improvement" not in name])
def test_a_query_on_an_inducing_point_has_finite_derivatives(name: str) -> None:
    utility, k = utilities(2)[name]
    rows, points = rows_of(2), uniform(2, k, 2, seed=3)
    points[:, 0] = LAYOUT.parts(rows).inducing[:, 0]
    passed = forward(rows, LAYOUT, points, "matern52")
    found = utility.expected_log(PointPosteriors.of(passed))
    to_rows = passed.vjp(*found.cotangents(), torch.zeros(2).double())
    assert all(torch.isfinite(part).all() for part in (found.value, to_rows, found.grad_points(passed)))


def test_points_behind_data_have_the_same_derivatives() -> None:
    utility, k = utilities(2)["batch-gradient"]
    rows, points, X = rows_of(2), uniform(2, k, 2, seed=3), uniform(2, 4, 2, seed=5)
    alone = utility.expected_log(sight_of(rows, points, "rbf"))
    behind = utility.expected_log(PointPosteriors.of(forward(rows, LAYOUT, torch.cat([X, points], 1), "rbf"), 4))
    for own, other in zip(parts_of(alone), parts_of(behind), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-9)


def parts_of(gain: ExpectedLog) -> list[torch.Tensor]:
    """Return a value, its derivatives in the parts of a forward pass, and the direct ones in the points."""
    direct = [prior.vjp_to_points(grad_value) for prior, grad_value in gain.grad_priors]
    return [gain.value, *gain.cotangents(), torch.stack(direct).sum(0) if direct else torch.zeros(1).double()]


@pytest.mark.parametrize("coincident", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_against_autograd(name: str, kernel: SparseKernel, coincident: bool) -> None:
    """In all that a utility sees, each a quantity of its own; two of its points may be the same."""
    b = 3
    utility, k = utilities(b)[name]
    points = uniform(b, k, 2, seed=3)
    if coincident:
        points[:, -1] = points[:, 0]
    posteriors = sight_of(rows_of(b), points, kernel)
    leaves = [
        points,
        posteriors.A,
        posteriors.B,
        posteriors.constant,
        posteriors.lengthscale,
        posteriors.outputscale,
        posteriors.noise,
    ]
    leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    expected = expected_log(utility, kernel, *leaves)
    gradients = torch.autograd.grad(expected.sum(), leaves, allow_unused=True, materialize_grads=True)
    found = utility.expected_log(posteriors)
    cotangents, direct = found.cotangents(), parts_of(found)[-1]
    own = [
        cotangents.grad_whitened,
        cotangents.grad_product,
        cotangents.grad_constant,
        cotangents.grad_lengthscale,
        cotangents.grad_outputscale,
    ]
    own.append(cotangents.grad_noise)
    torch.testing.assert_close(found.value, expected.detach(), rtol=1e-10, atol=1e-10)
    for one, other in zip([direct.expand_as(points), *own], gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * max(1.0, other.abs().max().item()))


@pytest.mark.parametrize("name", NAMES)
def test_company_makes_no_difference_to_the_last_bit(name: str) -> None:
    utility, k = utilities(3)[name]
    rows, points = rows_of(3), uniform(3, k, 2, seed=3)
    together = parts_of(utility.expected_log(sight_of(rows, points, "matern52")))
    for i in range(3):
        one = torch.tensor([i])
        alone = parts_of(utility.of(one).expected_log(sight_of(rows[one], points[one], "matern52")))
        for own, other in zip(alone[: -1 if name == "improvement" else None], together, strict=False):
            assert torch.equal(own[0], other[i])
