"""Closed-form conformal scores against refits, masks against their definitions, coverage against its guarantee."""

import math
from dataclasses import replace

import pytest
import torch
from exact_gpytorch import gpytorch_model
from gp_cases import cube, made_process, random_weights, refitted, refitted_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.methods.conformal.scores import (
    Cotangents,
    acceptance,
    augment,
    augment_with_vjp,
    cholesky,
    conformity_mass,
    effective_sample_size,
    importance_weights,
    powers,
    powers_vjp,
    quadratics,
    quadratics_with_vjp,
    relaxed_mass_with_vjp,
    scores,
)
from plumbline.models.algebra import cholesky_vjp


def labels_of(system, z: torch.Tensor) -> torch.Tensor:
    return system.mean.unsqueeze(-2) + z @ system.root.mT


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


@pytest.mark.parametrize("q", [1, 3])
def test_function_after_refitting_is_that_of_refits(q: int) -> None:
    process, U = made_process(10), cube(2, q)
    system = augment(process, U)
    z = torch.randn(2, 3, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean, root = system.function_mean(z), system.function_root()
    for i in range(2):
        for j in range(3):
            expected, covariance = refitted(process, U[i], labels_of(system, z)[i, j])
            torch.testing.assert_close(mean[i, j], expected[-q:])
            torch.testing.assert_close(root[i] @ root[i].mT, covariance[-q:, -q:], rtol=1e-6, atol=1e-9)


def test_augmented_moments_are_the_posterior() -> None:
    process, U = made_process(12), cube(5)
    system = augment(process, U)
    standardisation = process.standardisation
    posterior = gpytorch_model(process).posterior(standardisation.points(U.squeeze(1)), observation_noise=True)
    torch.testing.assert_close(standardisation.location + standardisation.scale * system.mean, posterior.mean.detach())
    torch.testing.assert_close(standardisation.scale * system.sd, posterior.variance.sqrt().detach())


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


@pytest.mark.parametrize("q", [1, 2])
def test_scores_are_differentiable_in_the_test_points(q: int) -> None:
    process = made_process(6)
    z = torch.randn(2, 2, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def all_scores(U: torch.Tensor) -> torch.Tensor:
        return torch.cat(scores(augment(process, U), z), dim=-1)

    assert torch.autograd.gradcheck(all_scores, cube(2, q).requires_grad_())


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_same_gradient(found: torch.Tensor, value: torch.Tensor, grad_value: torch.Tensor, at: torch.Tensor) -> None:
    """A gradient pulled back is that of automatic differentiation."""
    (expected,) = torch.autograd.grad((grad_value * value).sum(), at, retain_graph=True)
    torch.testing.assert_close(found.detach(), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("q", [1, 2, 4])
def test_gradients_are_pulled_back_through_cholesky_factors(q: int) -> None:
    A = random(3, q, q)
    S = (A @ A.mT + torch.eye(q).double()).requires_grad_()
    root, grad_root = cholesky(S), random(3, q, q, seed=1)
    found = cholesky_vjp(root, grad_root)
    assert torch.equal(found, found.mT) or torch.allclose(found, found.mT, rtol=1e-12)
    assert_same_gradient(found, root, grad_root, S)


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_gradients_are_pulled_back_through_powers(q: int, m: int) -> None:
    z = random(2, 5, q, m).requires_grad_()
    value = powers(z)
    grad_value = random(*value.shape, seed=1)
    assert_same_gradient(powers_vjp(z, grad_value), value, grad_value, z)


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_gradients_are_pulled_back_through_quadratics_to_slopes(q: int, m: int) -> None:
    systems = [augment(made_process(9, seed=i), cube(3, q)) for i in range(m)]
    systems = [replace(system, slope=system.slope.clone().requires_grad_()) for system in systems]
    value, vjp = quadratics_with_vjp(systems)
    grad_value = random(*value.shape)
    for found, system in zip(vjp(grad_value), systems, strict=True):
        assert_same_gradient(found, value, grad_value, system.slope)


@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_pulled_back_through_augmented_systems_to_points(q: int) -> None:
    """Of a number that depends on all parts of a system, in ways that leave its symmetric part symmetric."""
    U = cube(3, q).requires_grad_()
    system, vjp = augment_with_vjp(made_process(9), U)
    S = random(3, q, q, seed=9)
    parts = {
        "grad_mean": system.mean,
        "grad_root": system.root,
        "grad_own_slope": system.own_slope,
        "grad_dual_root": system.dual_root,
        "grad_cross": system.cross,
        "grad_prior": system.prior,
    }
    cotangents = {name: random(*part.shape, seed=i) for i, (name, part) in enumerate(parts.items())}
    cotangents["grad_prior"], cotangents["grad_root"] = S + S.mT, cotangents["grad_root"].tril()
    grad_slope = random(*system.slope.shape, seed=7)
    number = sum((cotangents[name] * part).sum() for name, part in parts.items()) + (grad_slope * system.slope).sum()
    assert isinstance(number, torch.Tensor)
    assert_same_gradient(vjp(Cotangents(**cotangents), grad_slope), number, torch.ones(()), U)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("q", [1, 3])
def test_gradients_are_pulled_back_through_the_relaxed_mass(q: int, fixed: bool) -> None:
    """To coefficients, labels and the log density ratio of the test points; labels may be the same at all points."""
    b, n, k, p, tau = 2, 6, 5, 1 + q + q * q, 0.3
    C, of_data, of_test = random(b, q, n, p).requires_grad_(), random(n, seed=1), random(b, q, seed=2).requires_grad_()
    Z = random(*((k, p) if fixed else (b, 1, k, p)), seed=3).requires_grad_()
    weights = importance_weights(of_data, of_test)
    relaxed = torch.sigmoid(C / tau @ Z.mT)
    value = (weights[..., None, :-1] @ relaxed).squeeze(-2) + weights[..., -1:]
    grad_mass, grad_own = random(b, q, k, seed=4), random(b, q, 1, seed=5)
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


def test_duplicated_training_points_leave_scores_finite() -> None:
    process = made_process(6, noise=5e-4)
    inputs = process.U
    process = replace(process, U=inputs.repeat(2, 1), y=process.y.repeat(2))
    system = augment(process, torch.cat([cube(2), inputs[:2].unsqueeze(1)]))
    for part in scores(system, torch.linspace(-3, 3, 9, dtype=torch.float64).expand(4, 9).unsqueeze(-1)):
        assert torch.isfinite(part).all()
