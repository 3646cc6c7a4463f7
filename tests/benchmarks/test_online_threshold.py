"""What the localised threshold costs."""

import torch

from plumbline.calibration.online import OnlineOptions, OnlineThreshold


def test_512_points_after_250_rounds(benchmark):
    """Asked for: under 1 ms."""
    generator = torch.Generator().manual_seed(0)
    threshold = OnlineThreshold.start(OnlineOptions(kappa=2.0, lengthscale=0.7), 0.2, 2)
    for i in range(250):
        threshold = threshold.update(torch.rand(2, generator=generator, dtype=torch.float64), i % 5 == 0)
    benchmark(threshold, torch.rand(512, 2, generator=generator, dtype=torch.float64))
