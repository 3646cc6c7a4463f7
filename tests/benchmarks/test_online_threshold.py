"""What the localised threshold costs."""

import torch

from plumbline.methods.localised.thresholds import OnlineOptions, OnlineThreshold


def test_512_points_after_250_rounds(benchmark):
    """Required: under 1 ms."""
    generator = torch.Generator().manual_seed(0)
    target = torch.tensor([0.2], dtype=torch.float64)
    threshold = OnlineThreshold.start(OnlineOptions(kappa=2.0, lengthscale=0.7), target, 2)
    for i in range(250):
        x = torch.rand(2, generator=generator, dtype=torch.float64)
        threshold = threshold.update(x, torch.full_like(target, float(i % 5 == 0)))
    benchmark(threshold, torch.rand(512, 2, generator=generator, dtype=torch.float64))
