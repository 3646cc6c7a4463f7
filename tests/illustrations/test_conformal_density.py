"""The density of a conformal predictive distribution."""

import numpy as np
import pytest
import torch
from illustration_cases import build, in_union, of

from plumbline.core.errors import PlumblineError
from plumbline.illustrations.conformal_density import inside, probability


class TestConformalDensity:
    @pytest.mark.parametrize(("x", "alpha"), [(-0.5, 0.19), (0.6, 0.3)])
    def test_it_integrates_to_one_and_over_the_set_to_its_level(self, x: float, alpha: float) -> None:
        frame = build("conformal-density", x=x, alpha=alpha, points=40_001, reach=6.0)
        density, sets = of(frame, "density", "conformal"), of(frame, "density", "set")
        y, value = density["x"].to_numpy(), density["value"].to_numpy()
        assert np.trapezoid(value, y) == pytest.approx(1.0, abs=1e-3)
        assert np.trapezoid(np.where(in_union(y, sets), value, 0.0), y) == pytest.approx(1 - alpha, abs=1e-3)
        within = value[in_union(y, sets)]
        length = (sets["high"] - sets["low"]).sum()
        np.testing.assert_allclose(within, (1 - alpha) / length, err_msg="uniform on the set (CBO, section 4.2)")
        plain = of(frame, "density", "plain")
        beyond = ~in_union(y, sets)
        ratio = value[beyond] / plain["value"].to_numpy()[beyond]
        np.testing.assert_allclose(ratio, ratio[0], err_msg="the model's own density outside, scaled")
        assert np.trapezoid(plain["value"], plain["x"]) == pytest.approx(1.0, abs=1e-3)

    def test_the_whole_line_has_no_density(self) -> None:
        with pytest.raises(PlumblineError, match="improper"):
            build("conformal-density", alpha=0.01)

    def test_unions_of_intervals(self) -> None:
        from plumbline.forecasts.predictive import GaussianPredictive

        one = torch.ones(1, dtype=torch.float64)
        normal = GaussianPredictive(0 * one, one)
        inf = float("inf")
        assert probability(normal, [(-inf, inf)]) == pytest.approx(1.0)
        assert probability(normal, [(-inf, -1.0), (1.0, inf)]) == pytest.approx(0.3173105, abs=1e-6)
        assert probability(normal, []) == 0.0
        y = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64)
        assert inside(y, [(-inf, -1.0), (1.0, 3.0)]).tolist() == [True, False, True]
        assert inside(y, []).tolist() == [False, False, False]
