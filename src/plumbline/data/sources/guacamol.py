"""GuacaMol's goal-directed objectives: scores of molecules between 0 and 1.

Source: Brown, Fiscato, Segler & Vaucher, "GuacaMol: Benchmarking Models for de Novo Molecular Design", J. Chem. Inf.
Model. 59(3), 2019. The paper and its published code disagree in some constants. We take the code's, in the second
version of its benchmarks, as later work and published scores do. For Fexofenadine MPO, for instance, the paper has a
standard deviation of 2 for TPSA and for logP, and the code has 10 and 1. Nine published scores of each of 120
molecules, computed with an old RDKit, agree to 1e-15: their properties do not differ between the versions.

An objective is a geometric mean of parts. A part is a property of the molecule (drug-likeness, logP, its number of
fluorine atoms) and a modifier, which maps the property to [0, 1].
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import Crippen, rdFingerprintGenerator, rdMolDescriptors
from rdkit.DataStructs import TanimotoSimilarity

Numbers = NDArray[np.float64]

Fingerprint = Literal["ECFP4", "ECFP6", "FCFP4", "AP"]
"""Circular fingerprints of diameter 4 and 6, one of them with pharmacophoric atom features, and atom pairs."""


@cache
def _generator(kind: Fingerprint) -> Any:
    if kind == "AP":
        return rdFingerprintGenerator.GetAtomPairGenerator(maxDistance=10)
    if kind == "FCFP4":
        features = rdFingerprintGenerator.GetMorganFeatureAtomInvGen()
        return rdFingerprintGenerator.GetMorganGenerator(radius=2, atomInvariantsGenerator=features)
    return rdFingerprintGenerator.GetMorganGenerator(radius={"ECFP4": 2, "ECFP6": 3}[kind])


def fingerprint(molecule: Chem.Mol, kind: Fingerprint) -> Any:
    """Return the sparse count fingerprint of a molecule, without folding."""
    return _generator(kind).GetSparseCountFingerprint(molecule)


@cache
def _target_fingerprint(smiles: str, kind: Fingerprint) -> Any:
    return fingerprint(Chem.MolFromSmiles(smiles), kind)


class Measured:
    """A molecule with cached properties, each computed once for all objectives."""

    def __init__(self, molecule: Chem.Mol) -> None:
        self.molecule = molecule
        self._fingerprints: dict[Fingerprint, Any] = {}
        self._values: dict[Property, float] = {}

    def fingerprint(self, kind: Fingerprint) -> Any:
        """Return the molecule's fingerprint; see `fingerprint`."""
        if kind not in self._fingerprints:
            self._fingerprints[kind] = fingerprint(self.molecule, kind)
        return self._fingerprints[kind]

    @cached_property
    def atoms(self) -> Counter[str]:
        """Number of atoms of each element, hydrogen included."""
        counts: Counter[str] = Counter()
        for atom in self.molecule.GetAtoms():
            counts[atom.GetSymbol()] += 1
            counts["H"] += atom.GetTotalNumHs()  # implicit hydrogens, which are not atoms of the graph
        return counts

    def value(self, measure: "Property") -> float:
        """Return a property of the molecule."""
        if measure not in self._values:
            self._values[measure] = float(measure(self))
        return self._values[measure]


Property = Callable[[Measured], float]


@dataclass(frozen=True)
class Similarity:
    """Tanimoto similarity of count fingerprints, in [0, 1], to a target molecule, given as SMILES."""

    target: str
    kind: Fingerprint

    def __call__(self, measured: Measured) -> float:
        """Return the similarity."""
        return TanimotoSimilarity(measured.fingerprint(self.kind), _target_fingerprint(self.target, self.kind))


@dataclass(frozen=True)
class Atoms:
    """Number of atoms of an element, hydrogen included."""

    element: str

    def __call__(self, measured: Measured) -> float:
        """Return the number."""
        return measured.atoms[self.element]


@dataclass(frozen=True)
class Isomer:
    """Closeness, in [0, 1], of the molecule's formula to a given one: 1 for isomers.

    It is the geometric mean of Gaussian scores: of standard deviation 1 for each element of the formula, and 2 for the
    total number of atoms, which accounts for other elements.
    """

    formula: str

    def __call__(self, measured: Measured) -> float:
        """Return the closeness."""
        wanted = parse_formula(self.formula)
        off = [float(measured.atoms[element] - count) for element, count in wanted.items()]
        off.append((measured.atoms.total() - sum(wanted.values())) / 2)
        return float(geometric_mean(Gaussian(0.0, 1.0)(np.array(off))))


@cache
def parse_formula(formula: str) -> Mapping[str, int]:
    """Return the number of atoms of each element in a molecular formula, such as C9H10N2O2PF2Cl.

    Raises:
        ValueError: the text is not a formula, or has an element twice.
    """
    parts = re.findall(r"([A-Z][a-z]?)([1-9]\d*)?", formula)
    counts = {element: int(count or 1) for element, count in parts}
    if not parts or len(counts) < len(parts) or "".join(element + count for element, count in parts) != formula:
        raise ValueError(f"{formula!r} is no molecular formula with each element once")
    return counts


