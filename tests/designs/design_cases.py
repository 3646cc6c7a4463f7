"""Boxes and tables for designs."""

import torch

BOUNDS = torch.tensor([[-2.0, 5.0, 0.0], [3.0, 6.0, 1e-3]], dtype=torch.float64)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
