"""Masks against their definitions, coverage against its guarantee, and gradients of the relaxed mass."""

import math
from dataclasses import replace

import pytest
import torch
from gp_cases import assert_same_gradient, cube, made_process, normal, random_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.methods.conformal.augmented import augment
from plumbline.methods.conformal.masses import (
    acceptance,
    conformity_mass,
    effective_sample_size,
    importance_weights,
    relaxed_mass_with_vjp,
)
from plumbline.methods.conformal.scores import quadratics, scores


@settings(max_examples=25)
@given(st.integers(1, 3), st.integers(2, 9), st.floats(0.02, 0.6), st.integers(0, 100))
def test_mass_and_masks_are_algorithm_1_and_2(q: int, n: int, alpha: float, seed: int) -> None:
    systems = [augment(made_process(n, seed=seed), cube(2, q, seed))]
    weights = random_weights(2, q, n, seed)
    z = 2 * torch.randn(2, 5, q, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mass = conformity_mass(quadratics(systems), weights, z)
    data, own = scores(systems[0], z.squeeze(-1))
    for b in range(2):
        for k in range(5):
            for i in range(q):
                h = (data[b, k] <= own[b, k, i]).double()
                expected = (h * weights[b, i, :-1]).sum() + weights[b, i, -1]
                assert mass[b, i, k].item() == pytest.approx(expected.item(), abs=1e-12)
                w = weights[b, i, -1].item()
                sharp = acceptance(mass[b, i, k], weights[b, i, -1], alpha).item()
                assert sharp == float(expected > alpha)
                coin = acceptance(mass[b, i, k], weights[b, i, -1], alpha, randomised=True).item()
                heads = min(max((expected.item() - alpha) / w, 0.0), 1.0)
                by_hand = heads * (expected.item() > alpha) + (1 - heads) * (expected.item() - w > alpha)
                assert coin == pytest.approx(by_hand, abs=1e-9)


def test_relaxation_tends_to_the_sharp_masks() -> None:
    system = [augment(made_process(15), cube(3))]
    weights, z = random_weights(3, 1, 15, 0), torch.linspace(-3, 3, 40, dtype=torch.float64)
    z = z.expand(3, 40)[..., None, None]
    sharp = conformity_mass(quadratics(system), weights, z)
    errors = [(conformity_mass(quadratics(system), weights, z, tau) - sharp).abs().mean() for tau in (1.0, 1e-2, 1e-5)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-3
    clear = (sharp - 0.2).abs() > 0.01
    own = weights[..., -1:]
    relaxed = acceptance(sharp, own, 0.2, tau=1e-4)
    assert torch.equal(relaxed[clear].round(), acceptance(sharp, own, 0.2)[clear])


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 64])
def test_randomised_sets_are_exactly_valid(n: int) -> None:
    """1,000 exchangeable draws: within 3 standard errors of 1 - alpha, where n instead of n + 1 would show."""
    alpha, draws = 0.2, 1_000
    generator = torch.Generator().manual_seed(n)
    covered = torch.zeros(draws, dtype=torch.float64)
    process = made_process(n, 0.05)
    for i in range(draws):
        U = torch.rand(n + 1, 2, generator=generator, dtype=torch.float64)
        y = torch.sin(9 * U).sum(dim=-1) + 0.3 * torch.randn(n + 1, generator=generator, dtype=torch.float64)
        given = replace(process, U=U[:n], y=y[:n])
        system = augment(given, U[n:].unsqueeze(0))
        z = ((y[n] - system.mean) / system.sd).reshape(1, 1, 1, 1)
        weights = torch.full((1, 1, n + 1), 1 / (n + 1), dtype=torch.float64)
        mass = conformity_mass(quadratics([system]), weights, z)
        heads = acceptance(mass, weights[..., -1:], alpha, randomised=True)
        covered[i] = (torch.rand((), generator=generator) < heads).double()
    assert abs(covered.mean().item() - (1 - alpha)) <= 3 * math.sqrt(alpha * (1 - alpha) / draws)


def test_weights_follow_the_density_ratio() -> None:
    ratio_data, ratio_test = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([[2.0, 12.0]])
    weights = importance_weights(ratio_data.log(), ratio_test.log())
    torch.testing.assert_close(weights[0, 0], torch.tensor([0.1, 0.2, 0.5, 0.2]))
    torch.testing.assert_close(weights[0, 1], torch.tensor([0.05, 0.1, 0.25, 0.6]))


def test_effective_sample_size_of_even_and_of_lonely_weights() -> None:
    even, lonely = torch.full((8,), 1 / 8), torch.tensor([1.0, 0.0, 0.0])
    assert effective_sample_size(even).item() == pytest.approx(8)
    assert effective_sample_size(lonely).item() == pytest.approx(1)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("q", [1, 3])
def test_gradients_are_pulled_back_through_the_relaxed_mass(q: int, fixed: bool) -> None:
    """To coefficients, labels and the log density ratio of the test points; labels may be the same at all points."""
    b, n, k, p, tau = 2, 6, 5, 1 + q + q * q, 0.3
    C, of_data, of_test = normal(b, q, n, p).requires_grad_(), normal(n, seed=1), normal(b, q, seed=2).requires_grad_()
    Z = normal(*((k, p) if fixed else (b, 1, k, p)), seed=3).requires_grad_()
    weights = importance_weights(of_data, of_test)
    relaxed = torch.sigmoid(C / tau @ Z.mT)
    value = (weights[..., None, :-1] @ relaxed).squeeze(-2) + weights[..., -1:]
    grad_mass, grad_own = normal(b, q, k, seed=4), normal(b, q, 1, seed=5)
    with torch.no_grad():
        mass, vjp = relaxed_mass_with_vjp(C, weights, Z, tau)
        to_C, grad_ratio, to_Z = (
            vjp.grad_coefficients(grad_mass),
            vjp.grad_log_ratio(grad_mass, grad_own),
            vjp.grad_monomials(grad_mass),
        )
    torch.testing.assert_close(mass, value.detach(), rtol=1e-14, atol=0)
    assert_same_gradient(to_C, value, grad_mass, C)
    assert_same_gradient(to_Z.sum(dim=(0, 1)) if fixed else to_Z.sum(dim=1, keepdim=True), value, grad_mass, Z)
    assert_same_gradient(
        grad_ratio,
        (grad_mass * value).sum(dim=-1) + (grad_own * weights[..., -1:]).squeeze(-1),
        torch.ones(()),
        of_test,
    )
