"""Expected logarithms of improvements: quadrature against integrals and samples."""

from dataclasses import replace

import pytest
import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from hypothesis import given
from hypothesis import strategies as st
from point_posteriors import (
    rows_of,
    scalar,
    sight_of,
    uniform,
    utilities,
)
from torch.nn.functional import softplus

from plumbline.methods.sparse.soft_improvement import (
    EVERY,
    SoftBatchImprovement,
    SoftImprovement,
    expected_log_softplus,
)


@given(st.floats(-100, 100), st.floats(0, 2))
def test_twenty_nodes_are_enough_up_to_a_deviation_of_two(mean: float, sd: float) -> None:
    """Within 1e-6 of 200 nodes; at a deviation of 3, 3e-5 are lost, at 5, 1e-3. In standardised units it is about 1."""
    few, many = (expected_log_softplus(scalar(mean), scalar(sd), nodes)[0] for nodes in (20, 200))
    assert few.item() == pytest.approx(many.item(), abs=1e-6)


def test_quadrature_against_a_plain_integral() -> None:
    g = torch.linspace(-12, 12, 20001, dtype=torch.float64)
    density = (-0.5 * g.square()).exp() / (2 * torch.pi) ** 0.5
    expected = torch.trapezoid(density * softplus(0.4 + 0.7 * g).log(), g)
    assert expected_log_softplus(scalar(0.4), scalar(0.7))[0].item() == pytest.approx(expected.item(), abs=1e-8)


def test_improvement_of_one_query_is_the_same_by_samples() -> None:
    points, best = uniform(1, 1, 2, seed=3), scalar(0.2)
    posteriors = sight_of(rows_of(1), points, "rbf")
    base = draw_sobol_normal_samples(1, 4096, seed=1).double().unsqueeze(0)
    sampled = SoftBatchImprovement(best, 1, base).expected_log(posteriors).value
    assert SoftImprovement(best).expected_log(posteriors).value.item() == pytest.approx(sampled.item(), abs=1e-3)


def test_batch_improvement_by_hand() -> None:
    utility, _ = utilities(2)["batch-improvement"]
    assert isinstance(utility, SoftBatchImprovement)
    posteriors = sight_of(rows_of(2), uniform(2, 2, 2, seed=3), "rbf")
    covariance = posteriors.covariance(posteriors.prior(EVERY, EVERY))
    for b in range(2):
        f = posteriors.mean[b] + utility.base[b] @ torch.linalg.cholesky(covariance[b]).mT
        expected = softplus(f - utility.best[b]).amax(-1).log().mean()
        assert utility.expected_log(posteriors).value[b].item() == pytest.approx(expected.item(), rel=1e-10)


def test_a_deviation_at_its_floor_has_no_slope() -> None:
    """It is bounded from below, and does not move with what it is bounded for."""
    posteriors = sight_of(rows_of(2), uniform(2, 7, 2, seed=3), "rbf")
    A, B = posteriors.A.clone(), posteriors.B.clone()
    A[0, :, :2], B[0, :-1, :2] = 10.0, 0.0
    for name in ("batch-gradient", "noisy-gradient", "shrunk-gradient"):
        found = utilities(2)[name][0].expected_log(replace(posteriors, A=A, B=B))
        assert (found.grad_outputscale[0], found.grad_outputscale[1] != 0) == (0, True)
    below = SoftImprovement(torch.zeros(2).double()).expected_log(replace(posteriors, A=A, B=B).part(slice(1)))
    assert (below.grad_whitened[0] == 0).all()
    assert (below.grad_whitened[1] != 0).any()
