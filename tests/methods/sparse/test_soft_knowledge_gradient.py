"""Mean updates against conditioning by hand, and the knowledge gradient of these."""

from dataclasses import replace

import pytest
import torch
from point_posteriors import (
    KERNELS,
    LAYOUT,
    READINGS,
    normal,
    rows_of,
    sight_of,
    uniform,
    utilities,
)
from torch.nn.functional import softplus

from plumbline.methods.sparse.reading import Reading
from plumbline.methods.sparse.soft_improvement import (
    EVERY,
)
from plumbline.methods.sparse.soft_knowledge_gradient import SoftKnowledgeGradient, imagined, mean_update
from plumbline.models.algebra import CORRELATIONS, SparseKernel, squared_distances
from plumbline.models.svgp.cross_covariance import JITTER


def observed_case(kernel: SparseKernel, reading: Reading = "noise-free", appended: bool = False):
    """Return a process of two queries and five maximisers, observations, what they do, and the prior covariance."""
    q, rows, points = 2, rows_of(1), uniform(1, 7, 2, seed=3)
    posteriors, parts = sight_of(rows, points, kernel), LAYOUT.parts(rows)
    queries = posteriors.part(slice(q))
    observed = imagined(queries, normal(1, 3, q, seed=4), reading)

    def k(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        r2 = squared_distances((A / parts.lengthscale)[None], (B / parts.lengthscale)[None])
        return parts.outputscale * CORRELATIONS[kernel](r2)[0][0]

    return q, points, parts, observed, mean_update(posteriors, queries, observed, reading, appended), k


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_mean_update_conditions_the_process_on_an_observation(kernel: SparseKernel, reading: Reading) -> None:
    """The normal law of all points under `q(u) = N(constant + L m, L C C' L')`, and of a value at one of them."""
    q, points, parts, observed, update, k = observed_case(kernel, reading)

    Z, X, eye = parts.inducing[0], points[0], torch.eye(LAYOUT.m, dtype=torch.float64)
    L = torch.linalg.cholesky(k(Z, Z) + JITTER * eye)
    grad_inducing = torch.linalg.solve(L @ L.mT, k(Z, X))
    C = L @ parts.factor[0].tril()
    mean = parts.constant + grad_inducing.mT @ (L @ parts.mean[0])
    covariance = k(X, X) - k(X, Z) @ grad_inducing + grad_inducing.mT @ C @ C.mT @ grad_inducing
    noise = parts.noise if reading != "noise-free" else 0.0
    drawn_with = parts.noise if reading == "noisy" else 0.0
    for j in range(q):
        weights = covariance[q:, j] / (covariance[j, j] + JITTER + noise)
        drawn = mean[j] + (covariance[j, j] + JITTER + drawn_with).sqrt() * normal(1, 3, q, seed=4)[0, :, j]
        torch.testing.assert_close(observed[0, :, j], drawn, rtol=1e-8, atol=1e-8)
        for i in range(3):
            updated = update.mean[0] + update.gain[0, :, j] * update.surprise[0, i, j]
            expected = mean[q:] + weights * (observed[0, i, j] - mean[j])
            torch.testing.assert_close(updated, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("distance", [0.0, 1e-4, 1e-3, 1e-2])
def test_a_query_near_an_inducing_point_tells_no_more_than_there_is_to_know(distance: float) -> None:
    """The mean of f at a point moves by less than f varies there; as an inducing value it would by far more."""
    rows, points = rows_of(2), uniform(2, 7, 2, seed=3)
    points[:, 0] = LAYOUT.parts(rows).inducing[:, 0] + distance
    posteriors = sight_of(rows, points, "rbf")
    queries = posteriors.part(slice(1))
    observed = imagined(queries, torch.ones(2, 1, 1).double())
    own, appended = (mean_update(posteriors, queries, observed, appended=way) for way in (False, True))
    moved, bound = (own.gain * own.surprise).abs().squeeze(-1), posteriors.sd[:, 1:]
    assert (moved <= bound).all()
    assert ((appended.gain * appended.surprise).abs().squeeze(-1) > bound).any()


@pytest.mark.parametrize("reading", READINGS)
def test_where_f_is_known_an_observation_tells_nothing(reading: Reading) -> None:
    """At an inducing point of known value the variance of f is the jitter, and the update is bounded by its root."""
    rows, points = rows_of(1), uniform(1, 7, 2, seed=3)
    parts = LAYOUT.parts(rows)
    parts.factor.zero_()
    points[:, 0] = parts.inducing[:, 0]
    posteriors = sight_of(rows, points, "rbf")
    queries = posteriors.part(slice(1))
    update = mean_update(posteriors, queries, imagined(queries, torch.ones(1, 1, 1).double(), reading), reading)
    assert (update.gain * update.surprise).abs().max() < 2 * JITTER**0.5


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_appended_observation_is_one_more_inducing_value(kernel: SparseKernel) -> None:
    """One more inducing point, whose value is known: `constant + k' K^-1 [L m; y - constant]`."""
    q, points, parts, observed, update, k = observed_case(kernel, appended=True)

    m = LAYOUT.m
    for j in range(q):
        Z = torch.cat([parts.inducing[0], points[0, j : j + 1]])
        K = k(Z, Z)
        K[:m, :m] += JITTER * torch.eye(m, dtype=torch.float64)
        inducing = torch.linalg.cholesky(K[:m, :m]) @ parts.mean[0]
        for i in range(3):
            values = torch.cat([inducing, observed[0, i, j].view(1) - parts.constant])
            expected = parts.constant + k(points[0, q:], Z) @ torch.linalg.solve(K, values)
            updated = update.mean[0] + update.gain[0, :, j] * update.surprise[0, i, j]
            torch.testing.assert_close(updated, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["appended", "doubled"])
def test_in_the_code_a_variance_below_zero_is_no_number(name: str) -> None:
    """As under a frozen factor; the other process is as it would be alone."""
    posteriors = sight_of(rows_of(2), uniform(2, 7, 2, seed=3), "rbf")
    A = posteriors.A.clone()
    A[0, :, :2] = 10.0
    utility, _ = utilities(2)[name]
    found = utility.expected_log(replace(posteriors, A=A, B=posteriors.B.clone()))
    assert torch.isnan(found.value).tolist() == [True, False]
    assert found.value[1] == utility.expected_log(posteriors).value[1]


def test_knowledge_gradient_by_hand() -> None:
    """Sample i has a maximiser of its own, and the best of the queries counts."""
    utility, _ = utilities(1)["batch-gradient"]
    assert isinstance(utility, SoftKnowledgeGradient)
    posteriors = sight_of(rows_of(1), uniform(1, 7, 2, seed=3), "rbf")
    queries = posteriors.part(slice(2))
    update = mean_update(posteriors, queries, imagined(queries, utility.base))
    updated = update.mean[0, :, None] + update.gain[0] * update.surprise[0]
    values = [max(updated[i, j].item() for j in range(2)) for i in range(5)]
    expected = softplus(torch.tensor(values).double() - utility.best).log().mean()
    assert utility.expected_log(posteriors).value.item() == pytest.approx(expected.item(), rel=1e-7)


def test_imagined_observations_are_marginal_samples_of_f() -> None:
    posteriors, base = sight_of(rows_of(2), uniform(2, 7, 2, seed=3), "rbf"), normal(2, 5, 2)
    found = imagined(posteriors.part(slice(2)), base)
    torch.testing.assert_close(found, posteriors.mean[:, None, :2] + posteriors.sd[:, None, :2] * base)


def test_doubled_noise_adds_it_to_joint_samples_and_mixes_queries() -> None:
    posteriors, base = sight_of(rows_of(2), uniform(2, 7, 2, seed=3), "rbf"), normal(2, 5, 2)
    covariance = posteriors.covariance(posteriors.prior(slice(2), slice(2)))
    torch.testing.assert_close(covariance, posteriors.covariance(posteriors.prior(EVERY, EVERY))[:, :2, :2])
    factors = torch.linalg.cholesky(covariance)
    found = imagined(posteriors.part(slice(2)), base, factor=factors)
    for b in range(2):
        L = factors[b]
        drawn = [posteriors.mean[b, :2] + L @ eps + posteriors.sd[b, :2] * eps for eps in base[b]]
        mixed = torch.cat(drawn)  # sample by sample, read as query by query
        torch.testing.assert_close(found[b, :, 0], mixed[:5])
        torch.testing.assert_close(found[b, :, 1], mixed[5:])


def test_one_query_is_not_doubled() -> None:
    utility, _ = utilities(1)["gradient"]
    assert isinstance(utility, SoftKnowledgeGradient)
    posteriors = sight_of(rows_of(1), uniform(1, 6, 2, seed=3), "rbf")
    assert torch.equal(
        replace(utility, doubled=True).expected_log(posteriors).value, utility.expected_log(posteriors).value
    )


def test_an_uncentred_update_leaves_the_prior_mean_in() -> None:
    rows = rows_of(1)
    posteriors = sight_of(rows, uniform(1, 7, 2, seed=3), "rbf")
    queries = posteriors.part(slice(2))
    observed = imagined(queries, normal(1, 5, 2))
    own, other = mean_update(posteriors, queries, observed), mean_update(posteriors, queries, observed, centred=False)
    assert torch.equal(own.mean, other.mean)
    assert torch.equal(own.gain, other.gain)
    torch.testing.assert_close(other.surprise, own.surprise + LAYOUT.parts(rows).constant)
    plain = replace(posteriors, constant=torch.zeros(1).double())
    queries = plain.part(slice(2))
    seen = imagined(queries, normal(1, 5, 2))
    own, other = mean_update(plain, queries, seen), mean_update(plain, queries, seen, centred=False)
    torch.testing.assert_close(own.surprise, other.surprise)
