"""A molecule is one molecule in every spelling.

Its columns in tables are equal. Its scores agree to 1e-12: logP is a sum over atoms, whose order a spelling determines.
"""

import numpy as np
import pytest
from rdkit import Chem, rdBase

from plumbline.data.generated.molecules import DRUGS, generated_molecules
from plumbline.data.sources.guacamol import score_table
from plumbline.data.sources.molecules import DESCRIPTORS, TARGETS, describe_molecule
from plumbline.data.sources.spellings import molecule_of

ODD = [
    "[2H]C([2H])([2H])O",
    "[13CH3]C(=O)[O-].[Na+]",
    "C[N+](C)(C)CC(=O)[O-]",
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "[H]/N=C(/C)c1ccccc1",
    "OC(=O)[C@@H]1CC[C@H](C)CC1",
    "c1ccc2c(c1)ccc1c2ccc2ccccc21",
    "C1CC2CCC1CC2",
    "C12C3C4C1C5C2C3C45",
    "c1cc2ccc3cccc4ccc(c1)c2c34",
    "O=[N+]([O-])c1ccccc1",
    "CC(=O)O.CCN.Cl",
]
"""Isotopes, charges, salts, stereochemistry, and cages whose basis of cycles is not unique."""


def spellings(smiles: str, seed: int) -> list[str]:
    """Return other SMILES of the molecule: in random order, kekulised, and with explicit hydrogens and bonds."""
    molecule = Chem.MolFromSmiles(smiles)
    kekulised = Chem.Mol(molecule)
    Chem.Kekulize(kekulised, clearAromaticFlags=True)
    hydrogens = Chem.AddHs(molecule)
    some = [*Chem.MolToRandomSmilesVect(molecule, 4, randomSeed=seed)]
    some += [Chem.MolToSmiles(kekulised, kekuleSmiles=True, doRandom=True)]
    some += [*Chem.MolToRandomSmilesVect(hydrogens, 2, randomSeed=seed)]
    some += [Chem.MolToSmiles(molecule, doRandom=True, allHsExplicit=True, allBondsExplicit=True)]
    return [*some, ".".join(reversed(smiles.split(".")))]


MOLECULES = [*DRUGS.values(), *generated_molecules(30, 5), *ODD]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_every_column_and_score_is_equal_in_every_spelling(block: int) -> None:
    for number, smiles in enumerate(MOLECULES[block::4]):
        with rdBase.BlockLogs():
            expected = describe_molecule(smiles)
            others = spellings(smiles, number)
        assert expected is not None
        for other in others:
            found = describe_molecule(other)
            assert found is not None, other
            assert found["smiles"] == expected["smiles"], other
            columns = [*DESCRIPTORS, *TARGETS]
            np.testing.assert_array_equal([found[c] for c in columns], [expected[c] for c in columns], err_msg=other)
        for objective, scores in score_table([smiles, *others]).items():
            np.testing.assert_allclose(scores, scores[0], rtol=1e-12, err_msg=f"{objective} of {smiles}")


def test_what_names_atoms_is_dropped_and_what_makes_another_molecule_is_kept() -> None:
    for one, other, same in (
        ("[CH3:1][OH:2]", "CO", True),
        ("[H]OC([H])([H])[H]", "CO", True),
        ("[13CH3]O", "CO", False),
        ("C[O-]", "CO", False),
        ("CO.[Na+]", "CO", False),
        ("C[C@H](N)O", "C[C@@H](N)O", False),
    ):
        found = [Chem.MolToSmiles(molecule_of(text)) for text in (one, other)]
        assert (found[0] == found[1]) is same, (one, other)
    assert molecule_of("C1CC") is None
