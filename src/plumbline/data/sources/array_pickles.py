"""Pickles of which nothing is believed but arrays of numbers.

To read a pickle is to run a program: it may name any function that can be imported and have it called. This reader
knows the three names that an array of NumPy's is made with, those of Python 2 too, and refuses all others.
"""

import io
import pickle
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct

MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
"""Where NumPy 1 and NumPy 2 keep what makes an array."""

ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    **{(module, "_reconstruct"): _reconstruct for module in MODULES},
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no array")
        return ADMITTED[module, name]


def read_pickle(content: bytes) -> Any:
    """Return numbers, texts, arrays, and lists and dictionaries of them; texts of Python 2 are bytes.

    Raises:
        pickle.UnpicklingError: anything else, or a damaged pickle.
    """
    try:
        return _Reader(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle is a program with errors: it may raise anything
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error
