"""Closed-form conformal scores against refits, exact sets against a fine grid, coverage against its guarantee."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.calibration.conformal import ConformalSets, augment, conformity_mass, exact_sets, parabolas, scores
from plumbline.models.exact import ModelOptions, make_gp

BOUNDS = torch.tensor([[-1.0, 0.0], [2.0, 3.0]], dtype=torch.float64)


def made_model(n: int, noise: float = 1e-2, seed: int = 0) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(seed)
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(3 * X).sum(dim=-1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    model = make_gp(X, Y, BOUNDS, ModelOptions(priors="none"))
    model.covar_module.base_kernel.lengthscale = 0.3
    model.likelihood.noise_covar.register_constraint("raw_noise", GreaterThan(1e-10))
    model.likelihood.noise = noise
    return model.eval()


def points(b: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * torch.rand(b, 2, generator=generator, dtype=torch.float64)


def refitted_scores(model: SingleTaskGP, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Algorithm 1 by the letter: put the label into the data, predict every datum, the new one last."""
    inputs = torch.cat([model.train_inputs[0], model.transform_inputs(x.unsqueeze(0))])
    mean = model.mean_module(inputs)
    targets = torch.cat([model.train_targets, label.reshape(1)]) - mean
    K = model.covar_module(inputs).to_dense()
    s2n = model.likelihood.noise
    inverse = torch.linalg.inv(K + s2n * torch.eye(len(K)))
    posterior_mean = K @ inverse @ targets
    posterior_variance = (K - K @ inverse @ K).diagonal() + s2n
    return torch.distributions.Normal(posterior_mean, posterior_variance.sqrt()).log_prob(targets)


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.3])
def test_scores_are_those_of_refits(noise: float) -> None:
    model, X = made_model(12, noise), points(4)
    system = augment(model, X)
    z = torch.linspace(-4, 4, 7, dtype=torch.float64).expand(4, 7)
    data, own = scores(system, z)
    for i in range(4):
        for j in range(7):
            label = system.mean[i] + system.sd[i] * z[i, j]
            expected = refitted_scores(model, X[i], label)
            torch.testing.assert_close(data[i, j], expected[:-1], rtol=0, atol=1e-8)
            torch.testing.assert_close(own[i, j], expected[-1], rtol=0, atol=1e-8)


def test_augmented_moments_are_the_posterior() -> None:
    model, X = made_model(12), points(5)
    system = augment(model, X)
    with torch.no_grad():
        posterior = model.posterior(X, observation_noise=True)
    mean = system.mean * model.outcome_transform.stdvs.squeeze() + model.outcome_transform.means.squeeze()
    torch.testing.assert_close(mean, posterior.mean.squeeze(-1))
    sd = system.sd * model.outcome_transform.stdvs.squeeze()
    torch.testing.assert_close(sd, posterior.variance.sqrt().squeeze(-1))


def test_parabolas_are_differences_of_scores() -> None:
    system = augment(made_model(9), points(3))
    z = torch.linspace(-5, 5, 11, dtype=torch.float64).expand(3, 11)
    data, own = scores(system, z)
    powers = torch.stack([z.square(), z, torch.ones_like(z)], dim=-1)
    difference = torch.einsum("bkp,bnp->bkn", powers, parabolas(system))
    torch.testing.assert_close(difference, own.unsqueeze(-1) - data)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 20), st.floats(1e-4, 0.4), st.floats(0.05, 0.6), st.integers(0, 100), st.booleans())
def test_exact_sets_agree_with_a_fine_grid(n: int, noise: float, alpha: float, seed: int, even: bool) -> None:
    system = augment(made_model(n, noise, seed), points(3, seed + 1))
    generator = torch.Generator().manual_seed(seed)
    weights = torch.ones(3, n + 1, dtype=torch.float64)
    if not even:
        weights = torch.rand(3, n + 1, generator=generator, dtype=torch.float64) + 1e-3
    weights = weights / weights.sum(dim=-1, keepdim=True)
    q = parabolas(system)
    sets = exact_sets(q, weights, alpha)
    grid = torch.linspace(-20, 20, 100_001, dtype=torch.float64).expand(3, -1)
    inside = conformity_mass(q, weights, grid) > alpha
    cell = 40 / 100_000
    clipped = ConformalSets(sets.edges.clamp(-20, 20), sets.inside)
    assert (clipped.width() - inside.double().mean(dim=-1) * 40).abs().max() <= cell * (2 * n + 2)


def test_below_one_in_n_plus_one_the_set_is_the_whole_line() -> None:
    n = 8
    weights = torch.full((1, n + 1), 1 / (n + 1), dtype=torch.float64)
    sets = exact_sets(parabolas(augment(made_model(n), points(1))), weights, alpha=0.9 / (n + 1))
    assert sets.inside[sets.edges[:, 1:] > sets.edges[:, :-1]].all()
    assert math.isinf(sets.width().item())


def test_scores_are_differentiable_in_the_test_point() -> None:
    model = made_model(6)
    z = torch.tensor([[0.7, -1.2], [0.1, 2.0]], dtype=torch.float64)

    def all_scores(X: torch.Tensor) -> torch.Tensor:
        data, own = scores(augment(model, X), z)
        return torch.cat([data, own.unsqueeze(-1)], dim=-1)

    assert torch.autograd.gradcheck(all_scores, points(2).requires_grad_())
