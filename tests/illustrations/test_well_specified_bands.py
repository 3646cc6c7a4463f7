"""Sets of a model that is the process itself."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel
from illustration_cases import build, of

from plumbline.core.history import History
from plumbline.illustrations.well_specified_bands import KnownKernelOptions, known_process


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
