"""Conformal acquisitions against CBO's equation 7 computed label by label, by refits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pytest
import torch
from botorch.acquisition import ExpectedImprovement
from hypothesis import given, note, settings
from hypothesis import strategies as st
from ratio_cases import differentiable
from torch import Tensor
from torch.nn.functional import logsigmoid

from plumbline.acquisition.hypervolume.improvement import hypervolume_improvement
from plumbline.core.errors import PlumblineError
from plumbline.methods.conformal.acquisition import ConformalAcquisition, ConformalPosteriorOptions, Integrand
from plumbline.methods.conformal.augmented import Augmented, augment
from plumbline.methods.conformal.baseline import draw_baseline
from plumbline.methods.conformal.density_ratio import RatioClassifier, RatioOptions, fit_ratio, no_shift
from plumbline.methods.conformal.expectation import Improvement, UpperBound
from plumbline.methods.conformal.masses import conformity_mass, importance_weights
from plumbline.methods.conformal.scores import powers, quadratics
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def processes(process: GP, bounds: Tensor) -> list[GP]:
    """Two outcomes on the same points."""
    U = process.U
    X = bounds[0] + (bounds[1] - bounds[0]) * U
    at = Hyperparameters(0.0, U.new_tensor([0.05]), 0.7, U.new_tensor([0.3]))
    return [process, conditioned(X, 3 * torch.cos(5 * U[:, :1]) - U[:, 1:], bounds, "matern52", at)]


def batches(bounds: Tensor, b: int, q: int, seed: int = 4) -> Tensor:
    return bounds[0] + (bounds[1] - bounds[0]) * torch.rand(b, q, 2, generator=stream(seed), dtype=torch.float64)


def smooth(f: Tensor, mean: Tensor) -> Tensor:
    """Some utility of batches: whatever is reparameterised will do."""
    return torch.tanh(f).sum(dim=(-2, -1)) + (f - mean).square().mean(dim=(-2, -1))


def gain(f: Tensor, mean: Tensor) -> Tensor:
    return (f.amax(dim=(-2, -1)) - 0.3).clamp_min(0.0)


def tilted(U: Tensor) -> Tensor:
    """A log density ratio that is not flat."""
    return 1.5 * U[..., 0] - U[..., 1].square()


def acquire(
    processes: Sequence[GP],
    utility: Integrand,
    ratio: Callable[[Tensor], Tensor] = tilted,
    **options: float | str,
) -> ConformalAcquisition:
    alpha = options.pop("alpha", 0.3)
    given = ConformalPosteriorOptions(**{"candidates": 32, "tau": 0.05, **options})
    return ConformalAcquisition(processes, utility, ratio, alpha, given, seed=7)


def joint(process: GP, U: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f at the data and at `U`, given the data and, where there are any, labels at `U`."""
    inputs = torch.cat([process.U, U])
    n = len(inputs) if labels is not None else len(inputs) - len(U)
    y = process.y if labels is None else torch.cat([process.y, labels])
    mean, K = torch.full((len(inputs),), process.at.constant, dtype=torch.float64), process.prior(inputs, inputs)
    gains = K[:, :n] @ torch.linalg.inv(K[:n, :n] + process.noise * torch.eye(n, dtype=K.dtype))
    return mean + gains @ (y - mean[:n]), K - gains @ K[:n]


