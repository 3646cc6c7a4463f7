"""Where inducing points go, and the best beliefs about them."""

from typing import get_args

import pytest
import torch
from botorch.acquisition import ExpectedImprovement
from botorch.models.utils.inducing_point_allocators import _pivoted_cholesky_init
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_cases import KERNELS, normal, objective_gradient, random_rows, uniform

from plumbline.models.algebra import SparseKernel
from plumbline.models.botorch_model import ProcessModel
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp import inducing
from plumbline.models.svgp.inducing import Baseline, best_beliefs, greedy_dpp, improvement_quality, place_inducing
from plumbline.models.svgp.objective import Batch, Layout, initial_row
from plumbline.models.svgp.process import SVGP

LAYOUT = Layout(6, 2)


def kernel_matrix(X: torch.Tensor, lengthscale: float = 0.3) -> torch.Tensor:
    return 1.7 * (-0.5 * torch.cdist(X, X).square() / lengthscale**2).exp()


def chosen(K: torch.Tensor, quality: torch.Tensor, size: int) -> list[int]:
    return greedy_dpp(lambda i: K[i], K.diagonal(), quality, size).tolist()


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 12), st.floats(0.05, 1.0))
def test_the_choice_is_botorchs(seed: int, size: int, lengthscale: float) -> None:
    X = uniform(15, 2, seed=seed)
    quality = 0.1 + uniform(15, seed=seed + 1)
    K = kernel_matrix(X, lengthscale)
    theirs = _pivoted_cholesky_init(X, K, size, quality)
    own = X[chosen(K, quality, size)]
    # BoTorch stops where the best point is told by those before, ours goes on with points that are not.
    assert torch.equal(own[: len(theirs)], theirs)


def test_each_is_the_best_given_those_before_by_determinants() -> None:
    X, quality = uniform(9, 2, seed=2), 0.2 + uniform(9, seed=3)
    K = kernel_matrix(X)
    weighted = quality[:, None] * K * quality
    found = chosen(K, quality, 5)
    for k, own in enumerate(found):
        before = found[:k]
        volumes = {
            i: torch.linalg.det(weighted[[*before, i]][:, [*before, i]]).item() for i in range(9) if i not in before
        }
        assert own == max(volumes, key=lambda i: volumes[i])


def test_the_same_points_are_chosen_once_and_fewer_where_no_other_is_left() -> None:
    X = uniform(4, 2).repeat(3, 1)
    found = chosen(kernel_matrix(X), torch.ones(12).double(), 10)
    assert len(found) == 4
    assert {i % 4 for i in found} == {0, 1, 2, 3}
    assert len(chosen(kernel_matrix(X[:2]), torch.ones(2).double(), 10)) == 2


def test_points_without_quality_come_last() -> None:
    X = torch.linspace(0, 10, 6).double().unsqueeze(-1)
    quality = torch.tensor([0.0, 1.0, 0.0, 3.0, 0.0, 2.0]).double()
    found = chosen(kernel_matrix(X), quality, 6)
    assert found[:3] == [3, 5, 1]
    assert sorted(found[3:]) == [0, 2, 4]


def situation(n: int = 30) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return random_rows(1, LAYOUT), uniform(n, 2, seed=5), normal(n, seed=6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_step_away_from_the_best_beliefs_gains_anything(kernel: SparseKernel, monkeypatch) -> None:
    """The gradient of the ELBO of all data in mean and factor vanishes; data are summed in parts."""
    monkeypatch.setattr(inducing, "AT_ONCE", 7)
    rows, X, y = situation()
    parts = LAYOUT.parts(rows)
    n = len(y)
    whole = Batch(X[None], y[None], X.new_tensor([n]))

    def slopes() -> tuple[float, torch.Tensor, torch.Tensor]:
        value, gradient = objective_gradient(rows, LAYOUT, whole, kernel, "elbo")
        found = LAYOUT.parts(gradient)
        return value.item(), found.mean, found.factor

    before, grad_mean, grad_factor = slopes()
    assert grad_mean.abs().max() > 0.01
    assert grad_factor.abs().max() > 0.01
    mean, factor = best_beliefs(parts, LAYOUT, X, y, kernel)
    parts.mean.copy_(mean)
    parts.factor.copy_(factor)
    after, grad_mean, grad_factor = slopes()
    assert after > before
    assert grad_mean.abs().max() < 1e-8
    assert grad_factor.abs().max() < 1e-8
    assert torch.equal(factor, factor.tril())
    assert (factor.diagonal() > 0).all()


def test_inducing_points_may_coincide() -> None:
    rows, X, y = situation()
    parts = LAYOUT.parts(rows)
    parts.inducing[:, 1] = parts.inducing[:, 0]
    for part in best_beliefs(parts, LAYOUT, X, y, "rbf"):
        assert torch.isfinite(part).all()


def test_inducing_points_whose_covariance_has_no_factor_are_refused() -> None:
    layout = Layout(60, 3)
    rows = random_rows(1, layout)
    parts = layout.parts(rows)
    parts.raw_lengthscale.fill_(10.0)
    parts.raw_outputscale.fill_(1e13)
    with pytest.raises(torch.linalg.LinAlgError, match="no Cholesky factor"):
        best_beliefs(parts, layout, uniform(9, 3), normal(9), "rbf")


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("baseline", get_args(Baseline))
def test_the_quality_is_botorchs_expected_improvement(baseline: Baseline, noisy: bool) -> None:
    """Of f, or of observations, over the best or the worst mean."""
    process = SVGP(random_rows(1, LAYOUT)[0], LAYOUT, "rbf", Standardisation(torch.zeros(2), torch.ones(2), 3.0, 2.0))
    X = uniform(7, 2, seed=4)
    model = ProcessModel(process, noisy=noisy)
    means = model.posterior(X.unsqueeze(-2)).mean
    over = means.max() if baseline == "greatest mean" else means.min()
    expected = ExpectedImprovement(model, over)(X.unsqueeze(-2))
    torch.testing.assert_close(improvement_quality(process, X, noisy, baseline), expected, rtol=1e-8, atol=1e-10)


def test_points_to_fill_up_with_may_come_first() -> None:
    process = SVGP(initial_row(uniform(6, 2)), LAYOUT, "rbf", Standardisation(torch.zeros(2), torch.ones(2), 0.0, 1.0))
    X, fill = uniform(2, 2, seed=5).repeat(2, 1), uniform(6, 2, seed=6)
    behind = place_inducing(X, LAYOUT, process, torch.ones(4).double(), fill)
    before = place_inducing(X, LAYOUT, process, torch.ones(4).double(), fill, fill_first=True)
    assert torch.equal(before[:4], fill[:4])
    assert torch.equal(before[4:], behind[:2])


def test_place_inducing_fills_up_where_the_data_are_alike() -> None:
    process = SVGP(
        initial_row(uniform(8, 2, seed=1)),
        Layout(8, 2),
        "rbf",
        Standardisation(torch.zeros(2), torch.ones(2), 0.0, 1.0),
    )
    X, fill = uniform(3, 2, seed=2).repeat(2, 1), uniform(8, 2, seed=3)
    Z = place_inducing(X, process.layout, process, torch.ones(6).double(), fill)
    assert {tuple(z) for z in Z[:3].tolist()} == {tuple(x) for x in X.tolist()}
    assert torch.equal(Z[3:], fill[:5])
