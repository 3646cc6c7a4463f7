"""Conformal acquisition functions of single points in arrays, against those of batches, and abreast."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st

from plumbline.methods.conformal.acquisition import ConformalAcquisition, ConformalPosteriorOptions, Integrand
from plumbline.methods.conformal.baseline import draw_baseline
from plumbline.methods.conformal.density_ratio import RatioClassifiers, RatioOptions, fit_ratio, no_shift
from plumbline.methods.conformal.expectation import Improvement, UpperBound
from plumbline.methods.conformal.single_points import SinglePoints
from plumbline.models.algebra import Kernel
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import GP, conditioned


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(n: int, d: int, kernel: Kernel, seed: int) -> GP:
    """A process of `n` data in a box."""
    generator = stream(seed)
    bounds = torch.stack([torch.full((d,), -1.0), torch.arange(1.0, d + 1)]).double()
    X = bounds[0] + (bounds[1] - bounds[0]) * torch.rand(n, d, generator=generator, dtype=torch.float64)
    Y = torch.sin(3 * X).sum(dim=-1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    noise, lengthscale = X.new_tensor([0.02 + 0.01 * (seed % 5)]), torch.linspace(0.3, 0.9, d, dtype=torch.float64)
    return conditioned(X, Y, bounds, kernel, Hyperparameters(0.1, noise, 0.7, lengthscale))


@st.composite
def functions(draw: st.DrawFn) -> list[ConformalAcquisition]:
    """Acquisition functions of one kind, with data sets of one size, each under a classifier of its own."""
    n, d, k, seed = (
        draw(st.integers(1, 40)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 40)),
        draw(st.integers(0, 99)),
    )
    kind = draw(st.sampled_from(["improvement", "bound", "noisy improvement"]))
    kernels: list[Kernel] = ["matern12", "matern32", "matern52", "rbf"]
    kernel = draw(st.sampled_from(kernels))
    options = ConformalPosteriorOptions(
        candidates=k,
        tau=draw(st.sampled_from([1e-6, 1e-2, 0.3])),
        maximum=draw(st.sampled_from(["inside", "outside"])),
        labels_in_gradient=draw(st.sampled_from(["moving", "constant"])),
    )
    classes = RatioOptions(
        steps=draw(st.sampled_from([0, 3])), hidden=draw(st.sampled_from([1, 8])), learning_rate=0.1, ema=0.5, clip=3.0
    )
    masked = draw(st.booleans())
    note(f"{kind}, {kernel}, n = {n}, d = {d}, k = {k}, {options}, {classes}, masked = {masked}, seed = {seed}")
    found = []
    for i in range(draw(st.integers(2, 5))):
        process = made(n, d, kernel, seed + i)
        baseline = draw_baseline([process], k, stream(seed + i)) if "noisy" in kind else None
        if baseline is not None:
            best, rows = baseline.values.squeeze(-1).max(dim=-1)
            integrand = Integrand(Improvement(best), baseline=replace(baseline, incumbents=rows))
        elif kind == "improvement":
            integrand = Integrand(Improvement(torch.tensor(0.1 * i).double()))
        else:
            integrand = Integrand(UpperBound(), optimistic=True, spread=2.0 + i)
        ratio = fit_ratio(process.U, process.U / 2 + 0.4, classes, stream(seed + i))
        alpha = draw(st.sampled_from([0.05, 0.3, 0.9]))
        found.append(ConformalAcquisition([process], integrand, ratio, alpha, options, seed + i, masked))
    return found


def points(m: int, b: int, d: int) -> torch.Tensor:
    return torch.rand(m, b, d, generator=stream(m), dtype=torch.float64)


def in_arrays(acquisition: ConformalAcquisition) -> SinglePoints:
    form = acquisition.single_points()
    assert form is not None
    return form


def of_batches(acquisition: ConformalAcquisition) -> ConformalAcquisition:
    """The same function without a form in arrays; its integrand is differentiated automatically."""
    value = acquisition.integrand.value
    integrand = replace(acquisition.integrand, value=lambda f, mean: value(f, mean))
    same = ConformalAcquisition(
        acquisition.processes,
        integrand,
        acquisition.log_ratio,
        acquisition.alpha,
        acquisition.options,
        acquisition.seed,
        acquisition.masked,
    )
    assert same.single_points() is None
    return same


@settings(max_examples=25)
@given(functions())
def test_values_and_gradients_are_those_of_batches_of_one_point(cases: list[ConformalAcquisition]) -> None:
    acquisition = cases[0]
    U = points(9, 9, acquisition.processes[0].U.shape[-1])[0, :, None]
    expected, slope = of_batches(acquisition).value_and_gradient_in_cube(U)
    value, gradient = acquisition.value_and_gradient_in_cube(U)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-11)
    scale = slope.abs().max().item()
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-7 * scale + 1e-10)
    torch.testing.assert_close(acquisition.values_in_cube(U), value, rtol=1e-13, atol=1e-14)


@pytest.mark.slow
@settings(max_examples=25)
@given(functions(), st.integers(1, 9))
def test_no_digit_of_a_function_depends_on_its_company(cases: list[ConformalAcquisition], b: int) -> None:
    apart = [in_arrays(acquisition) for acquisition in cases]
    ratios = RatioClassifiers.together([one.ratios for one in apart if one.ratios is not None])
    together = replace(SinglePoints.together(apart), ratios=ratios)
    U = points(len(cases), b, cases[0].processes[0].U.shape[-1]).numpy()
    values, gradients = together.value_and_gradient(U)
    assert np.array_equal(together.values(U), np.concatenate([one.values(U[[i]]) for i, one in enumerate(apart)]))
    for i, alone in enumerate(apart):
        value, gradient = alone.value_and_gradient(U[[i]])
        assert np.array_equal(values[[i]], value)
        assert np.array_equal(gradients[[i]], gradient)


@pytest.mark.parametrize("labels", ["moving", "constant"])
@pytest.mark.parametrize("kind", ["improvement", "bound", "noisy improvement"])
def test_labels_are_constant_in_arrays_as_in_batches_of_one_point(kind: str, labels: str) -> None:
    """Values are those of moving labels, to the last bit."""
    process, k = made(12, 3, "matern52", 2), 64
    baseline = draw_baseline([process], k, stream(0))
    best, rows = baseline.values.squeeze(-1).max(dim=-1)
    integrand = {
        "improvement": Integrand(Improvement(torch.tensor(0.1).double())),
        "bound": Integrand(UpperBound(), optimistic=True, spread=2.5),
        "noisy improvement": Integrand(Improvement(best), baseline=replace(baseline, incumbents=rows)),
    }[kind]
    classes = RatioOptions(steps=40, hidden=8, learning_rate=1e-2, ema=1.0)
    ratio = fit_ratio(process.U, process.U / 2 + 0.4, classes, stream(0))
    acquisition, moving = (
        ConformalAcquisition(
            [process], integrand, ratio, 0.3, ConformalPosteriorOptions(candidates=k, labels_in_gradient=which), 1
        )
        for which in (labels, "moving")
    )
    U = points(1, 9, 3)[0, :, None]
    value, gradient = acquisition.value_and_gradient_in_cube(U)
    expected, slope = of_batches(acquisition).value_and_gradient_in_cube(U)
    torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-10 * slope.abs().max().item())
    values, full = moving.value_and_gradient_in_cube(U)
    assert torch.equal(values, value)
    assert torch.equal(full, gradient) == (labels == "moving")


def test_copies_under_other_ratios_share_their_labels() -> None:
    """Base samples take as long as five gradients."""
    process = made(5, 2, "matern52", 0)
    options = ConformalPosteriorOptions(candidates=8)
    flat = ConformalAcquisition([process], Integrand(UpperBound(), optimistic=True), no_shift, 0.3, options, 1)
    labels = in_arrays(flat).labels
    other = flat.under(fit_ratio(process.U, process.U / 2, RatioOptions(steps=9, ema=1.0), stream(0)))
    assert in_arrays(other).labels is labels
    assert in_arrays(other.unmasked()).labels is labels
    U = points(1, 4, 2)[0, :, None]
    assert not torch.equal(flat.values_in_cube(U), other.values_in_cube(U))
    assert flat.masked
    assert not in_arrays(other.unmasked()).masked


def test_of_several_outcomes_and_other_ratios_there_is_no_form_in_arrays() -> None:
    one, other = made(5, 2, "matern52", 0), made(5, 2, "matern52", 1)
    options, integrand = ConformalPosteriorOptions(candidates=8), Integrand(UpperBound())
    assert ConformalAcquisition([one, other], integrand, no_shift, 0.3, options, 1).single_points() is None
    tilted = ConformalAcquisition([one], integrand, lambda U: U[..., 0], 0.3, options, 1)
    assert tilted.single_points() is None
