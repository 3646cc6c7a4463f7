"""Errors of numerical failure: of what methods go on without, each with a warning of its own."""

import torch
from botorch.exceptions.errors import ModelFittingError, OptimizationGradientError
from linear_operator.utils.errors import NanError, NotPSDError

FIT_FAILURES = (ModelFittingError, NanError, NotPSDError)
"""Of fits, and of covariances that are degenerate."""

SEARCH_FAILURES = (NanError, NotPSDError, OptimizationGradientError, torch.linalg.LinAlgError)
"""Of acquisition functions and their maximisation."""
