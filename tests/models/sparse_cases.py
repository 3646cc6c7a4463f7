"""Sparse processes at random parameters, and GPyTorch's models of the same."""

from typing import Any

import torch
from gpytorch.mlls import PredictiveLogLikelihood, VariationalELBO
from sparse_gpytorch import gpytorch_model, parameters_of

from plumbline.models.algebra import SparseKernel
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.objective import Batch, Layout, Objective, fidelity, forward, initial_row
from plumbline.models.svgp.process import SVGP

KERNELS: list[SparseKernel] = ["rbf", "matern52"]
LIKELIHOODS: dict[str, Any] = {"elbo": VariationalELBO, "ppgpr": PredictiveLogLikelihood}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*size, generator=generator(seed), dtype=torch.float64)


def normal(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=generator(seed), dtype=torch.float64)


def random_rows(b: int, layout: Layout, seed: int = 0, spread: float = 0.3) -> torch.Tensor:
    """Return parameters of `b` processes, off their initial ones by as much as `spread`; lengthscales are shorter."""
    start = torch.stack([initial_row(uniform(layout.m, layout.d, seed=seed + i)) for i in range(b)])
    rows = start + spread * normal(b, layout.size, seed=seed + 100)
    layout.parts(rows).raw_lengthscale.sub_(0.7)
    return rows


def batch(b: int, n: int, d: int, data: float = 40.0, seed: int = 7) -> Batch:
    """Return minibatches of `n` data each."""
    return Batch(uniform(b, n, d, seed=seed), normal(b, n, seed=seed + 1), torch.full((b,), data, dtype=torch.float64))


CUBE = Standardisation(torch.zeros(3).double(), torch.ones(3).double(), 0.0, 1.0)
ELSEWHERE = Standardisation(
    torch.tensor([-3.0, 0.0, 100.0]).double(), torch.tensor([2.0, 15.0, 400.0]).double(), -70.0, 12.0
)


def process(
    kernel: SparseKernel = "rbf", m: int = 8, standardisation: Standardisation = ELSEWHERE, seed: int = 0
) -> SVGP:
    """Return a process in three inputs."""
    layout = Layout(m, 3)
    return SVGP(random_rows(1, layout, seed)[0], layout, kernel, standardisation)


def gpytorch_objective(
    row: torch.Tensor, layout: Layout, one: Batch, i: int, kernel: SparseKernel, objective: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return GPyTorch's objective of the `i`-th minibatch, and its gradient in the parameters of a row."""
    standardisation = Standardisation(torch.zeros(layout.d).double(), torch.ones(layout.d).double(), 0.0, 1.0)
    model = gpytorch_model(SVGP(row, layout, kernel, standardisation)).train()
    value = LIKELIHOODS[objective](model.likelihood, model.model, float(one.data[i]))(model.model(one.X[i]), one.y[i])
    value.backward()
    return value.detach(), torch.cat([parameter.grad.flatten() for parameter in parameters_of(model)])


def gpytorch_objective_in_evaluation(
    first: torch.Tensor, row: torch.Tensor, layout: Layout, one: Batch, kernel: SparseKernel, objective: str
) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """Return GPyTorch's objective and gradient of a model in evaluation mode, sampled before its parameters changed.

    GPyTorch keeps the Cholesky factors of the `first` parameters.
    """
    model = gpytorch_model(SVGP(first, layout, kernel, CUBE)).eval()
    with torch.no_grad():
        model.model(uniform(20, layout.d, seed=11))
        for parameter, value in zip(parameters_of(model), layout.parts(row.unsqueeze(0)), strict=True):
            parameter.copy_(value.view_as(parameter))
    value = LIKELIHOODS[objective](model.likelihood, model.model, float(one.data[0]))(model.model(one.X[0]), one.y[0])
    value.backward()
    return value.detach(), [parameter.grad for parameter in parameters_of(model)]


def objective_gradient(
    rows: torch.Tensor, layout: Layout, batch: Batch, kernel: SparseKernel, objective: Objective
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the objective per datum, `b`, and its gradient in the parameters, `b x size`.

    They are GPyTorch's `VariationalELBO` and `PredictiveLogLikelihood` of the same minibatch.

    Args:
        rows: `b x size`.
        layout: of the rows.
        batch: the data.
        kernel: of the processes.
        objective: ELBO or PPGPR.
    """
    passed = forward(rows, layout, batch.X, kernel)
    value, cotangents = fidelity(passed, batch, objective)
    return value, passed.vjp(*cotangents, divergence=-1 / batch.data)
