"""Reader of Street View House Numbers, cropped digits (Netzer et al., 2011), from two MATLAB files."""

from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.io import loadmat

from plumbline.core.errors import PlumblineError
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
        (held,) = Parallel(n_jobs=2)([delayed(loadmat)(str(path), variable_names=("X", "y"))])
        X, y = held["X"], held["y"].ravel().astype(np.int64)
        if X.dtype != np.uint8 or X.shape != (32, 32, 3, len(y)) or not np.isin(y, range(1, 11)).all():
            raise ValueError(f"X is {X.dtype} {X.shape} for {len(y)} labels {y.min()} to {y.max()}")
    except Exception as error:  # SciPy's reader may raise any error on a damaged file
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise PlumblineError(f"{path} is no file of SVHN's digits ({reason}): delete it and fetch it again") from error
    # A zero has the label 10.
    return Part(np.ascontiguousarray(X.transpose(3, 2, 0, 1)), y % 10)
