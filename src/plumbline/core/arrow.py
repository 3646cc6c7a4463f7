"""PyArrow on its own."""

import sys
from importlib.abc import MetaPathFinder

import pyarrow


class _Hidden(MetaPathFinder):
    """Finds that there is no pandas."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas, and leave all else to others."""
        if name == "pandas":
            raise ModuleNotFoundError(f"no {name} here", name=name)


def without_pandas() -> None:
    """Let PyArrow do without pandas in a process that may never need it.

    PyArrow looks for pandas at the first array that it makes, which imports it. Having found none, it looks again only
    where it must, as in `to_pandas`. This is for processes of our own: PyArrow takes a `pandas.Series` for any other
    sequence until then.
    """
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(hidden)
