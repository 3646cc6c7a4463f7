"""Tables of antibodies: V domains extracted from contigs, and BioPython descriptors of both chains."""

import csv
import gzip
import io
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqUtils.ProtParam import ProteinAnalysis
from joblib import Parallel, delayed

from plumbline.core.errors import PlumblineError

log = logging.getLogger(__name__)


class Pair(NamedTuple):
    """The V domains of one antibody, as amino acids."""

    heavy: str
    light: str


CHAINS = Pair._fields

MEASURES: dict[str, Callable[[ProteinAnalysis], float]] = {
    "molecular_weight": lambda chain: chain.molecular_weight(),
    "aromaticity": lambda chain: chain.aromaticity(),
    "gravy": lambda chain: chain.gravy(),
    "isoelectric_point": lambda chain: chain.isoelectric_point(),
    "charge_at_ph7": lambda chain: chain.charge_at_pH(7.0),
    "flexibility": lambda chain: float(np.mean(chain.flexibility())),
    "helix": lambda chain: chain.secondary_structure_fraction()[0],
    "turn": lambda chain: chain.secondary_structure_fraction()[1],
    "sheet": lambda chain: chain.secondary_structure_fraction()[2],
    "extinction_reduced": lambda chain: chain.molar_extinction_coefficient()[0],
    "extinction_oxidised": lambda chain: chain.molar_extinction_coefficient()[1],
}
"""BioPython's ProteinAnalysis of a chain, except for its instability index, which is the target."""

DESCRIPTORS = tuple(f"{chain}_{name}" for chain in CHAINS for name in MEASURES)
TARGETS = ("stability",)

AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWY")

# The skeleton of all V domains: the first framework region of known length up to its cysteine, the tryptophan of the
# second, the cysteine that ends the third, and the J motif with the following residues of J. Counting back from the
# first cysteine removes the leader. Heavy chains have it at 22. Light chains have it at 23 (kappa) or 22 (lambda), and
# a glutamine at 6 identifies them. Lookahead finds overlapping matches too.
HEAVY = re.compile(r"(?=(.{21}C.{8,20}W.{40,90}C.{2,45}WG.G.{7}))")
LIGHT = re.compile(r"(?=(.{5}Q.{15,16}C.{8,20}W.{40,90}C.{2,25}FG.G.{6}))")


def open_frames(nucleotides: str) -> Iterator[str]:
    """Yield the sequences between stop codons in the three forward reading frames, as amino acids."""
    for start in range(3):
        codons = nucleotides[start : len(nucleotides) - (len(nucleotides) - start) % 3]
        yield from str(Seq(codons).translate()).split("*")


def v_domain(nucleotides: str, skeleton: re.Pattern[str]) -> str | None:
    """Return the V domain in a contig, from the germline's first residue to J's last; None if there is none.

    Args:
        nucleotides: the contig, 5' to 3', leader and constant region included.
        skeleton: HEAVY or LIGHT.
    """
    return next((match[1] for frame in open_frames(nucleotides) for match in skeleton.finditer(frame)), None)


def read_contigs(path: Path) -> list[Pair]:
    """Return the pairs in a gzipped FASTA file in which heavy and light contigs of a cell alternate.

    Pairs with a chain without a V domain are left out, with a warning that counts them.

    Raises:
        PlumblineError: the file is damaged, or its contigs do not alternate.
    """
    records = list(SeqIO.parse(io.StringIO(_unpack(path)), "fasta"))
    found = list(_pairs(path, [(record.id, str(record.seq)) for record in records]))
    pairs = [pair for pair in found if pair is not None]
    _say_how_many(len(found), len(pairs), "have a chain without a V domain")
    return pairs


def _pairs(path: Path, contigs: Sequence[tuple[str, str]]) -> Iterator[Pair | None]:
    if not contigs or len(contigs) % 2:
        raise PlumblineError(f"{path}: {len(contigs)} contigs are no pairs: heavy and light should alternate")
    for (heavy_id, heavy), (light_id, light) in zip(contigs[::2], contigs[1::2], strict=True):
        if _cell(heavy_id, "heavy") is None or _cell(heavy_id, "heavy") != _cell(light_id, "light"):
            raise PlumblineError(f"{path}: {heavy_id!r} and {light_id!r} are no heavy and light contig of one cell")
        domains = v_domain(heavy, HEAVY), v_domain(light, LIGHT)
        yield Pair(*domains) if all(domains) else None  # type: ignore[arg-type]