def by_the_letter(acquisition: ConformalAcquisition, X: Tensor) -> Tensor:
    """CBO, equation 7, section B.3 and B.7, one label after another."""
    processes = acquisition.processes
    alpha, tau, utility = acquisition.alpha, acquisition.options.tau, acquisition.integrand
    outside = acquisition.options.maximum == "outside"
    values = []
    for x in X:
        U = processes[0].standardisation.inputs(x)
        q, n = len(U), len(processes[0].y)
        for_label, for_f = acquisition.base_samples(q)
        ratio = acquisition.log_ratio(torch.cat([processes[0].U, U])).exp()
        w = torch.stack([torch.cat([ratio[:n], ratio[n + i : n + i + 1]]) for i in range(q)])
        w = w / w.sum(dim=-1, keepdim=True)
        posterior = [joint(process, U) for process in processes]
        means = torch.stack([mean[n:] for mean, _ in posterior], dim=-1)
        accepted, densities, worths = [], [], []
        for j in range(len(for_label)):
            scores, draws, density = torch.zeros(n + q, dtype=torch.float64), [], 1.0
            for i, process in enumerate(processes):
                predictive = posterior[i][1][n:, n:] + process.noise * torch.eye(q, dtype=torch.float64)
                label = means[:, i] + torch.linalg.cholesky(predictive) @ for_label[j, :, i]
                if utility.optimistic:
                    label = means[:, i] + (label - means[:, i]).abs()
                away = label - means[:, i]
                density = density * math.exp(-0.5 * float(away @ torch.linalg.solve(predictive, away)))
                mean, covariance = joint(process, U, label)
                sd = (covariance.diagonal() + process.noise).sqrt()
                scores = scores + torch.distributions.Normal(mean, sd).log_prob(torch.cat([process.y, label]))
                root = torch.linalg.cholesky(covariance[n:, n:])
                draws.append(mean[n:] + utility.spread * root @ for_f[j, :, i])
            conform = torch.sigmoid((scores[n:, None] - scores[:n]) / tau)
            masks = torch.sigmoid(((w[:, :n] * conform).sum(dim=-1) + w[:, n] - alpha) / tau)
            densities.append(density)
            f = torch.stack(draws, dim=-1)
            # A batch as a whole, or each of its points alone.
            groups = [[i] for i in range(q)] if outside else [list(range(q))]
            accepted.append([masks[group].prod() for group in groups])
            worths.append([utility.value(f[group][None, None], means[group][None, None]).squeeze() for group in groups])
        expected = []
        for group, mask, worth in zip(groups, zip(*accepted, strict=True), zip(*worths, strict=True), strict=True):
            m, u = torch.stack(mask), torch.stack(worth)
            v = m / torch.tensor(densities)
            out = 1 - m
            value = (1 - alpha) * u @ v / v.sum() + alpha * u @ out / out.sum()
            expected.append(value * torch.sigmoid((alpha - w[group, n]) / tau).prod())
        values.append(torch.stack(expected).max())
    return torch.stack(values)


@pytest.mark.parametrize("maximum", ["inside", "outside"])
@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("m", [1, 2])
def test_the_value_is_equation_7(
    m: int, q: int, optimistic: bool, maximum: str, processes: list[GP], bounds: Tensor
) -> None:
    utility = Integrand(smooth, optimistic=optimistic, spread=1.7 if optimistic else 1.0)
    acquisition = acquire(processes[:m], utility, maximum=maximum)
    X = batches(bounds, 3, q)
    with torch.no_grad():
        torch.testing.assert_close(acquisition(X), by_the_letter(acquisition, X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.15, 0.6, 0.9])
def test_the_value_is_equation_7_at_every_level(alpha: float, process: GP, bounds: Tensor) -> None:
    acquisition = acquire([process], Integrand(gain), alpha=alpha, tau=0.2)
    X = batches(bounds, 4, 1)
    with torch.no_grad():
        torch.testing.assert_close(acquisition(X), by_the_letter(acquisition, X), rtol=1e-6, atol=1e-8)


def test_at_level_one_without_a_mask_it_is_plain_expected_improvement(process: GP, points: Tensor) -> None:
    """With tau so great all labels are half accepted, and those outside of the set are draws of the posterior."""
    best, tau, alpha = 0.2, 1e4, 1 - 1e-9
    improve = Integrand(lambda f, mean: (f.squeeze(-1).amax(dim=-1) - best).clamp_min(0.0))
    acquisition = acquire([process], improve, no_shift, alpha=alpha, tau=tau, candidates=8192)
    scale, shift = process.standardisation.scale, process.standardisation.location
    with torch.no_grad():
        found = acquisition(points) / torch.sigmoid(torch.tensor((alpha - 1 / 8) / tau))
        expected = ExpectedImprovement(process.model, best_f=best * scale + shift)(points) / scale
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=1e-3)


