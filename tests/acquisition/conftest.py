"""Points that utilities are checked at."""

import pytest
import torch


@pytest.fixture
def points(bounds: torch.Tensor) -> torch.Tensor:
    """Five points of the box, `5 x 1 x 2`."""
    U = torch.rand(5, 1, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return bounds[0] + (bounds[1] - bounds[0]) * U
