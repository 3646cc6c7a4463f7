"""The augmented system against refits, and its vector-Jacobian product against automatic differentiation."""

import pytest
import torch
from exact_gpytorch import gpytorch_model
from gp_cases import assert_same_gradient, cube, labels_of, made_process, normal, refitted

from plumbline.methods.conformal.augmented import Cotangents, augment, augment_with_vjp


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


@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_pulled_back_through_augmented_systems_to_points(q: int) -> None:
    """Of a number that depends on all parts of a system, in ways that leave its symmetric part symmetric."""
    U = cube(3, q).requires_grad_()
    system, vjp = augment_with_vjp(made_process(9), U)
    S = normal(3, q, q, seed=9)
    parts = {
        "grad_mean": system.mean,
        "grad_root": system.root,
        "grad_own_slope": system.own_slope,
        "grad_dual_root": system.dual_root,
        "grad_cross": system.cross,
        "grad_prior": system.prior,
    }
    cotangents = {name: normal(*part.shape, seed=i) for i, (name, part) in enumerate(parts.items())}
    cotangents["grad_prior"], cotangents["grad_root"] = S + S.mT, cotangents["grad_root"].tril()
    grad_slope = normal(*system.slope.shape, seed=7)
    number = sum((cotangents[name] * part).sum() for name, part in parts.items()) + (grad_slope * system.slope).sum()
    assert isinstance(number, torch.Tensor)
    assert_same_gradient(vjp(Cotangents(**cotangents), grad_slope), number, torch.ones(()), U)
