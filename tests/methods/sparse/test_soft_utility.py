"""Expected log-utilities: quadrature, samples, and the derivatives that the EULBO takes."""

from dataclasses import replace

import pytest
import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from hypothesis import given
from hypothesis import strategies as st
from point_posteriors import (
    KERNELS,
    LAYOUT,
    NAMES,
    READINGS,
    expected_log,
    normal,
    rows_of,
    sight_of,
    uniform,
    utilities,
    value_of,
)
from torch.nn.functional import softplus

from plumbline.methods.sparse.reading import Reading
from plumbline.methods.sparse.soft_utility import (
    EVERY,
    ExpectedLog,
    PointPosteriors,
    SoftBatchImprovement,
    SoftImprovement,
    SoftKnowledgeGradient,
    expected_log_softplus,
    imagined,
    mean_update,
)
from plumbline.models.algebra import CORRELATIONS, SparseKernel, squared_distances
from plumbline.models.svgp.cross_covariance import JITTER
from plumbline.models.svgp.objective import forward


def scalar(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


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


@pytest.mark.parametrize("kernel", KERNELS)
def test_sight_is_the_forward_pass(kernel: SparseKernel) -> None:
    rows, points = rows_of(2), uniform(2, 4, 2, seed=3)
    posteriors, passed = sight_of(rows, points, kernel), forward(rows, LAYOUT, points, kernel)
    torch.testing.assert_close(posteriors.mean, passed.mean)
    torch.testing.assert_close(posteriors.sd.square(), passed.variance)
    covariance = posteriors.covariance(posteriors.prior(EVERY, EVERY))
    torch.testing.assert_close(covariance.diagonal(dim1=-2, dim2=-1), passed.variance)


def test_joint_samples_without_a_factor_are_no_numbers() -> None:
    utility, _ = utilities(2)["batch-improvement"]
    posteriors = sight_of(rows_of(2), uniform(2, 2, 2, seed=3), "rbf")
    A = posteriors.A.clone()
    A[0] *= 100
    found, whole = utility.expected_log(replace(posteriors, A=A)), utility.expected_log(posteriors)
    assert torch.isnan(found.value).tolist() == [True, False]
    for one, other in zip(parts_of(found), parts_of(whole), strict=True):
        assert torch.equal(one[1], other[1])


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
        K = k(Z, Z) + JITTER * torch.eye(m + 1, dtype=torch.float64)
        inducing = torch.linalg.cholesky(K[:m, :m]) @ parts.mean[0]
        for i in range(3):
            values = torch.cat([inducing, observed[0, i, j].view(1) - parts.constant])
            expected = parts.constant + k(points[0, q:], Z) @ torch.linalg.solve(K, values)
            updated = update.mean[0] + update.gain[0, :, j] * update.surprise[0, i, j]
            torch.testing.assert_close(updated, expected, rtol=1e-8, atol=1e-8)


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


def test_a_deviation_at_its_floor_has_no_slope() -> None:
    """So has a residual: both are bounded from below, and do not move with what they are bounded for."""
    posteriors = sight_of(rows_of(2), uniform(2, 7, 2, seed=3), "rbf")
    A, B = posteriors.A.clone(), posteriors.B.clone()
    A[0, :, :2], B[0, :-1, :2] = 10.0, 0.0
    for name in ("batch-gradient", "noisy-gradient", "shrunk-gradient", "appended"):
        found = utilities(2)[name][0].expected_log(replace(posteriors, A=A, B=B))
        assert (found.grad_outputscale[0], found.grad_outputscale[1] != 0) == (0, True)
    below = SoftImprovement(torch.zeros(2).double()).expected_log(replace(posteriors, A=A, B=B).part(slice(1)))
    assert (below.grad_whitened[0] == 0).all()
    assert (below.grad_whitened[1] != 0).any()


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