def logp(measured: Measured) -> float:
    """Return Crippen's estimate of the logarithm of the octanol-water partition coefficient."""
    return Crippen.MolLogP(measured.molecule)  # type: ignore[attr-defined]


def tpsa(measured: Measured) -> float:
    """Return the topological polar surface area in square ångström, without sulphur and phosphorus."""
    return rdMolDescriptors.CalcTPSA(measured.molecule)


def rings(measured: Measured) -> float:
    """Return the number of rings in the smallest set of smallest rings."""
    return rdMolDescriptors.CalcNumRings(measured.molecule)


def aromatic_rings(measured: Measured) -> float:
    """Return the number of aromatic rings in the smallest set of smallest rings."""
    return rdMolDescriptors.CalcNumAromaticRings(measured.molecule)


Modifier = Callable[[Numbers], Numbers]


def as_is(x: Numbers) -> Numbers:
    """Return a property that is already in [0, 1]."""
    return x


@dataclass(frozen=True)
class Thresholded:
    """Proportional to the property from 0 up to a threshold, 1 above it, 0 below 0."""

    threshold: float

    def __call__(self, x: Numbers) -> Numbers:
        """Return the scores of the values `x` of the property, each in [0, 1]."""
        return np.clip(x / self.threshold, 0.0, 1.0)


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian of the property about `mu` with standard deviation `sigma` and maximum 1."""

    mu: float
    sigma: float

    def __call__(self, x: Numbers) -> Numbers:
        """Return the scores of the values `x` of the property, each in [0, 1]."""
        return np.exp(-0.5 * ((x - self.mu) / self.sigma) ** 2)


@dataclass(frozen=True)
class MinGaussian(Gaussian):
    """For a property to be minimised: 1 up to `mu`, half of a Gaussian above it."""

    def __call__(self, x: Numbers) -> Numbers:
        """Return the scores of the values `x` of the property, each in [0, 1]."""
        return super().__call__(np.maximum(x, self.mu))


@dataclass(frozen=True)
class MaxGaussian(Gaussian):
    """For a property to be maximised: 1 from `mu`, half of a Gaussian below it."""

    def __call__(self, x: Numbers) -> Numbers:
        """Return the scores of the values `x` of the property, each in [0, 1]."""
        return super().__call__(np.minimum(x, self.mu))


def geometric_mean(parts: Numbers) -> Numbers:
    """Return the geometric mean over the first axis of nonnegative numbers."""
    return np.prod(parts, axis=0) ** (1 / len(parts))


@dataclass(frozen=True)
class Objective:
    """An objective: parts, each a property and its modifier, and the mean that combines them.

    Attributes:
        name: in the registry and in tables.
        title: its title in the paper.
        parts: at least one part.
        combine: maps the parts, k x n, to n scores.
    """

    name: str
    title: str
    parts: tuple[tuple[Property, Modifier], ...]
    combine: Callable[[Numbers], Numbers] = geometric_mean


OSIMERTINIB = "COc1cc(N(C)CCN(C)C)c(NC(=O)C=C)cc1Nc1nccc(n1)-c1cn(C)c2ccccc12"
FEXOFENADINE = "CC(C)(C(=O)O)c1ccc(cc1)C(O)CCCN1CCC(CC1)C(O)(c1ccccc1)c1ccccc1"
CAMPHOR = "CC1(C)C2CCC1(C)C(=O)C2"
MENTHOL = "CC(C)C1CCC(C)CC1O"
TADALAFIL = "CN1CC(=O)N2C(Cc3c([nH]c4ccccc34)C2c2ccc3OCOc3c2)C1=O"
SILDENAFIL = "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1"
AMLODIPINE = "CCOC(=O)C1=C(COCCN)NC(C)=C(C1c1ccccc1Cl)C(=O)OC"
SITAGLIPTIN = "NC(CC(=O)N1CCn2c(nnc2C(F)(F)F)C1)Cc1cc(F)c(F)cc1F"
ZALEPLON = "CCN(C(C)=O)c1cccc(c1)-c1ccnc2c(cnn12)C#N"
PERINDOPRIL = "CCCC(NC(C)C(=O)N1C(CC2CCCCC12)C(=O)O)C(=O)OCC"
RANOLAZINE = "COc1ccccc1OCC(O)CN1CCN(CC1)CC(=O)Nc1c(C)cccc1C"

OBJECTIVES: Mapping[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective(
            "osimertinib-mpo",
            "Osimertinib MPO",
            (
                (Similarity(OSIMERTINIB, "FCFP4"), Thresholded(0.8)),
                (Similarity(OSIMERTINIB, "ECFP6"), MinGaussian(0.85, 0.1)),
                (tpsa, MaxGaussian(100.0, 10.0)),
                (logp, MinGaussian(1.0, 1.0)),
            ),
        ),
        Objective(
            "fexofenadine-mpo",
            "Fexofenadine MPO",
            (
                (Similarity(FEXOFENADINE, "AP"), Thresholded(0.8)),
                (tpsa, MaxGaussian(90.0, 10.0)),
                (logp, MinGaussian(4.0, 1.0)),
            ),
        ),
        Objective(
            "median-1",
            "Median molecules 1",
            ((Similarity(CAMPHOR, "ECFP4"), as_is), (Similarity(MENTHOL, "ECFP4"), as_is)),
        ),
        Objective(
            "median-2",
            "Median molecules 2",
            ((Similarity(TADALAFIL, "ECFP6"), as_is), (Similarity(SILDENAFIL, "ECFP6"), as_is)),
        ),
        Objective(
            "amlodipine-mpo",
            "Amlodipine MPO",
            ((Similarity(AMLODIPINE, "ECFP4"), as_is), (rings, Gaussian(3.0, 0.5))),
        ),
        Objective(
            "sitagliptin-mpo",
            "Sitagliptin MPO",
            (
                (Similarity(SITAGLIPTIN, "ECFP4"), Gaussian(0.0, 0.1)),
                # Sitagliptin's own logP and TPSA: the objective wants its properties in a dissimilar molecule.
                (logp, Gaussian(2.0165, 0.2)),
                (tpsa, Gaussian(77.04, 5.0)),
                (Isomer("C16H15F6N5O"), as_is),
            ),
        ),
        Objective(
            "zaleplon-mpo",
            "Zaleplon MPO",
            ((Similarity(ZALEPLON, "ECFP4"), as_is), (Isomer("C19H17N3O2"), as_is)),
        ),
        Objective(
            "perindopril-mpo",
            "Perindopril MPO",
            ((Similarity(PERINDOPRIL, "ECFP4"), as_is), (aromatic_rings, Gaussian(2.0, 0.5))),
        ),
        Objective(
            "ranolazine-mpo",
            "Ranolazine MPO",
            (
                (Similarity(RANOLAZINE, "AP"), Thresholded(0.7)),
                (logp, MaxGaussian(7.0, 1.0)),
                (Atoms("F"), Gaussian(1.0, 1.0)),
                (tpsa, MaxGaussian(95.0, 20.0)),
            ),
        ),
    )
}
"""The objectives by name. All nine are geometric means and lie in [0, 1]."""


def _score(objective: Objective, molecules: Sequence[Measured | None]) -> Numbers:
    values = [
        [np.nan if measured is None else measured.value(measure) for measured in molecules]
        for measure, _ in objective.parts
    ]
    modified = [modifier(np.array(row, "float64")) for row, (_, modifier) in zip(values, objective.parts, strict=True)]
    return objective.combine(np.stack(modified))


def _measured(molecules: Iterable[Chem.Mol | None]) -> list[Measured | None]:
    return [None if molecule is None else Measured(molecule) for molecule in molecules]


def _parsed(smiles: Iterable[str]) -> list[Chem.Mol | None]:
    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(one) for one in smiles]


def score(objective: Objective, molecules: Sequence[Chem.Mol | None]) -> Numbers:
    """Return the scores of n molecules, to be maximised, shape (n,); NaN for None.

    Args:
        objective: one of `OBJECTIVES`, or a similar one.
        molecules: sanitised, as RDKit's parsers return them; they are not changed. Without atoms, the score is 0 for
            each of `OBJECTIVES` except Sitagliptin MPO.

    Raises:
        RuntimeError: RDKit raises it for a molecule that was not sanitised.
    """
    return _score(objective, _measured(molecules))


def score_smiles(objective: Objective, smiles: Sequence[str]) -> Numbers:
    """Return the scores of n molecules, shape (n,); NaN for invalid SMILES, without RDKit's messages.

    See `score`, also for the molecule without atoms, which an empty string denotes.
    """
    return score(objective, _parsed(smiles))


def _score_some(smiles: Sequence[str]) -> dict[str, Numbers]:
    molecules = _measured(_parsed(smiles))
    return {name: _score(objective, molecules) for name, objective in OBJECTIVES.items()}


def score_table(smiles: Sequence[str], jobs: int = 1, block: int = 500) -> pd.DataFrame:
    """Return a row per molecule and a column per objective, named after it; the same for any number of `jobs`."""
    blocks = [smiles[start : start + block] for start in range(0, len(smiles), block)]
    scored = Parallel(n_jobs=jobs)(delayed(_score_some)(one) for one in blocks)
    columns = {name: np.concatenate([np.empty(0), *(one[name] for one in scored)]) for name in OBJECTIVES}
    return pd.DataFrame(columns)
