"""L-BFGS-B on many functions: SciPy's ends to the last digit, whatever runs beside, and steps out of the finite."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from plumbline.core.lbfgsb import Array, Iterate, Status, minimise, parabolic

Function = Callable[[Array], tuple[Array, Array]]


def rosenbrock(X: Array) -> tuple[Array, Array]:
    head, tail = X[:, :-1], X[:, 1:]
    bend = tail - head**2
    gradient = np.zeros_like(X)
    gradient[:, :-1] = -400 * head * bend - 2 * (1 - head)
    gradient[:, 1:] += 200 * bend
    return (100 * bend**2 + (1 - head) ** 2).sum(-1), gradient


def quadratic(X: Array) -> tuple[Array, Array]:
    weights, residual = np.arange(1.0, X.shape[-1] + 1), X - np.linspace(-0.5, 1.5, X.shape[-1])
    return 0.5 * (weights * residual**2).sum(-1), weights * residual


def kinked(X: Array) -> tuple[Array, Array]:
    return np.abs(X - 0.3).sum(-1) + np.abs(X[:, 0] - X[:, -1]), np.sign(X - 0.3) + _apart(X)


def _apart(X: Array) -> Array:
    gradient = np.zeros_like(X)
    gradient[:, 0] += np.sign(X[:, 0] - X[:, -1])
    gradient[:, -1] -= np.sign(X[:, 0] - X[:, -1])
    return gradient


def plateau(X: Array) -> tuple[Array, Array]:
    inside = np.clip(0.5 - np.abs(X - 0.5), 0.25, 1.0)
    return -(inside**2).sum(-1), 2 * inside * np.sign(X - 0.5) * (inside > 0.25)


def flat(X: Array) -> tuple[Array, Array]:
    return np.full(len(X), 3.0), np.zeros_like(X)


def wavy(X: Array) -> tuple[Array, Array]:
    return (np.sin(9 * X) / 9 + X**2).sum(-1) + X.sum(-1) ** 2, np.cos(9 * X) + 2 * X + 2 * X.sum(-1, keepdims=True)


FUNCTIONS = [rosenbrock, quadratic, kinked, plateau, flat, wavy]


def starts_of(k: int) -> Array:
    """Return twelve starts, corners of the unit cube among them."""
    drawn = np.random.default_rng(k).random((9, k))
    return np.concatenate([drawn, np.zeros((1, k)), np.ones((1, k)), np.eye(1, k)])


def on(function: Function) -> Callable[[Array, list[int]], tuple[Array, Array]]:
    return lambda X, rows: function(X)


@given(powers=st.lists(st.integers(-60, 60), min_size=3, max_size=3), function=st.sampled_from(FUNCTIONS))
def test_units_change_no_digit(powers: list[int], function: Function) -> None:
    """Of variables in powers of two, each its own."""
    units = np.exp2(powers)

    def in_units(X: Array, rows: list[int]) -> tuple[Array, Array]:
        values, gradients = function(X / units)
        return values, gradients / units

    plain = minimise(on(function), starts_of(3), 0.0, 1.0)
    minima = minimise(in_units, starts_of(3) * units, 0.0, units, units)
    np.testing.assert_array_equal(minima.points / units, plain.points)
    np.testing.assert_array_equal(minima.values, plain.values)
    assert minima.status == plain.status


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-2.0, np.inf), (-np.inf, 0.4), (-np.inf, np.inf)])
def test_each_row_ends_where_scipy_ends(function: Function, k: int, lower: float, upper: float) -> None:
    if function is plateau and not np.isfinite(lower + upper):
        lower, upper = 0.1, 0.7

    def single(x: Array) -> tuple[float, Array]:
        (value,), (gradient,) = function(x[None])
        return value, gradient

    minima = minimise(on(function), starts_of(k), lower, upper)
    for row, start in enumerate(starts_of(k)):
        reference = minimize(single, start, jac=True, method="L-BFGS-B", bounds=[(lower, upper)] * k)
        np.testing.assert_array_equal(minima.points[row], reference.x)
        assert (minima.status[row] == Status.CONVERGED) == reference.success
        assert minima.values[row] == function(minima.points[row][None])[0]


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_rows_may_have_bounds_of_their_own(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    starts = generator.random((4, k))
    lower, upper = starts - generator.random((4, k)), starts + generator.random((4, k))
    lower[0], upper[1] = -np.inf, np.inf
    together = minimise(on(rosenbrock if k > 1 else quadratic), starts, lower, upper)
    for row in range(4):
        alone = minimise(on(rosenbrock if k > 1 else quadratic), starts[row : row + 1], lower[row], upper[row])
        np.testing.assert_array_equal(alone.points[0], together.points[row])
        assert ((lower[row] <= alone.points[0]) & (alone.points[0] <= upper[row])).all()


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_no_digit_of_a_row_depends_on_the_rows_beside_it(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    starts = generator.random((8, k))
    kinds = np.array(FUNCTIONS, object)[generator.integers(len(FUNCTIONS), size=8)]

    def mixed(members: Array) -> Callable[[Array, list[int]], tuple[Array, Array]]:
        def each(X: Array, rows: list[int]) -> tuple[Array, Array]:
            pairs = [kinds[members[row]](x[None]) for x, row in zip(X, rows, strict=True)]
            return np.concatenate([value for value, _ in pairs]), np.concatenate([slope for _, slope in pairs])

        return each

    together = minimise(mixed(np.arange(8)), starts, 0.0, 1.0)
    order = generator.permutation(8)
    for members in np.split(order, np.sort(generator.choice(np.arange(1, 8), 3, replace=False))):
        apart = minimise(mixed(members), starts[members], 0.0, 1.0)
        np.testing.assert_array_equal(apart.points, together.points[members])
        np.testing.assert_array_equal(apart.values, together.values[members])
        assert apart.status == [together.status[i] for i in members]


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_the_active_bounds_of_a_convex_quadratic_are_found(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    root = generator.standard_normal((k, k))
    hessian, centre = root @ root.T / k + np.eye(k), generator.uniform(-1, 2, k)

    def value_and_gradient(X: Array, rows: list[int]) -> tuple[Array, Array]:
        gradient = (X - centre) @ hessian
        return 0.5 * (gradient * (X - centre)).sum(-1), gradient

    minima = minimise(value_and_gradient, starts_of(k), 0.0, 1.0, ftol=0.0, pgtol=1e-9)
    # Values change by less than their rounding error within 1e-8 of the minimum.
    gradient = value_and_gradient(minima.points, [])[1]
    assert np.abs(gradient[(minima.points > 0) & (minima.points < 1)]).max(initial=0) < 1e-7
    assert (gradient[minima.points == 0] > -1e-7).all()
    assert (gradient[minima.points == 1] < 1e-7).all()


def test_bounds_may_differ_and_fix_a_variable() -> None:
    lower, upper = np.array([-np.inf, 0.25, -1.0, 0.0]), np.array([-0.6, 0.25, np.inf, 1.0])
    minima = minimise(on(quadratic), np.full((3, 4), 7.0), lower, upper, pgtol=1e-10, ftol=0.0)
    best = np.linspace(-0.5, 1.5, 4).clip(lower, upper)
    np.testing.assert_allclose(minima.points, np.tile(best, (3, 1)), rtol=0, atol=1e-8)
    assert np.array_equal(minima.points[:, 1], [0.25] * 3)


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_steps_into_a_region_without_values_are_shortened(hole: float) -> None:
    """Minus the logarithm of the distance from a wall: a long step goes through it."""

    def barrier(X: Array, rows: list[int]) -> tuple[Array, Array]:
        room = 1 - X.sum(-1)
        beyond = room <= 0
        room[beyond] = 1.0
        value = 50 * ((X - 1) ** 2).sum(-1) - 1e-3 * np.log(room)
        gradient = 100 * (X - 1) + 1e-3 / room[:, None]
        return np.where(beyond, hole, value), np.where(beyond[:, None], np.nan, gradient)

    starts = np.random.default_rng(0).random((10, 2)) / 2
    minima = minimise(barrier, starts, 0.0, 1.0)
    assert set(minima.status) == {Status.CONVERGED}
    np.testing.assert_allclose(minima.points, 0.5, atol=1e-4)
    plain = minimise(on(quadratic), starts, 0.0, 1.0)

    def beside(X: Array, rows: list[int]) -> tuple[Array, Array]:
        odd = np.array(rows) % 2 == 1
        (value, gradient), (other, slope) = barrier(X, rows), quadratic(X)
        return np.where(odd, other, value), np.where(odd[:, None], slope, gradient)

    np.testing.assert_array_equal(minimise(beside, starts, 0.0, 1.0).points[1::2], plain.points[1::2])


def test_a_nonfinite_gradient_counts_as_a_nonfinite_value() -> None:
    def value_and_gradient(X: Array, rows: list[int]) -> tuple[Array, Array]:
        value, gradient = rosenbrock(X)
        return value, np.where(X > 1.2, np.nan, gradient)

    minima = minimise(value_and_gradient, np.array([[-1.2, 1.0], [0.0, 0.0]]), -2.0, 2.0)
    np.testing.assert_allclose(minima.points, 1.0, atol=1e-4)


def test_the_substitute_is_a_parabola_with_its_minimum_at_a_quarter_of_the_step() -> None:
    reached = Iterate(np.array([1.0, 2.0]), 5.0, np.array([-2.0, 1.0]))
    step = np.array([3.0, -1.0])
    substitute = parabolic(reached, reached.point + step)
    slope = reached.gradient @ step
    curvature = substitute.gradient @ step - slope
    assert substitute.value == pytest.approx(reached.value + slope + curvature / 2)
    assert -slope / curvature == pytest.approx(0.25)


def test_a_start_without_a_value_fails_alone() -> None:
    def value_and_gradient(X: Array, rows: list[int]) -> tuple[Array, Array]:
        value, gradient = quadratic(X)
        return np.where(np.array(rows) == 1, np.nan, value), gradient

    minima = minimise(value_and_gradient, starts_of(3)[:3], 0.0, 1.0)
    assert minima.status == [Status.CONVERGED, Status.FAILED, Status.CONVERGED]
    np.testing.assert_array_equal(minima.points[1], starts_of(3)[1])
    assert np.isnan(minima.values[1])


def test_a_line_search_that_fails_ends_at_its_last_iterate() -> None:
    """A gradient with the wrong sign: no step along it lowers the value."""

    def uphill(X: Array, rows: list[int]) -> tuple[Array, Array]:
        value, gradient = quadratic(X)
        return value, -gradient

    minima = minimise(uphill, np.full((2, 3), 0.4), -9.0, 9.0)
    assert minima.status == [Status.FAILED] * 2
    np.testing.assert_array_equal(minima.points, np.full((2, 3), 0.4))
    np.testing.assert_array_equal(minima.values, quadratic(minima.points)[0])


@pytest.mark.parametrize("maxiter", [1, 3])
def test_rows_stop_at_the_greatest_number_of_iterations(maxiter: int) -> None:
    minima = minimise(on(rosenbrock), np.array([[-1.2, 1.0], [1.0, 1.0]]), -2.0, 2.0, maxiter=maxiter)
    reference = minimize(
        lambda x: [part[0] for part in rosenbrock(x[None])],
        [-1.2, 1.0],
        jac=True,
        method="L-BFGS-B",
        bounds=[(-2, 2)] * 2,
        options={"maxiter": maxiter},
    )
    assert minima.status == [Status.STOPPED, Status.CONVERGED]
    np.testing.assert_array_equal(minima.points[0], reference.x)


def test_only_rows_that_go_on_are_evaluated_and_nothing_of_the_callers_is_changed() -> None:
    starts, kept = starts_of(4), []

    def value_and_gradient(X: Array, rows: list[int]) -> tuple[Array, Array]:
        value, gradient = rosenbrock(X)
        kept.append((list(rows), X, X.copy(), gradient, gradient.copy()))
        return value, gradient

    minimise(value_and_gradient, starts, 0.0, 1.0)
    np.testing.assert_array_equal(starts, starts_of(4))
    sizes = [len(rows) for rows, *_ in kept]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] == len(starts)
    for rows, X, was, gradient, slope in kept:
        assert X.shape == (len(rows), 4)
        np.testing.assert_array_equal(X, was)
        np.testing.assert_array_equal(gradient, slope)


def test_a_lower_bound_above_the_upper_one_is_refused() -> None:
    with pytest.raises(ValueError, match="a lower bound is above the upper one"):
        minimise(on(quadratic), np.zeros((2, 2)), np.array([0.0, 1.0]), np.array([1.0, 0.5]))


def test_no_rows_have_no_minima() -> None:
    minima = minimise(on(quadratic), np.zeros((0, 3)), 0.0, 1.0)
    assert minima.points.shape == (0, 3)
    assert minima.status == []
