"""Molecules as rows: RDKit descriptors and the targets that the studies rank by."""

import gzip
import logging
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from rdkit import Chem, rdBase
from rdkit.Chem import QED, Crippen, Descriptors
from rdkit.Contrib.SA_Score import sascorer

from plumbline.errors import PlumblineError

log = logging.getLogger(__name__)

DESCRIPTORS: dict[str, Callable[[Any], float]] = {
    "exact_mol_wt": Descriptors.ExactMolWt,
    "fp_density_morgan_1": Descriptors.FpDensityMorgan1,
    "fp_density_morgan_2": Descriptors.FpDensityMorgan2,
    "fp_density_morgan_3": Descriptors.FpDensityMorgan3,
    "heavy_atom_mol_wt": Descriptors.HeavyAtomMolWt,
    "max_abs_partial_charge": Descriptors.MaxAbsPartialCharge,
    "max_partial_charge": Descriptors.MaxPartialCharge,
    "min_abs_partial_charge": Descriptors.MinAbsPartialCharge,
    "min_partial_charge": Descriptors.MinPartialCharge,
    "mol_weight": Descriptors.MolWt,
    "num_radical_electrons": Descriptors.NumRadicalElectrons,
    "num_valence_electons": Descriptors.NumValenceElectrons,
}
"""The features of CBO's tabular problems, under the (mis)spelling of the published table."""

TARGETS = ("logp", "penalized_logp", "qed", "sa")

# Mean and standard deviation over ZINC250k of logP, minus the SA score, and minus the large-ring penalty, as fixed in
# the literature by the junction-tree autoencoder (Jin, Barzilay & Jaakkola, 2018).
LOGP_MEAN, LOGP_SD = 2.4570953396190123, 1.434324401111988
SA_MEAN, SA_SD = -3.0525811293166134, 0.8335207024513095
RING_MEAN, RING_SD = -0.0485696876403053, 0.2860212110245455


def read_smiles(path: Path, member: str | None = None) -> list[str]:
    """Return the SMILES in a text file, one a line; gzipped, or `member` of a tar.gz.

    Raises:
        PlumblineError: an archive that is truncated, corrupt or without the member.
    """
    try:
        if member is not None:
            with tarfile.open(path, "r:*") as archive:
                file = archive.extractfile(member)
                assert file is not None
                text = file.read().decode()
        elif path.suffix == ".gz":
            text = gzip.decompress(path.read_bytes()).decode()
        else:
            text = path.read_text(encoding="utf-8")
    except (tarfile.TarError, KeyError, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise PlumblineError(f"{path} cannot be unpacked ({error}): delete it and fetch it again") from error
    return [word for line in text.splitlines() if (word := line.strip().strip('"'))]


def sample_rows(smiles: Sequence[str], n: int, seed: int) -> list[str]:
    """Return `n` of the SMILES (all, if there are fewer), drawn without replacement, in their order."""
    if n >= len(smiles):
        return list(smiles)
    rows = np.random.default_rng(seed).choice(len(smiles), size=n, replace=False)
    return [smiles[i] for i in np.sort(rows)]


def large_ring_penalty(molecule: Any) -> int:
    """Return how many atoms the largest cycle of the molecule's graph has beyond six.

    The literature takes the cycles from networkx's basis, which is not the smallest one: a fused ring system may count
    as one large ring. RDKit's smallest rings would give other values for one molecule in twenty of ZINC.
    """
    cycles = networkx.cycle_basis(networkx.Graph(Chem.GetAdjacencyMatrix(molecule)))
    return max(max(map(len, cycles), default=0) - 6, 0)


def penalized_logp(logp: float, sa: float, ring_penalty: float) -> float:
    """Return normalised logP minus normalised SA score minus normalised large-ring penalty."""
    return (logp - LOGP_MEAN) / LOGP_SD + (-sa - SA_MEAN) / SA_SD + (-ring_penalty - RING_MEAN) / RING_SD


def describe_molecule(smiles: str) -> dict[str, Any] | None:
    """Return canonical SMILES, descriptors and targets; None for SMILES that are no molecule."""
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return None
    logp, sa = Crippen.MolLogP(molecule), sascorer.calculateScore(molecule)
    return {
        "smiles": Chem.MolToSmiles(molecule),
        **{name: float(descriptor(molecule)) for name, descriptor in DESCRIPTORS.items()},
        "logp": logp,
        "penalized_logp": penalized_logp(logp, sa, large_ring_penalty(molecule)),
        "qed": QED.qed(molecule),
        "sa": sa,
    }


def _describe_some(smiles: Sequence[str]) -> list[dict[str, Any] | None]:
    with rdBase.BlockLogs():
        return [describe_molecule(one) for one in smiles]


def describe_molecules(smiles: Sequence[str], jobs: int = 1, block: int = 500) -> pd.DataFrame:
    """Return one row a molecule: `smiles`, the descriptors, the targets; the same for any number of `jobs`.

    Left out, with a line in the log: SMILES that do not parse, rows with a descriptor that is not finite, and rows
    whose descriptors another row has already, since a tabular problem finds a row by its features.
    """
    blocks = [smiles[start : start + block] for start in range(0, len(smiles), block)]
    described = Parallel(n_jobs=jobs)(delayed(_describe_some)(one) for one in blocks)
    rows = [row for one in described for row in one]
    table = pd.DataFrame([row for row in rows if row is not None], columns=["smiles", *DESCRIPTORS, *TARGETS])
    finite = np.isfinite(table[[*DESCRIPTORS, *TARGETS]].to_numpy("float64")).all(axis=1)
    first = ~table.duplicated(subset=list(DESCRIPTORS))
    log.info(
        "%d molecules: %d do not parse, %d have a descriptor that is not finite, %d repeat another's descriptors",
        len(smiles),
        len(rows) - len(table),
        int((~finite).sum()),
        int((finite & ~first.to_numpy()).sum()),
    )
    return table[finite & first.to_numpy()].reset_index(drop=True)
