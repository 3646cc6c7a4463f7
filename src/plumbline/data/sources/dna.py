"""Reader of splice junctions of DNA as binary features: LIBSVM's copy of the Statlog data set `dna`."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.archives import text_lines

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

    As LIBSVM defines its format, the first feature has index 1, and indices ascend. A file that counts from 0 is
    refused: which of the two it does cannot be told from its content.

    Raises:
        PlumblineError: the file is damaged, or has other columns; the message names the first bad line.
    """
    lines = text_lines(path)
    try:
        digits, label = _parsed(lines)
    except _NO_LINE as error:
        raise PlumblineError(f"{path} cannot be read ({_first_bad(lines)}): delete it and fetch it again") from error
    return pd.DataFrame(digits.toarray(), columns=list(COLUMNS)).assign(**{LABEL: label})


_NO_LINE = (ValueError, IndexError, OverflowError)
"""What scikit-learn raises for a line of another format."""


def _parsed(lines: Sequence[str]) -> Any:
    from sklearn.datasets import load_svmlight_file  # imported here since it takes a second

    return load_svmlight_file(io.BytesIO("\n".join(lines).encode()), n_features=len(COLUMNS), zero_based=False)


def _first_bad(lines: Sequence[str]) -> str:
    for number, line in enumerate(lines, 1):
        try:
            _parsed([line])
        except _NO_LINE as error:
            return f"line {number}: {' '.join(str(error).split())[:200]}"
    return "its lines do not fit together"
