"""Reader of splice junctions of DNA as binary features: LIBSVM's copy of the Statlog data set `dna`."""

from pathlib import Path

import pandas as pd

from plumbline.core.errors import PlumblineError

NUCLEOTIDES = 60

CODE = {"A": (1.0, 0.0, 0.0), "C": (0.0, 1.0, 0.0), "G": (0.0, 0.0, 1.0), "T": (0.0, 0.0, 0.0)}
"""The three binary features of a nucleotide."""

COLUMNS = tuple(f"x{i + 1}" for i in range(3 * NUCLEOTIDES))
"""The features, those of the first nucleotide first."""

LABEL = "label"
DONOR, ACCEPTOR, NEITHER = LABELS = (1.0, 2.0, 3.0)
"""Labels: the middle of the sequence is an intron's start, its end, or neither."""


def read_dna(path: Path) -> pd.DataFrame:
    """Return a row per sequence: its features and its label.

    Raises:
        PlumblineError: the file is damaged, or has other columns.
    """
    from sklearn.datasets import load_svmlight_file  # imported here since it takes a second

    try:
        digits, label = load_svmlight_file(str(path), n_features=len(COLUMNS))
    except (ValueError, IndexError, OverflowError) as error:
        raise PlumblineError(f"{path} cannot be read ({error}): delete it and fetch it again") from error
    return pd.DataFrame(digits.toarray(), columns=list(COLUMNS)).assign(**{LABEL: label})
