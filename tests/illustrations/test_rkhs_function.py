"""A function of known norm and its labels."""

from pathlib import Path

import pytest
import torch
from illustration_cases import build, of

from plumbline.core.seeding import generator
from plumbline.illustrations.rkhs_function import labels, prior_draws
from plumbline.problems.base import Context
from plumbline.problems.rkhs import RKHSOptions, rkhs


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
