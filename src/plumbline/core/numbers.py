"""Tensors and arrays alike: formulas that work on either.

Operations on few numbers take NumPy a third of the time of PyTorch; autograd sees tensors alone.
"""

from typing import Any, TypeVar

import numpy as np
import scipy.special
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]

Numbers = TypeVar("Numbers", Tensor, Array)
"""A tensor or an array."""


def namespace_of(x: Any) -> Any:
    """Return the module with the functions of tensors, or with those of arrays."""
    return torch if isinstance(x, Tensor) else np


def special_of(x: Any) -> Any:
    """Return the module with the special functions of tensors, or with those of arrays."""
    return torch.special if isinstance(x, Tensor) else scipy.special