def _cell(name: str, chain: str) -> str | None:
    """Return the barcode in `heavy_chain_BARCODE-1_contig_1`; None for another chain."""
    match = re.fullmatch(rf"{chain}_chain_(.+)_contig_\d+", name)
    return match[1] if match else None


def read_oas_csv(path: Path) -> list[Pair]:
    """Return the pairs in a csv of the Observed Antibody Space: gzip, one line of metadata before the header.

    The published files are two consecutive gzip members, metadata and table, both of which must be read. Gaps of the
    alignment are removed.

    Raises:
        PlumblineError: the file is damaged or lacks a column.
    """
    lines = _unpack(path).split("\n", 1)
    rows = csv.DictReader(io.StringIO(lines[1] if len(lines) > 1 else ""), strict=True)
    columns = [f"sequence_alignment_aa_{chain}" for chain in CHAINS]
    lacking = [column for column in columns if column not in (rows.fieldnames or [])]
    if lacking:
        raise PlumblineError(f"{path} has no column {lacking[0]}: it is no table of paired antibodies")
    try:
        found = [Pair(*((row[column] or "").replace("-", "") for column in columns)) for row in rows]
    except csv.Error as error:
        raise PlumblineError(f"{path} cannot be read ({error}): delete it and fetch it again") from error
    pairs = [pair for pair in found if all(pair)]
    _say_how_many(len(found), len(pairs), "have a chain without a sequence")
    return pairs


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs in a FASTA file of contigs or a csv of the Observed Antibody Space, depending on its suffix.

    Raises:
        PlumblineError: the file is of another kind, or damaged.
    """
    if ".fasta" in path.suffixes:
        return read_contigs(path)
    if ".csv" in path.suffixes:
        return read_oas_csv(path)
    raise PlumblineError(f"{path}: antibodies are read from .fasta.gz or .csv.gz")


def _unpack(path: Path) -> str:
    try:
        return gzip.decompress(path.read_bytes()).decode()  # all members
    except (zlib.error, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise PlumblineError(f"{path} cannot be unpacked ({error}): delete it and fetch it again") from error


def _say_how_many(total: int, kept: int, why: str) -> None:
    log.log(logging.WARNING if kept < total else logging.INFO, "%d pairs: %d %s", total, total - kept, why)


def describe_pair(pair: Pair) -> dict[str, float | str] | None:
    """Return sequences, descriptors and target; None if a residue is not an amino acid, such as X.

    The target, stability, is minus the mean of the two chains' instability indices (Guruprasad et al., 1990).
    """
    if not all(chain and AMINO_ACIDS.issuperset(chain) for chain in pair):
        return None
    chains = [ProteinAnalysis(chain) for chain in pair]
    return {
        **pair._asdict(),
        **{
            f"{name}_{measure}": float(of(chain))
            for name, chain in zip(CHAINS, chains, strict=True)
            for measure, of in MEASURES.items()
        },
        "stability": -float(np.mean([chain.instability_index() for chain in chains])),
    }


def _describe_some(pairs: Iterable[Pair]) -> list[dict[str, float | str] | None]:
    return [describe_pair(pair) for pair in pairs]


def describe_pairs(pairs: Sequence[Pair], jobs: int = 1, block: int = 500) -> pd.DataFrame:
    """Return a row per pair: `heavy`, `light`, the descriptors, the target; the same for any number of `jobs`.

    Pairs with a residue that is not an amino acid are left out, with a warning that counts them. So are rows with the
    descriptors of an earlier row, since a tabular problem finds a row by its features.
    """
    blocks = [pairs[start : start + block] for start in range(0, len(pairs), block)]
    described = Parallel(n_jobs=jobs)(delayed(_describe_some)(one) for one in blocks)
    rows = [row for one in described for row in one if row is not None]
    table = pd.DataFrame(rows, columns=[*CHAINS, *DESCRIPTORS, *TARGETS])
    kept = table[~table.duplicated(subset=list(DESCRIPTORS))].reset_index(drop=True)
    log.log(
        logging.WARNING if len(kept) < len(pairs) else logging.INFO,
        "%d antibodies: %d have a residue that is no amino acid, %d repeat another's descriptors",
        len(pairs),
        len(pairs) - len(table),
        len(table) - len(kept),
    )
    return kept