def test_at_a_small_level_all_labels_inside_the_set_weigh_alike(process: GP, points: Tensor) -> None:
    """Flat on the set, labels lie further from the mean than under the Gaussian restricted to it."""
    spread = Integrand(lambda f, mean: (f - mean).abs().squeeze(-1).amax(dim=-1))
    flat = acquire([process], spread, no_shift, alpha=0.2, tau=1e-3, candidates=4096)
    with torch.no_grad():
        U = process.standardisation.inputs(points)
        systems = [augment(flat.processes[0], U)]
        draws = flat.draw(systems)
        mass = conformity_mass(quadratics(systems), flat.weights(U), draws.z, flat.options.tau)
        inside = (mass > flat.alpha).squeeze(1)
        worth = spread.value(draws.f, systems[0].mean[:, None, :, None])
        gaussian = (worth * inside).sum(dim=-1) / inside.sum(dim=-1)
    assert (flat(points) > gaussian).all()


def test_outside_the_maximum_is_less_and_for_one_point_the_same(process: GP, bounds: Tensor) -> None:
    inside, outside = (acquire([process], Integrand(gain), no_shift, maximum=where) for where in ("inside", "outside"))
    alone, three = batches(bounds, 4, 1), batches(bounds, 4, 3)
    with torch.no_grad():
        torch.testing.assert_close(inside(alone), outside(alone), rtol=1e-14, atol=0)
        assert (outside(three) < inside(three)).any()
        assert not torch.allclose(outside(three), inside(three))


def automatic(acquisition: ConformalAcquisition, U: Tensor) -> tuple[Tensor, Tensor]:
    """Values and gradients by automatic differentiation of equation 7 as it is written."""
    U = U.clone().requires_grad_()
    systems = [augment(process, U) for process in acquisition.processes]
    draws = acquisition.draw(systems)
    z = draws.z.expand(len(U), -1, -1, -1)
    log_density = -0.5 * z.square().sum(dim=(-2, -1))
    value = as_written(acquisition, U, systems, z, draws.f, log_density, acquisition.integrand.value)
    (gradient,) = torch.autograd.grad(value.sum(), U)
    return value.detach(), gradient


