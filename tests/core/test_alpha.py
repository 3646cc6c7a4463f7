import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.alpha import Alpha, alpha_at
from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse


class _Holder(Options):
    alpha: Alpha


@given(st.floats(0.01, 0.99), st.integers(1, 10_000))
def test_fixed_level_is_fixed(alpha: float, n: int) -> None:
    assert alpha_at(alpha, n) == alpha


@pytest.mark.parametrize(
    ("n", "plain", "floored"), [(1, 0.5, 0.5), (4, 0.5, 0.5), (16, 0.25, 0.25), (400, 0.05, 0.05), (10_000, 0.01, 0.05)]
)
def test_schedules(n: int, plain: float, floored: float) -> None:
    assert alpha_at("1/sqrt(n)", n) == pytest.approx(plain)
    assert alpha_at("max(.05, 1/sqrt(n))", n) == pytest.approx(floored)


@given(st.integers(1, 10_000))
def test_schedules_shrink_and_stay_levels(n: int) -> None:
    for schedule in ("1/sqrt(n)", "max(.05, 1/sqrt(n))"):
        now, later = alpha_at(schedule, n), alpha_at(schedule, n + 1)
        assert 0 < later <= now <= 0.5
    assert alpha_at("1/sqrt(n)", n) == min(0.5, 1 / math.sqrt(n))


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, "1/n", float("nan")])
def test_no_level_is_an_error(alpha: object) -> None:
    with pytest.raises(PlumblineError, match="alpha"):
        parse(_Holder, {"alpha": alpha}, "config")
