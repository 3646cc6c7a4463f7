"""The global random streams are seeded, and put back."""

import random

import numpy as np
import torch

from plumbline.core.streams import kept_streams, seed_streams


def test_streams_are_seeded_and_put_back() -> None:
    def draw() -> tuple[float, float, float]:
        return float(torch.rand(())), np.random.randn(), random.gauss()  # noqa: NPY002

    np.random.randn()  # noqa: NPY002 - the second of a pair is kept for later
    with kept_streams():
        after = draw()
    with kept_streams():
        seed_streams(3)
        first = draw()
        seed_streams(3)
        assert draw() == first
    assert draw() == after
