import numpy as np
import pandas as pd

from plumbline.data.generated.dna import generated_dna
from plumbline.data.sources.dna import ACCEPTOR, CODE, COLUMNS, DONOR, LABEL, LABELS, NEITHER, NUCLEOTIDES

TABLE = generated_dna(400, 0)


def letters(table: pd.DataFrame) -> np.ndarray:
    """Return the sequences as `n x 60` letters."""
    digits = table[list(COLUMNS)].to_numpy().reshape(-1, NUCLEOTIDES, 3)
    of = {code: letter for letter, code in CODE.items()}
    return np.array([[of[tuple(one)] for one in row] for row in digits])


def test_it_repeats_itself_and_another_seed_does_not() -> None:
    pd.testing.assert_frame_equal(generated_dna(400, 0), TABLE)
    assert not generated_dna(400, 1).equals(TABLE)


def test_junctions_have_what_marks_them_and_others_do_not() -> None:
    sequences = letters(TABLE)
    pairs = {DONOR: (30, ["G", "T"]), ACCEPTOR: (28, ["A", "G"])}
    for label, (place, pair) in pairs.items():
        marked = (sequences[:, place : place + 2] == pair).all(axis=1)
        assert marked[TABLE[LABEL] == label].all()
        assert marked[TABLE[LABEL] == NEITHER].mean() < 0.15


def test_labels_have_about_the_shares_of_the_real_data() -> None:
    shares = TABLE[LABEL].value_counts(normalize=True)
    assert set(shares.index) == set(LABELS)
    np.testing.assert_allclose(shares.loc[list(LABELS)], [0.25, 0.25, 0.5], atol=0.08)


def test_sequences_differ_and_no_column_is_constant() -> None:
    assert not TABLE.duplicated(subset=list(COLUMNS)).any()
    assert (TABLE[list(COLUMNS)].nunique() == 2).all()
