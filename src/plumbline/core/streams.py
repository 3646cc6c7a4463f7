"""The global random streams of torch, NumPy and Python, which libraries draw from."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_streams(seed: int) -> None:
    """Seed the global streams of torch, NumPy and Python: what code draws from them depends on nothing that ran before.

    `kept_streams` puts them back, once a job: to keep NumPy's and Python's takes a tenth of a cheap round.
    """
    # Not `torch.manual_seed`: it stores every call for each kind of device that is absent.
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the stream that libraries draw from
    random.seed(seed)


@contextmanager
def kept_streams() -> Iterator[None]:
    """Put the global streams of torch, NumPy and Python back after the block."""
    of_torch, of_numpy, of_python = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        torch.set_rng_state(of_torch)
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)
