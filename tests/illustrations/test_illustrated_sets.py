"""Illustrations of conformal sets against direct computations."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import MaternKernel

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.core.seeding import generator
from plumbline.illustrations import branin_surfaces
from plumbline.illustrations.base import illustrations
from plumbline.illustrations.conformal_density import inside, probability
from plumbline.illustrations.line import chirp
from plumbline.illustrations.rkhs_function import labels, prior_draws
from plumbline.illustrations.well_specified_bands import KnownKernelOptions, known_process
from plumbline.methods.conformal.search import LangevinOptions
from plumbline.problems.base import Context
from plumbline.problems.rkhs import RKHSOptions, rkhs


def build(kind: str, **options: Any) -> pd.DataFrame:
    entry = illustrations[kind]
    return entry.build(entry.options(**options), generator("test", 0, "problem"))


def of(frame: pd.DataFrame, panel: str, series: str) -> pd.DataFrame:
    chosen = frame[(frame["panel"] == panel) & (frame["series"] == series)]
    assert len(chosen), (panel, series)
    return chosen


def in_union(y: np.ndarray, sets: pd.DataFrame) -> np.ndarray:
    return np.any([(y > row.low) & (y < row.high) for row in sets.itertuples()], axis=0)


class TestConformalSteps:
    @pytest.mark.parametrize("alpha", [0.15, 0.25, 0.6])
    def test_accepted_guesses_are_those_in_the_exact_set(self, alpha: float) -> None:
        frame = build("conformal-steps", alpha=alpha)
        exact = of(frame, "set", "set")
        assert in_union(of(frame, "set", "accepted")["x"].to_numpy(), exact).all()
        assert not in_union(of(frame, "set", "rejected")["x"].to_numpy(), exact).any()

    def test_weights_sum_to_one_and_the_last_partial_sum_is_that_of_the_guess(self) -> None:
        frame = build("conformal-steps", guess=1.0, guesses=9)  # one of the guesses is the guess
        weights = frame[frame["panel"] == "weights"]
        assert weights["value"].sum() == pytest.approx(1.0)
        sums = of(frame, "sums", "sum")["value"].to_numpy()
        kept = weights[weights["series"] != "better"]["value"].sum()
        assert sums[-1] == pytest.approx(kept)
        many = pd.concat([of(frame, "set", "accepted"), of(frame, "set", "rejected")])
        same = np.isclose(many["x"], of(frame, "set", "guess")["x"].item())
        assert many["value"][same].item() == pytest.approx(kept)

    def test_what_is_better_scores_better(self) -> None:
        frame = build("conformal-steps")
        guess = of(frame, "scores", "guess")["value"].item()
        assert (of(frame, "scores", "better")["value"] > guess).all()
        assert (of(frame, "scores", "kept")["value"] <= guess).all()
        assert sorted(frame[frame["panel"] == "scores"]["x"]) == list(range(16))

    def test_a_label_far_away_is_accepted_where_the_point_outweighs_alpha(self) -> None:
        frame = build("conformal-steps", alpha=0.05)
        (row,) = of(frame, "set", "set").itertuples()
        assert (row.low, row.high) == (-np.inf, np.inf)
        assert frame[(frame["panel"] == "set") & (frame["series"] == "rejected")].empty


class TestConformalBands:
    def test_candidate_labels_follow_the_posterior(self) -> None:
        frame = build("conformal-bands", candidates=400, candidate_points=3, points=3)
        drawn = of(frame, "candidates", "label").groupby("x")["value"]
        credible = of(frame, "credible", "credible").set_index("x")
        np.testing.assert_allclose(drawn.mean(), credible["value"], atol=0.2)
        share = [((labels > credible["low"][x]) & (labels < credible["high"][x])).mean() for x, labels in drawn]
        np.testing.assert_allclose(share, 0.81, atol=0.07)

    def test_the_truth_is_the_chirp_and_data_lie_about_it(self) -> None:
        frame = build("conformal-bands", noise_std=0.01)
        data = of(frame, "all", "data")
        assert len(data) == 27
        np.testing.assert_allclose(data["value"], chirp(torch.tensor(data["x"].to_numpy())), atol=0.05)
        assert (data["x"] < 0).mean() > 0.5, "dense on the left"

    def test_more_confidence_makes_larger_sets(self) -> None:
        small, large = (build("conformal-bands", alpha=alpha, points=41) for alpha in (0.4, 0.1))
        widths = [(of(f, "conformal", "set")["high"] - of(f, "conformal", "set")["low"]).sum() for f in (small, large)]
        assert widths[0] < widths[1]


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


class TestRKHSFunction:
    def test_the_norm_is_that_of_the_coefficients(self) -> None:
        frame = build("rkhs-function")
        function = rkhs(RKHSOptions(dim=1), Context(Path(), generator("test", 0, "problem")))
        K = function.kernel(function.basis).to_dense()
        norm = (function.coefficients @ K @ function.coefficients).sqrt()
        assert of(frame, "function", "norm")["value"].item() == pytest.approx(float(norm))

    def test_labels_are_what_the_coefficients_solve_for(self) -> None:
        function = rkhs(RKHSOptions(dim=1), Context(Path(), generator("test", 0, "problem")))
        y = labels(function, 0.04)
        K = function.kernel(function.basis).to_dense()
        solved = torch.linalg.solve(K + 0.04 * torch.eye(16, dtype=torch.float64), y)
        torch.testing.assert_close(solved, function.coefficients)

    def test_draws_have_the_covariance_of_the_kernel(self) -> None:
        K = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
        draws = prior_draws(K, 20_000, torch.Generator().manual_seed(0))
        torch.testing.assert_close(draws.mT.cov(), K, atol=0.05, rtol=0)


class TestWellSpecifiedBands:
    def test_the_model_is_the_process_itself(self) -> None:
        """Its posterior is that of zero mean, unit scale, the known lengthscale and noise, computed directly."""
        options = KnownKernelOptions()
        X = torch.tensor([[0.1], [0.4], [0.45], [0.9]], dtype=torch.float64)
        Y = torch.tensor([[3.0], [1.0], [1.5], [2.0]], dtype=torch.float64)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        model = known_process(History(X, Y), bounds, options).model
        kernel = MaternKernel(nu=2.5).double()
        kernel.lengthscale = 0.1
        at = torch.tensor([[0.2], [0.7]], dtype=torch.float64)
        with torch.no_grad():
            cross = kernel(at, X).to_dense()
            A = kernel(X).to_dense() + 0.01 * torch.eye(4, dtype=torch.float64)
            mean = cross @ torch.linalg.solve(A, Y)
            variance = 1.01 - (cross * torch.linalg.solve(A, cross.mT).mT).sum(dim=-1, keepdim=True)
            posterior = model.posterior(at, observation_noise=True)
        torch.testing.assert_close(posterior.mean, mean, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(posterior.variance, variance, atol=1e-6, rtol=1e-5)

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_data_grow_with_the_queries(self) -> None:
        method = {"alpha": 0.2, "search": {"steps": 6, "burn_in": 2}, "posterior": {"candidates": 16}}
        frame = build("well-specified-bands", initial=2, steps=[0, 2], points=11, method=method)
        first, last = of(frame, "t = 0", "data"), of(frame, "t = 2", "data")
        assert (len(first), len(last)) == (2, 4)
        np.testing.assert_array_equal(first["x"], last["x"][:2])
        assert last["x"].iloc[2] == of(frame, "t = 0", "query")["x"].item()
        assert of(frame, "t = 2", "alpha")["value"].item() == 0.2


class TestBraninSurfaces:
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_data_lie_in_the_corner_and_surfaces_are_in_their_units(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from botorch.test_functions import Branin

        monkeypatch.setattr(branin_surfaces, "CHAINS", LangevinOptions(steps=6, burn_in=2))
        frame = build(
            "branin-surfaces",
            points=5,
            search={"restarts": 1, "raw_samples": 8, "maxiter": 5},
        )
        data = of(frame, "all", "data")
        assert (data[["x", "x2"]] >= 0.5).all(axis=None)
        assert of(frame, "all", "alpha")["value"].item() == pytest.approx(8**-0.5)
        low, width = torch.tensor([-5.0, 0.0]).double(), torch.tensor([15.0, 15.0]).double()
        branin = Branin(negate=True)
        seen = branin(low + width * torch.tensor(data[["x", "x2"]].to_numpy()))
        surface = of(frame, "f", "surface")
        values = branin(low + width * torch.tensor(surface[["x", "x2"]].to_numpy()))
        np.testing.assert_allclose(surface["value"], (values - seen.mean()) / seen.std())
        weights = of(frame, "weight", "surface")["value"].to_numpy()
        assert ((weights > 0) & (weights < 1)).all()
        np.testing.assert_allclose(of(frame, "ratio", "surface")["value"], 8 * weights / (1 - weights))
        for panel in ("ucb", "cucb"):
            assert of(frame, panel, "query")[["x", "x2"]].iloc[0].between(0, 1).all()
