"""The classifier of density ratios as torch's own modules."""

import math

import torch
from torch import nn
from torch.nn.utils import vector_to_parameters

from plumbline.methods.conformal.density_ratio import RatioClassifier


def network(parameters: torch.Tensor, dim: int, hidden: int) -> nn.Sequential:
    """Return the classifier's layers, with parameters copied from one vector."""
    layers = nn.Sequential(
        nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
    )
    vector_to_parameters(parameters.clone(), layers.double().parameters())
    return layers.requires_grad_(requires_grad=False)


def differentiable(ratio: RatioClassifier, U: torch.Tensor) -> torch.Tensor:
    """Return the clipped log ratios at `... x d`, which autograd can differentiate."""
    layers = network(ratio.averaged, U.shape[-1], ratio.arrays.options.hidden)
    limit = math.log(ratio.arrays.options.clip)
    return layers(2 * U - 1).squeeze(-1).clamp(-limit, limit)
