"""State of the process that numbers depend on, and that a script, a notebook or another module may have changed."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_defaults(usual: bool) -> Iterator[None]:
    """Put torch's default type and gradients, and NumPy's treatment of errors, back after the block.

    Libraries make constants of the default type, so that nearly every method has other last digits under another one.

    Args:
        usual: whether they are in the block what they are when Python starts; else what they are.
    """
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    with np.errstate():
        try:
            if usual:
                np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
                torch.set_default_dtype(torch.float32)
                torch.set_grad_enabled(True)
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
