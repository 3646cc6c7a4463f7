"""Molecules independent of their spelling: one molecule has many SMILES, and must have one value of each property."""

from typing import Any

from rdkit import Chem


def molecule_of(smiles: str) -> Any:
    """Return the molecule with the order of atoms of its canonical SMILES; None for invalid SMILES.

    Numbers of atoms in a reaction (atom maps) are dropped; isotopes, charges, stereochemistry and all parts of a salt
    are kept.
    """
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return None
    for atom in molecule.GetAtoms():
        atom.SetAtomMapNum(0)
    return Chem.MolFromSmiles(Chem.MolToSmiles(molecule))