def as_written(
    acquisition: ConformalAcquisition,
    U: Tensor,
    systems: Sequence[Augmented],
    z: Tensor,
    f: Tensor,
    log_density: Tensor,
    utility: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Equation 7 for whitened labels and draws of f, `b x k x q x m`, and the log density of labels, `b x k`."""
    alpha, tau, data = acquisition.alpha, acquisition.options.tau, acquisition.processes[0].U
    mean = torch.stack([system.mean for system in systems], dim=-1).unsqueeze(1)
    ratio = acquisition.log_ratio
    log_ratio = partial(differentiable, ratio) if isinstance(ratio, RatioClassifier) else ratio
    weights = importance_weights(log_ratio(data), log_ratio(U))
    conforms = torch.sigmoid(quadratics(systems) / tau @ powers(z).mT.unsqueeze(1))
    mass = (weights[..., None, :-1] @ conforms).squeeze(-2) + weights[..., -1:]
    logits, bounded = (mass - alpha) / tau, torch.sigmoid((alpha - weights[..., -1]) / tau)

    def integrated(worth: Tensor, logits: Tensor) -> Tensor:
        inside = logsigmoid(logits).sum(dim=1)
        alone = logits.shape[1] == 1
        outside = logsigmoid(-logits).squeeze(1) if alone else torch.log(-torch.expm1(inside.clamp_max(-1e-12)))
        v = torch.softmax(inside - log_density, dim=-1)
        return (((1 - alpha) * v + alpha * torch.softmax(outside, dim=-1)) * worth).sum(dim=-1)

    if acquisition.options.maximum == "inside":
        return integrated(utility(f, mean), logits) * bounded.prod(dim=-1)
    points = [slice(i, i + 1) for i in range(U.shape[1])]
    worths = [utility(f[:, :, i], mean[:, :, i]) for i in points]
    each = [integrated(worth, logits[:, i]) for worth, i in zip(worths, points, strict=True)]
    return (torch.stack(each, dim=-1) * bounded).amax(dim=-1)


def fitted(n: int, d: int, kernel: Literal["matern52", "rbf"], seed: int) -> GP:
    """A process of `n` data in the unit cube of dimension `d`."""
    X = torch.rand(n, d, generator=stream(seed), dtype=torch.float64)
    Y = torch.sin(4 * X).sum(dim=-1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=stream(seed)).double()
    cube = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    lengthscale = torch.linspace(0.4, 0.8, d, dtype=torch.float64)
    return conditioned(X, Y, cube, kernel, Hyperparameters(0.0, X.new_tensor([0.03]), 0.7, lengthscale))


@st.composite
def acquisitions(draw: st.DrawFn) -> tuple[ConformalAcquisition, Tensor]:
    """An acquisition of any kind, and points of the unit cube."""
    n, d, q, seed = draw(st.integers(2, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(0, 99))
    kind = draw(st.sampled_from(["improvement", "bound", "smooth", "volume", "noisy improvement", "noisy volume"]))
    # Without noise a smooth kernel's matrix has too few digits left for 1e-7, however it is differentiated.
    kernel = draw(st.sampled_from(["matern52"] if "noisy" in kind else ["matern52", "rbf"]))
    outcomes = 2 if "volume" in kind else 1
    processes = [fitted(n, d, kernel, seed + i) for i in range(outcomes)]
    k = 16
    baseline = draw_baseline(processes, k, stream(seed)) if "noisy" in kind else None
    cells = (torch.tensor([[-1.0, -1.0], [0.2, -1.0]]).double(), torch.tensor([[0.2, 1.0], [2.0, 2.0]]).double())
    if "volume" in kind:
        utility = Integrand(lambda f, mean: hypervolume_improvement(f, *cells), baseline=baseline)
    elif baseline is not None:
        utility = Integrand(Improvement(baseline.values.squeeze(-1).amax(dim=-1)), baseline=baseline)
    elif kind == "improvement":
        utility = Integrand(Improvement(torch.tensor(-0.5).double()))
    elif kind == "bound":
        utility = Integrand(UpperBound(), optimistic=True, spread=2.5)
    else:
        utility = Integrand(smooth, optimistic=draw(st.booleans()))
    clip = draw(st.sampled_from([1.3, 1e3]))
    data = processes[0].U
    classes = RatioOptions(steps=20, hidden=8, learning_rate=3e-2, ema=1.0, clip=clip)
    ratio = fit_ratio(data, data / 2 + 0.4, classes, stream(seed))
    tau, maximum = draw(st.sampled_from([1e-2, 0.1, 0.5])), draw(st.sampled_from(["inside", "outside"]))
    options = ConformalPosteriorOptions(candidates=k, tau=tau, maximum=maximum)
    alpha = draw(st.sampled_from([0.1, 0.35, 0.8]))
    U = torch.rand(3, q, d, generator=stream(seed + 50), dtype=torch.float64)
    note(
        f"{kind}, {kernel}, n = {n}, q = {q}, clip = {clip}, tau = {options.tau}, {maximum}, alpha = {alpha}, "
        f"seed = {seed}"
    )
    return ConformalAcquisition(processes, utility, ratio, alpha, options, seed), U


@pytest.mark.slow
@settings(max_examples=60)
@given(acquisitions())
def test_values_and_gradients_are_those_of_automatic_differentiation(case: tuple[ConformalAcquisition, Tensor]) -> None:
    acquisition, U = case
    value, gradient = acquisition.value_and_gradient_in_cube(U)
    expected, slope = automatic(acquisition, U)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-7 * slope.abs().max().item() + 1e-11)
    assert torch.equal(value, acquisition.values_in_cube(U))


@pytest.mark.slow
@settings(max_examples=25)
@given(acquisitions())
def test_gradients_are_slopes(case: tuple[ConformalAcquisition, Tensor]) -> None:
    """Central differences along a direction; kinks of improvements may lie between."""
    acquisition, U = case
    direction = torch.rand(U.shape, generator=stream(1), dtype=torch.float64) - 0.5
    step = 1e-6
    change = (acquisition.values_in_cube(U + step * direction) - acquisition.values_in_cube(U - step * direction)) / (
        2 * step
    )
    value, gradient = acquisition.value_and_gradient_in_cube(U)
    slope = (gradient * direction).sum(dim=(-2, -1))
    torch.testing.assert_close(slope, change, rtol=1e-3, atol=1e-4 * max(1.0, value.abs().max().item()))


def test_what_is_returned_may_be_differentiated_further(process: GP, bounds: Tensor) -> None:
    acquisition = acquire([process], Integrand(smooth))
    X = batches(bounds, 3, 1).requires_grad_()
    (through,) = torch.autograd.grad((2 * acquisition(X)).exp().sum(), X)
    with torch.no_grad():
        value, gradient = acquisition.value_and_gradient_in_cube(process.standardisation.inputs(X))
    scale = (bounds[1] - bounds[0]).reciprocal()
    torch.testing.assert_close(through, 2 * (2 * value).exp()[:, None, None] * gradient * scale)
    assert not acquisition.values_in_cube(process.standardisation.inputs(X)).is_inference()


@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_right(q: int, process: GP, bounds: Tensor) -> None:
    acquisition = acquire([process], Integrand(smooth), candidates=8)
    assert torch.autograd.gradcheck(acquisition, batches(bounds, 2, q).requires_grad_(), atol=1e-5)


@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_right_with_a_classifier(q: int, process: GP, bounds: Tensor) -> None:
    U = process.U
    ratio = fit_ratio(U, U / 2 + 0.4, RatioOptions(steps=40, learning_rate=1e-2, ema=1.0), stream())
    acquisition = acquire([process], Integrand(smooth, optimistic=True), ratio, candidates=8)
    X = batches(bounds, 2, q).requires_grad_()
    assert torch.autograd.gradcheck(acquisition, X, atol=1e-5)
    flat = acquire([process], Integrand(smooth, optimistic=True), no_shift, candidates=8)
    assert not torch.allclose(acquisition(X), flat(X)), "the ratio must matter"


@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_right_with_baseline_draws(q: int, processes: list[GP], bounds: Tensor) -> None:
    baseline = draw_baseline(processes, 8, stream())
    utility = Integrand(lambda f, mean: torch.tanh(f).sum(dim=(-2, -1)), baseline=baseline)
    acquisition = acquire(processes, utility, candidates=8)
    assert torch.autograd.gradcheck(acquisition, batches(bounds, 2, q).requires_grad_(), atol=1e-5)


def test_below_one_in_n_plus_one_nothing_is_worth_anything(process: GP, bounds: Tensor) -> None:
    positive = Integrand(lambda f, mean: torch.ones_like(f[..., 0, 0]))
    X = batches(bounds, 20, 1)
    with torch.no_grad():
        low = acquire([process], positive, no_shift, alpha=0.5 / 8, tau=1e-3)(X)
        high = acquire([process], positive, no_shift, alpha=2 / 8, tau=1e-3)(X)
    assert low.abs().max() < 1e-6
    torch.testing.assert_close(high, torch.ones_like(high), rtol=0, atol=1e-6)


def test_out_of_distribution_is_where_the_points_own_weight_exceeds_alpha(process: GP, bounds: Tensor) -> None:
    positive = Integrand(lambda f, mean: torch.ones_like(f[..., 0, 0]))
    acquisition = acquire([process], positive, lambda U: 8 * U[..., 0], alpha=0.3, tau=1e-4)
    X = batches(bounds, 40, 1)
    with torch.no_grad():
        own = acquisition.weights(process.standardisation.inputs(X))[..., 0, -1]
        found = acquisition(X)
    assert torch.equal(found.round(), (own < 0.3).double())
    assert 0 < found.mean() < 1


@pytest.mark.parametrize("q", [1, 3])
def test_the_value_depends_on_nothing_but_points_and_seed(q: int, process: GP, bounds: Tensor) -> None:
    X = batches(bounds, 3, q)
    with torch.no_grad():
        first = acquire([process], Integrand(smooth))
        value = first(X)
        torch.rand(5)
        assert torch.equal(first(X), value)
        assert torch.equal(acquire([process], Integrand(smooth))(X), value)
        torch.testing.assert_close(first(X[1:2]), value[1:2], rtol=1e-9, atol=1e-12)
        given = ConformalPosteriorOptions(candidates=32, tau=0.05)
        other = ConformalAcquisition([process], Integrand(smooth), tilted, 0.3, given, seed=8)
        assert not torch.allclose(other(X), value)


def test_pending_points_belong_to_the_batch(process: GP, bounds: Tensor) -> None:
    X = batches(bounds, 4, 2)
    acquisition = acquire([process], Integrand(smooth))
    with torch.no_grad():
        whole = acquisition(X[:1])
        alone = acquisition(X[:1, :1])
        acquisition.set_X_pending(X[0, 1:])
        torch.testing.assert_close(acquisition(X[:1, :1]), whole)
        acquisition.set_X_pending(None)
        torch.testing.assert_close(acquisition(X[:1, :1]), alone)


def test_optimistic_labels_are_above_their_means(process: GP, bounds: Tensor) -> None:
    acquisition = acquire([process], Integrand(smooth, optimistic=True))
    for q in (1, 3):
        U = process.standardisation.inputs(batches(bounds, 2, q))
        systems = [augment(acquisition.processes[0], U)]
        z = acquisition.draw(systems).z
        assert (z.squeeze(-1) @ systems[0].root.mT >= -1e-12).all()


def test_values_stay_finite_where_all_or_no_labels_are_accepted(process: GP, bounds: Tensor) -> None:
    """Also at the data themselves, and with a relaxation so sharp that no log of a mask is finite without care."""
    data = bounds[0] + (bounds[1] - bounds[0]) * process.U[:2]
    for q in (1, 2):
        X = torch.cat([batches(bounds, 3, q), data[None, :q]]).requires_grad_()
        for alpha in (1e-3, 0.5, 0.999):
            value = acquire([process], Integrand(smooth), no_shift, alpha=alpha, tau=1e-6)(X)
            (gradient,) = torch.autograd.grad(value.sum(), X)
            assert torch.isfinite(value).all()
            assert torch.isfinite(gradient).all()


def at_constant_labels(
    acquisition: ConformalAcquisition, U: Tensor, rows: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """Return equation 7 as a function of points near `U`, with the labels that the acquisition function has at `U`.

    Labels are whitened anew at other points, and their densities are constants. Draws of f at the data and at the
    points move by Matheron's rule, so that f and noise still add up to the labels; the incumbents are those of `rows`.
    """
    utility, q = acquisition.integrand, U.shape[1]
    systems = [augment(process, U) for process in acquisition.processes]
    z = acquisition.draw(systems).z.expand(len(U), -1, -1, -1)
    labels = [system.mean[:, None] + z[..., i] @ system.root.mT for i, system in enumerate(systems)]
    log_density = -0.5 * z.square().sum(dim=(-2, -1))

    def value(V: Tensor) -> Tensor:
        systems = [augment(process, V) for process in acquisition.processes]
        pairs = list(zip(labels, systems, strict=True))
        z = torch.stack([(y - system.mean[:, None]) @ system.dual_root for y, system in pairs], dim=-1)
        if utility.baseline is not None:
            f, best = moved(acquisition, V, labels[0], rows)
            return as_written(
                acquisition, V, systems, z, f, log_density, lambda f, mean: (f.amax((-2, -1)) - best).clamp_min(0.0)
            )
        for_f = utility.spread * acquisition.base_samples(q)[1]
        f = [s.function_mean(z[..., i]) + for_f[..., i] @ s.function_root().mT for i, s in enumerate(systems)]
        return as_written(acquisition, V, systems, z, torch.stack(f, dim=-1), log_density, utility.value)

    return value


def moved(acquisition: ConformalAcquisition, U: Tensor, labels: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return draws of f at points, `b x k x q x 1`, and their incumbents, `b x k`, conditioned on labels."""
    process, baseline = acquisition.processes[0], acquisition.integrand.baseline
    assert baseline is not None
    system, n = augment(process, U), len(process.y)
    draws = acquisition.draw([system])
    change = labels - (system.mean[:, None] + draws.z[..., 0] @ system.root.mT)
    moves = []
    for dy, points in zip(change, U, strict=True):
        _, covariance = joint(process, points)
        of_labels = covariance[n:, n:] + process.noise * torch.eye(len(points), dtype=torch.float64)
        moves.append(dy @ torch.linalg.solve(of_labels, covariance[n:]))
    at_data, at_points = torch.stack(moves).tensor_split([n], dim=-1)
    values = baseline.values[..., 0] + at_data
    return draws.f + at_points.unsqueeze(-1), (values if rows is None else values[..., rows]).amax(dim=-1)


def of_kind(
    kind: str, process: GP, rows: Tensor | None = None, ratio: Callable[[Tensor], Tensor] = no_shift, **options: Any
) -> ConformalAcquisition:
    """An acquisition function of the published code, of single outcomes; its noisy incumbents are those of `rows`."""
    k = options.setdefault("candidates", 32)
    if kind == "cei":
        utility = Integrand(Improvement(torch.tensor(0.2).double()))
    elif kind == "cucb":
        utility = Integrand(UpperBound(), optimistic=True, spread=2.5)
    else:
        baseline = draw_baseline([process], k, stream(3))
        rows = torch.arange(len(process.y)) if rows is None else rows
        best, where = baseline.values[:, rows, 0].max(dim=-1)
        utility = Integrand(Improvement(best), baseline=replace(baseline, incumbents=rows[where]))
    return acquire([process], utility, ratio, **options)


def learned(process: GP) -> RatioClassifier:
    return fit_ratio(
        process.U, process.U / 2 + 0.4, RatioOptions(steps=40, hidden=8, learning_rate=1e-2, ema=1.0), stream()
    )


def slopes(value: Callable[[Tensor], Tensor], U: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences in each coordinate of `b x q x d` points."""
    found = torch.zeros_like(U)
    for i in range(U.shape[1]):
        for j in range(U.shape[2]):
            to = torch.zeros_like(U)
            to[:, i, j] = step
            found[:, i, j] = (value(U + to) - value(U - to)) / (2 * step)
    return found


KINDS = ["cei", "cnei", "cucb"]


@pytest.mark.parametrize("ratio", ["flat", "learned"])
@pytest.mark.parametrize("maximum", ["inside", "outside"])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_at_constant_labels_are_slopes_at_constant_labels(
    kind: str, q: int, maximum: str, ratio: str
) -> None:
    process = fitted(9, 2, "matern52", 1)
    options = {"ratio": learned(process) if ratio == "learned" else no_shift, "maximum": maximum}
    moving, constant = (of_kind(kind, process, labels_in_gradient=which, **options) for which in ("moving", "constant"))
    U = torch.rand(4, q, 2, generator=stream(9), dtype=torch.float64)
    (value, gradient), (other, full) = (one.value_and_gradient_in_cube(U) for one in (constant, moving))
    near = at_constant_labels(constant, U)
    assert torch.equal(value, other)
    torch.testing.assert_close(near(U), value, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(gradient, slopes(near, U), rtol=1e-5, atol=1e-6)
    assert (gradient - full).norm() > 0.1 * full.norm()


def test_constant_labels_know_the_rows_of_their_incumbents() -> None:
    process, rows = fitted(9, 2, "matern52", 1), torch.tensor([7, 2, 4])
    acquisition = of_kind("cnei", process, rows, labels_in_gradient="constant")
    for q in (1, 2):
        U = torch.rand(4, q, 2, generator=stream(9), dtype=torch.float64)
        expected = slopes(at_constant_labels(acquisition, U, rows), U)
        torch.testing.assert_close(acquisition.value_and_gradient_in_cube(U)[1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("q", [1, 2])
def test_labels_of_several_outcomes_are_constant_each(q: int, optimistic: bool, processes: list[GP]) -> None:
    utility = Integrand(smooth, optimistic=optimistic)
    acquisition = acquire(processes, utility, learned(processes[0]), labels_in_gradient="constant")
    U = torch.rand(3, q, 2, generator=stream(9), dtype=torch.float64)
    value, gradient = acquisition.value_and_gradient_in_cube(U)
    near = at_constant_labels(acquisition, U)
    torch.testing.assert_close(near(U), value, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(gradient, slopes(near, U), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_with_little_noise_constant_labels_leave_little_gradient(kind: str, q: int) -> None:
    """Labels then say what f is, and hardly anything but their acceptance changes with the points."""
    process = fitted(9, 2, "matern52", 1)
    cube, at = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double(), process.at._replace(noise=torch.tensor([1e-6]).double())
    quiet = conditioned(process.U, process.y[:, None], cube, "matern52", at)
    U = torch.rand(8, q, 2, generator=stream(9), dtype=torch.float64)
    constant, moving = (
        of_kind(kind, quiet, labels_in_gradient=which, tau=0.1).value_and_gradient_in_cube(U)[1].norm()
        for which in ("constant", "moving")
    )
    assert 0 < constant < 0.1 * moving


def test_constant_labels_are_refused_where_draws_at_the_data_have_no_incumbents(process: GP) -> None:
    baseline = draw_baseline([process], 32, stream())
    acquire([process], Integrand(gain, baseline=baseline))
    with pytest.raises(PlumblineError, match="needs the incumbents"):
        acquire([process], Integrand(gain, baseline=baseline), labels_in_gradient="constant")
