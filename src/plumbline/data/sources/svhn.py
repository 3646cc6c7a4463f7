"""Reader of Street View House Numbers, cropped digits (Netzer et al., 2011), from two MATLAB files."""

from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.io import loadmat

from plumbline.core.errors import PlumblineError
from plumbline.core.files import raise_if_machine_failed
from plumbline.data.sources.images import Images, Part

DIGITS = tuple("0123456789")


def read_svhn(train: Path, test: Path) -> Images:
    """Return the digits of `train_32x32.mat` (73,257) and of `test_32x32.mat` (26,032).

    Raises:
        PlumblineError: a file is missing, damaged, or has other content; the message has the remedy.
    """
    return Images(DIGITS, _part(train), _part(test))


def _part(path: Path) -> Part:
    if not path.is_file():
        raise PlumblineError(f"no file {path}: `plumbline fetch` gets it")
    try:
        # In another process (one job would be ours), since SciPy's reader may crash on a damaged file.
        (held,) = Parallel(n_jobs=2)([delayed(_held)(path)])
        if isinstance(held, Exception):
            raise held
        X, y = held
        if X.dtype != np.uint8 or X.shape != (32, 32, 3, len(y)) or not np.isin(y, range(1, 11)).all():
            raise ValueError(f"X is {X.dtype} {X.shape} for {len(y)} labels {y.min()} to {y.max()}")
    except Exception as error:  # of the check, or of a process that ended
        raise_if_machine_failed(error, path)
        raise PlumblineError(
            f"{path} is no file of SVHN's digits ({_reason(error)}): delete it and fetch it again"
        ) from error
    # A zero has the label 10.
    return Part(np.ascontiguousarray(X.transpose(3, 2, 0, 1)), y % 10)


def _held(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]] | Exception:
    """Return the images and the labels of a file, or why there are none: an error would end joblib's processes."""
    try:
        held = loadmat(str(path), variable_names=("X", "y"))
        return held["X"], held["y"].ravel().astype(np.int64)
    except Exception as error:  # SciPy's reader may raise any error on a damaged file
        return error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
