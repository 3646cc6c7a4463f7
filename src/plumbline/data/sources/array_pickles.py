"""A safe reader of pickles that hold arrays of numbers.

Reading a pickle runs a program, which may import and call any function. This reader allows the three names that
reconstruct a NumPy array, including those of Python 2, and refuses all others.
"""

import io
import pickle
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct

MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
"""Modules of the functions that reconstruct an array, in NumPy 1 and NumPy 2."""

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
    """Return numbers, strings, arrays, and lists and dictionaries of them; strings of Python 2 are bytes.

    Raises:
        pickle.UnpicklingError: the pickle holds anything else, or is damaged.
    """
    try:
        return _Reader(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle may raise any error
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error
