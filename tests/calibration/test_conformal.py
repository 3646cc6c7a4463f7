"""Closed-form conformal scores against refits, masks against their definitions, coverage against its guarantee."""

import math

import pytest
import torch
from gp_cases import cube, made_model, random_weights, refitted, refitted_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.calibration.conformal import (
    acceptance,
    augment,
    conformity_mass,
    effective_sample_size,
    factorise,
    importance_weights,
    powers,
    quadratics,
    scores,
)


def labels_of(system, z: torch.Tensor) -> torch.Tensor:
    return system.mean.unsqueeze(-2) + z @ system.root.mT


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_scores_are_those_of_refits(noise: float, q: int) -> None:
    n = 12
    model, U = made_model(n, noise), cube(4, q)
    system = augment(factorise(model), U)
    z = 3 * torch.randn(4, 7, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data, own = scores(system, z)
    labels = labels_of(system, z)
    for i in range(4):
        for j in range(7):
            expected = refitted_scores(model, U[i], labels[i, j])
            torch.testing.assert_close(data[i, j], expected[:n], rtol=0, atol=1e-8)
            torch.testing.assert_close(own[i, j], expected[n:], rtol=0, atol=1e-8)


@pytest.mark.parametrize("q", [1, 3])
def test_function_after_refitting_is_that_of_refits(q: int) -> None:
    model, U = made_model(10), cube(2, q)
    system = augment(factorise(model), U)
    z = torch.randn(2, 3, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean, root = system.function_mean(z), system.function_root()
    for i in range(2):
        for j in range(3):
            expected, covariance = refitted(model, U[i], labels_of(system, z)[i, j])
            torch.testing.assert_close(mean[i, j], expected[-q:])
            torch.testing.assert_close(root[i] @ root[i].mT, covariance[-q:, -q:], rtol=1e-6, atol=1e-9)


def test_augmented_moments_are_the_posterior() -> None:
    model, U = made_model(12), cube(5)
    system = augment(factorise(model), U)
    with torch.no_grad():
        posterior = model.posterior(model.input_transform.untransform(U.squeeze(1)), observation_noise=True)
    scale, shift = model.outcome_transform.stdvs.squeeze(), model.outcome_transform.means.squeeze()
    torch.testing.assert_close(system.mean * scale + shift, posterior.mean)
    torch.testing.assert_close(system.sd * scale, posterior.variance.sqrt())


@pytest.mark.parametrize(("q", "m"), [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_quadratics_are_differences_of_scores(q: int, m: int) -> None:
    """Of several outputs, the scores are added up."""
    systems = [augment(factorise(made_model(9, seed=i)), cube(3, q)) for i in range(m)]
    z = torch.randn(3, 11, q, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    difference = torch.einsum("bqnp,bkp->bknq", quadratics(systems), powers(z))
    expected = torch.zeros_like(difference)
    for i, system in enumerate(systems):
        data, own = scores(system, z[..., i])
        expected += own.unsqueeze(-2) - data.unsqueeze(-1)
    torch.testing.assert_close(difference, expected)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.integers(2, 9), st.floats(0.02, 0.6), st.integers(0, 100))
def test_mass_and_masks_are_algorithm_1_and_2(q: int, n: int, alpha: float, seed: int) -> None:
    systems = [augment(factorise(made_model(n, seed=seed)), cube(2, q, seed))]
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
    system = [augment(factorise(made_model(15)), cube(3))]
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


@pytest.mark.parametrize("n", [5, 16, 64])
def test_randomised_sets_are_exactly_valid(n: int) -> None:
    """2,000 exchangeable draws: within 3 standard errors of 1 - alpha, where n instead of n + 1 would show."""
    alpha, draws = 0.2, 2_000
    generator = torch.Generator().manual_seed(n)
    covered = torch.zeros(draws, dtype=torch.float64)
    model = made_model(n, 0.05)
    for i in range(draws):
        U = torch.rand(n + 1, 2, generator=generator, dtype=torch.float64)
        y = torch.sin(9 * U).sum(dim=-1) + 0.3 * torch.randn(n + 1, generator=generator, dtype=torch.float64)
        model.set_train_data(U[:n], y[:n], strict=False)
        system = augment(factorise(model), U[n:].unsqueeze(0))
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
    factors = factorise(made_model(6))
    z = torch.randn(2, 2, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def all_scores(U: torch.Tensor) -> torch.Tensor:
        return torch.cat(scores(augment(factors, U), z), dim=-1)

    assert torch.autograd.gradcheck(all_scores, cube(2, q).requires_grad_())


def test_duplicated_training_points_leave_scores_finite() -> None:
    model = made_model(6, noise=5e-4)
    inputs, targets = model.train_inputs[0], model.train_targets
    model.set_train_data(inputs.repeat(2, 1), targets.repeat(2), strict=False)
    system = augment(factorise(model), torch.cat([cube(2), inputs[:2].unsqueeze(1)]))
    for part in scores(system, torch.linspace(-3, 3, 9, dtype=torch.float64).expand(4, 9).unsqueeze(-1)):
        assert torch.isfinite(part).all()
