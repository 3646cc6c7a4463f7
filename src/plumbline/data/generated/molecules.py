"""Generated molecules: well-known drugs mutated in SELFIES space."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import selfies
from numpy.random import Generator
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors

DRUGS: dict[str, str] = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "ibuprofen": "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "naproxen": "COc1ccc2cc(ccc2c1)C(C)C(=O)O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "diazepam": "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21",
    "lidocaine": "CCN(CC)CC(=O)Nc1c(C)cccc1C",
    "procaine": "CCN(CC)CCOC(=O)c1ccc(N)cc1",
    "propranolol": "CC(C)NCC(O)COc1cccc2ccccc12",
    "atenolol": "CC(C)NCC(O)COc1ccc(CC(N)=O)cc1",
    "metoprolol": "COCCc1ccc(OCC(O)CNC(C)C)cc1",
    "salbutamol": "CC(C)(C)NCC(O)c1ccc(O)c(CO)c1",
    "fluoxetine": "CNCCC(Oc1ccc(cc1)C(F)(F)F)c1ccccc1",
    "sertraline": "CNC1CCC(c2ccc(Cl)c(Cl)c2)c2ccccc21",
    "citalopram": "CN(C)CCCC1(OCc2cc(C#N)ccc21)c1ccc(F)cc1",
    "venlafaxine": "COc1ccc(cc1)C(CN(C)C)C1(O)CCCCC1",
    "amitriptyline": "CN(C)CCC=C1c2ccccc2CCc2ccccc21",
    "haloperidol": "O=C(CCCN1CCC(O)(CC1)c1ccc(Cl)cc1)c1ccc(F)cc1",
    "chlorpromazine": "CN(C)CCCN1c2ccccc2Sc2ccc(Cl)cc21",
    "carbamazepine": "NC(=O)N1c2ccccc2C=Cc2ccccc21",
    "phenytoin": "O=C1NC(=O)C(N1)(c1ccccc1)c1ccccc1",
    "lamotrigine": "Nc1nnc(c(N)n1)-c1cccc(Cl)c1Cl",
    "omeprazole": "COc1ccc2[nH]c(nc2c1)S(=O)Cc1ncc(C)c(OC)c1C",
    "ranitidine": "CNC(=C[N+](=O)[O-])NCCSCc1ccc(CN(C)C)o1",
    "cimetidine": "CN=C(NCCSCc1nc[nH]c1C)NC#N",
    "loratadine": "CCOC(=O)N1CCC(=C2c3ccc(Cl)cc3CCc3cccnc32)CC1",
    "cetirizine": "OC(=O)COCCN1CCN(CC1)C(c1ccccc1)c1ccc(Cl)cc1",
    "diphenhydramine": "CN(C)CCOC(c1ccccc1)c1ccccc1",
    "metformin": "CN(C)C(=N)NC(N)=N",
    "glibenclamide": "COc1ccc(Cl)cc1C(=O)NCCc1ccc(cc1)S(=O)(=O)NC(=O)NC1CCCCC1",
    "pioglitazone": "CCc1ccc(CCOc2ccc(CC3SC(=O)NC3=O)cc2)nc1",
    "warfarin": "CC(=O)CC(c1ccccc1)C1=C(O)c2ccccc2OC1=O",
    "celecoxib": "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "diclofenac": "OC(=O)Cc1ccccc1Nc1c(Cl)cccc1Cl",
    "indomethacin": "COc1ccc2c(c1)c(CC(=O)O)c(C)n2C(=O)c1ccc(Cl)cc1",
    "sildenafil": "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
    "amlodipine": "CCOC(=O)C1=C(COCCN)NC(C)=C(C1c1ccccc1Cl)C(=O)OC",
    "nifedipine": "COC(=O)C1=C(C)NC(C)=C(C1c1ccccc1[N+](=O)[O-])C(=O)OC",
    "captopril": "CC(CS)C(=O)N1CCCC1C(=O)O",
    "enalapril": "CCOC(=O)C(CCc1ccccc1)NC(C)C(=O)N1CCCC1C(=O)O",
    "losartan": "CCCCc1nc(Cl)c(CO)n1Cc1ccc(cc1)-c1ccccc1-c1nnn[nH]1",
    "furosemide": "NS(=O)(=O)c1cc(C(=O)O)c(NCc2ccco2)cc1Cl",
    "hydrochlorothiazide": "NS(=O)(=O)c1cc2c(cc1Cl)NCNS2(=O)=O",
    "ciprofloxacin": "OC(=O)c1cn(C2CC2)c2cc(N3CCNCC3)c(F)cc2c1=O",
    "sulfamethoxazole": "Cc1cc(NS(=O)(=O)c2ccc(N)cc2)no1",
    "trimethoprim": "COc1cc(Cc2cnc(N)nc2N)cc(OC)c1OC",
    "chloramphenicol": "OCC(NC(=O)C(Cl)Cl)C(O)c1ccc(cc1)[N+](=O)[O-]",
    "fluconazole": "OC(Cn1cncn1)(Cn1cncn1)c1ccc(F)cc1F",
    "chloroquine": "CCN(CC)CCCC(C)Nc1ccnc2cc(Cl)ccc12",
    "imatinib": "Cc1ccc(NC(=O)c2ccc(CN3CCN(C)CC3)cc2)cc1Nc1nccc(n1)-c1cccnc1",
    "gefitinib": "COc1cc2ncnc(Nc3ccc(F)c(Cl)c3)c2cc1OCCCN1CCOCC1",
    "erlotinib": "COCCOc1cc2ncnc(Nc3cccc(c3)C#C)c2cc1OCCOC",
    "tamoxifen": "CCC(=C(c1ccccc1)c1ccc(OCCN(C)C)cc1)c1ccccc1",
    "methylphenidate": "COC(=O)C(C1CCCCN1)c1ccccc1",
    "bupropion": "CC(NC(C)(C)C)C(=O)c1cccc(Cl)c1",
    "tramadol": "COc1cccc(c1)C1(O)CCCCC1CN(C)C",
    "zolpidem": "Cc1ccc(cc1)-c1nc2ccc(C)cn2c1CC(=O)N(C)C",
}
"""Well-known drugs, without stereochemistry."""

MUTATIONS = 4
CROSSOVER = 0.3
HEAVY_ATOMS = range(8, 51)
LARGEST_RING = 8


def mutate(tokens: list[str], alphabet: Sequence[str], generator: Generator) -> list[str]:
    """Return `tokens` with one of them replaced, removed, or one inserted."""
    place = int(generator.integers(len(tokens)))
    token = alphabet[int(generator.integers(len(alphabet)))]
    kind = generator.integers(3)
    if kind == 0:
        return [*tokens[:place], token, *tokens[place + 1 :]]
    if kind == 1 and len(tokens) > 1:
        return [*tokens[:place], *tokens[place + 1 :]]
    return [*tokens[:place], token, *tokens[place:]]


def cross(first: list[str], second: list[str], generator: Generator) -> list[str]:
    """Return the head of one parent joined to the tail of another."""
    return [*first[: generator.integers(1, len(first))], *second[generator.integers(1, len(second)) :]]


def acceptable(smiles: str) -> str | None:
    """Return the canonical SMILES of one molecule of drug-like size, without radicals or macrocycles; else None."""
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or "." in smiles or molecule.GetNumHeavyAtoms() not in HEAVY_ATOMS:
        return None
    if any(len(ring) > LARGEST_RING for ring in molecule.GetRingInfo().AtomRings()):
        return None
    return None if Descriptors.NumRadicalElectrons(molecule) else Chem.MolToSmiles(molecule)


def generated_molecules(size: int, seed: int) -> list[str]:
    """Return `size` different molecules as canonical SMILES; the same for the same seed.

    A child is a drug, sometimes crossed with another, after one to four random changes of its SELFIES tokens. New
    tokens are drawn from those of the drugs. Every SELFIES is a molecule; molecules of unusual size are left out.
    """
    generator = np.random.default_rng(seed)
    parents = [list(selfies.split_selfies(selfies.encoder(smiles))) for smiles in DRUGS.values()]
    alphabet = sorted({token for parent in parents for token in parent})
    molecules: dict[str, None] = {}
    with rdBase.BlockLogs():
        while len(molecules) < size:
            child = parents[int(generator.integers(len(parents)))]
            if generator.random() < CROSSOVER:
                child = cross(child, parents[int(generator.integers(len(parents)))], generator)
            for _ in range(int(generator.integers(1, MUTATIONS + 1))):
                child = mutate(child, alphabet, generator)
            smiles = acceptable(selfies.decoder("".join(child)))
            if smiles is not None:
                molecules[smiles] = None
    return list(molecules)


def made_up_docking_scores(table: pd.DataFrame) -> pd.Series:
    """Return a synthetic score for each molecule: a smooth function of three descriptors and logP.

    Like a docking score it has a range of -12 to -3, lower is better, and it falls with size up to a point. It is best
    at intermediate values of two other descriptors, so that a model can learn it.

    Args:
        table: a table of `describe_molecules`.
    """
    size = 1 / (1 + np.exp(-(table["heavy_atom_mol_wt"] - 280) / 60))
    charge = np.exp(-(((table["max_partial_charge"] - 0.22) / 0.1) ** 2))
    density = np.exp(-(((table["fp_density_morgan_2"] - 2.0) / 0.4) ** 2))
    return -3 - 4 * size - 2 * charge - 2 * density - np.tanh(table["logp"] / 3)
