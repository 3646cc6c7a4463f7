"""Closed-form conformal scores against refits."""

from dataclasses import replace

import pytest
import torch
from gp_cases import assert_same_gradient, cube, labels_of, made_process, normal, refitted_scores

from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.scores import powers, powers_vjp, quadratics, quadratics_with_vjp, scores


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_scores_are_those_of_refits(noise: float, q: int) -> None:
    n = 12
    process, U = made_process(n, noise), cube(4, q)
    system = augment(process, U)
    z = 3 * torch.randn(4, 7, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data, own = scores(system, z)
    labels = labels_of(system, z)
    for i in range(4):
        for j in range(7):
            expected = refitted_scores(process, U[i], labels[i, j])
            torch.testing.assert_close(data[i, j], expected[:n], rtol=0, atol=1e-8)
            torch.testing.assert_close(own[i, j], expected[n:], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_quadratics_are_differences_of_scores(q: int, m: int) -> None:
    """Of several outputs, the scores are added up."""
    systems = [augment(made_process(9, seed=i), cube(3, q)) for i in range(m)]
    z = torch.randn(3, 11, q, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    difference = torch.einsum("bqnp,bkp->bknq", quadratics(systems), powers(z))
    expected = torch.zeros_like(difference)
    for i, system in enumerate(systems):
        data, own = scores(system, z[..., i])
        expected += own.unsqueeze(-2) - data.unsqueeze(-1)
    torch.testing.assert_close(difference, expected)


@pytest.mark.parametrize("q", [1, 2])
def test_scores_are_differentiable_in_the_test_points(q: int) -> None:
    process = made_process(6)
    z = torch.randn(2, 2, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def all_scores(U: torch.Tensor) -> torch.Tensor:
        return torch.cat(scores(augment(process, U), z), dim=-1)

    assert torch.autograd.gradcheck(all_scores, cube(2, q).requires_grad_())


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_gradients_are_pulled_back_through_powers(q: int, m: int) -> None:
    z = normal(2, 5, q, m).requires_grad_()
    value = powers(z)
    grad_value = normal(*value.shape, seed=1)
    assert_same_gradient(powers_vjp(z, grad_value), value, grad_value, z)


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_gradients_are_pulled_back_through_quadratics_to_slopes(q: int, m: int) -> None:
    systems = [augment(made_process(9, seed=i), cube(3, q)) for i in range(m)]
    systems = [replace(system, slope=system.slope.clone().requires_grad_()) for system in systems]
    value, vjp = quadratics_with_vjp(systems)
    grad_value = normal(*value.shape)
    for found, system in zip(vjp(grad_value), systems, strict=True):
        assert_same_gradient(found, value, grad_value, system.slope)


def test_duplicated_training_points_leave_scores_finite() -> None:
    process = made_process(6, noise=5e-4)
    inputs = process.U
    process = replace(process, U=inputs.repeat(2, 1), y=process.y.repeat(2))
    system = augment(process, torch.cat([cube(2), inputs[:2].unsqueeze(1)]))
    for part in scores(system, torch.linspace(-3, 3, 9, dtype=torch.float64).expand(4, 9).unsqueeze(-1)):
        assert torch.isfinite(part).all()
