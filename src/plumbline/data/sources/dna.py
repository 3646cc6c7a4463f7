"""Splice junctions of DNA as rows of binary digits: LIBSVM's copy of the Statlog data set `dna`."""

from pathlib import Path

import pandas as pd

from plumbline.core.errors import PlumblineError

NUCLEOTIDES = 60

CODE = {"A": (1.0, 0.0, 0.0), "C": (0.0, 1.0, 0.0), "G": (0.0, 0.0, 1.0), "T": (0.0, 0.0, 0.0)}
"""A nucleotide's three digits."""

COLUMNS = tuple(f"x{i + 1}" for i in range(3 * NUCLEOTIDES))
"""The digits, those of the first nucleotide first."""

LABEL = "label"
DONOR, ACCEPTOR, NEITHER = LABELS = (1.0, 2.0, 3.0)
"""What is in the middle: an intron's beginning, its end, or none of them."""


def read_dna(path: Path) -> pd.DataFrame:
    """Return one row a sequence: its digits and its label.

    Raises:
        PlumblineError: a file that is damaged, or has other columns.
    """
    from sklearn.datasets import load_svmlight_file  # takes a second, which who reads other tables need not wait for

    try:
        digits, label = load_svmlight_file(str(path), n_features=len(COLUMNS))
    except (ValueError, IndexError, OverflowError) as error:
        raise PlumblineError(f"{path} cannot be read ({error}): delete it and fetch it again") from error
    return pd.DataFrame(digits.toarray(), columns=list(COLUMNS)).assign(**{LABEL: label})
