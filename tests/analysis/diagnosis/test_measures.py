"""Forecasts drawn from known truths: right ones are seldom found at fault, wrong ones for what is wrong with them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from plumbline.analysis.diagnosis.forecasts import Forecasts
from plumbline.analysis.diagnosis.measures import BIAS, DENSITY, GROWTH, SHAPE, SHIFT, SPREAD, Measure, beside, judged
from plumbline.analysis.diagnosis.verdict import faults

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


def forecasts(z: Array, rng: np.random.Generator, **inputs: Array) -> Forecasts:
    """Forecasts of any means and standard deviations whose errors are z of these."""
    mean, sd = 5 * rng.standard_normal(len(z)), np.exp(rng.standard_normal(len(z)))
    return Forecasts(mean + sd * z, mean, sd, np.arange(len(z), dtype=float), inputs)


def found_faults(draw: Draw, n: int, number: int = 0) -> list[str]:
    rng = np.random.default_rng(number)
    return [words.split(":")[0] for words in faults(judged(forecasts(draw(rng, n), rng, x1=rng.random(n))))]


def right(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal(n)


WRONG: dict[str, Draw] = {
    "over-confident": lambda rng, n: 2.0 * rng.standard_normal(n),
    "under-confident": lambda rng, n: 0.5 * rng.standard_normal(n),
    "biased": lambda rng, n: rng.standard_normal(n) + 1.0,
    "of another shape": lambda rng, n: np.where(rng.random(n) < 0.5, 1, -1) * (0.96 + 0.2 * rng.standard_normal(n)),
    "drifting": lambda rng, n: np.linspace(-1.7, 1.7, n) + 0.3 * rng.standard_normal(n),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_found(fault: str) -> None:
    assert fault in found_faults(WRONG[fault], 80)


def test_errors_that_depend_on_an_input_are_found() -> None:
    rng = np.random.default_rng(4)
    x = rng.random(100)
    found = list(faults(judged(forecasts((0.2 + 1.5 * x) * rng.standard_normal(100), rng, x1=x, x2=x[::-1]))))
    assert [words for words in found if words.startswith("uneven: rank correlation of x1 and |error| / sd is 0.")]
    assert not [words for words in found if "x2" in words]


def test_right_ones_are_seldom_found_at_fault() -> None:
    """One of twenty would be; more than five of forty once in seventy times."""
    assert sum(bool(found_faults(right, 20, number)) for number in range(40)) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 50])
def test_how_often(n: int) -> None:
    """docs/guide/diagnose.md has these shares."""
    share = {
        name: np.mean([name in found_faults(draw, n, 1000 + i) for i in range(200)]) for name, draw in WRONG.items()
    }
    assert np.mean([bool(found_faults(right, n, i)) for i in range(400)]) < 0.075
    assert share["over-confident"] > {12: 0.75, 50: 0.99}[n]
    assert share["under-confident"] > {12: 0.4, 50: 0.99}[n]
    assert share["biased"] > {12: 0.3, 50: 0.99}[n]


def test_each_number_is_what_its_name_says() -> None:
    rng = np.random.default_rng(5)
    made = forecasts(1.3 * rng.standard_normal(40) + 0.2, rng)
    z = (made.y - made.mean) / made.sd
    found = {one.name: one for one in (*judged(made), *beside(made))}
    assert found[BIAS].value == pytest.approx(z.mean())
    assert found[SPREAD].value == pytest.approx(np.sqrt(np.mean(z**2)))
    assert found[SHAPE].value == pytest.approx(stats.kstest(z, "norm").statistic)
    assert found[SHAPE].p == pytest.approx(stats.kstest(z, "norm").pvalue)
    assert found[GROWTH].value == pytest.approx(stats.spearmanr(np.abs(z), np.arange(40)).statistic)
    assert found[SHIFT].value == pytest.approx(stats.spearmanr(z, np.arange(40)).statistic)
    for level in (50, 80, 95):
        inside = (made.y > stats.norm(made.mean, made.sd).ppf(0.5 - level / 200)) & (
            made.y < stats.norm(made.mean, made.sd).ppf(0.5 + level / 200)
        )
        assert found[f"coverage of {level}% intervals"].value == pytest.approx(inside.mean())
    assert found[DENSITY].value == pytest.approx(-stats.norm(made.mean, made.sd).logpdf(made.y).mean())


def test_the_interval_of_a_distance_is_that_of_its_test() -> None:
    for number in range(10):
        rng = np.random.default_rng(number)
        (shape,) = (one for one in judged(forecasts(1.4 * right(rng, 30), rng)) if one.name == SHAPE)
        assert (shape.low > 0) == (shape.p < 0.05)


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(0, 3), st.floats(-5, 5)
        ),
        min_size=10,
        max_size=14,
    )
)
def test_any_forecasts_have_measures(rows: list[tuple[float, ...]]) -> None:
    y, mean, sd, order, x = np.array(rows).T
    made = Forecasts(y, mean, sd, np.sort(order), {"x1": x})
    found: list[Measure] = [*judged(made), *beside(made)]
    for one in found:
        assert not one.low > one.value
        assert not one.high < one.value
        assert np.isnan(one.p) or 0 <= one.p <= 1
        assert np.isnan(one.p_corrected) or one.p <= one.p_corrected <= 1
    assert all("\n" not in words for words in faults(found))
