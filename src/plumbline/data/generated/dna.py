"""Generated DNA: random nucleotides with the consensus motifs of intron ends in the middle."""

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from plumbline.data.sources.dna import ACCEPTOR, CODE, COLUMNS, DONOR, LABEL, LABELS, NUCLEOTIDES

LETTERS = "".join(CODE)

MOTIFS = {DONOR: (28, "AGGTAAGT"), ACCEPTOR: (16, "TTTCTTTCCTCCAG")}
"""Start and letters of the consensus of a junction; its GT or AG is at the same positions as in the real data."""

CERTAIN = {DONOR: (30, 31), ACCEPTOR: (28, 29)}
"""Positions of GT and AG, which all junctions of their kind have."""

KEPT = 0.7
"""Probability of any other letter of a motif."""

SHARES = (0.25, 0.25, 0.5)
"""Shares of the labels, about those of the real data."""


def _sequence(label: float, generator: Generator) -> NDArray[np.intp]:
    """Return the indices of `60` letters."""
    sequence = generator.integers(len(LETTERS), size=NUCLEOTIDES)
    if label in MOTIFS:
        first, motif = MOTIFS[label]
        for place, letter in enumerate(motif, first):
            if generator.random() < KEPT or place in CERTAIN[label]:
                sequence[place] = LETTERS.index(letter)
    return sequence


def generated_dna(size: int, seed: int) -> pd.DataFrame:
    """Return `size` sequences in the columns of the real data; the same for the same seed."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(LABELS, size=size, p=SHARES)
    code = np.array(list(CODE.values()))
    digits = np.stack([code[_sequence(label, generator)].ravel() for label in labels])
    return pd.DataFrame(digits, columns=list(COLUMNS)).assign(**{LABEL: labels})
