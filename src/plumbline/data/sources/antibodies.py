"""Tables of antibodies: V domains extracted from contigs, and BioPython descriptors of both chains."""

import io
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.Seq import Seq
from Bio.SeqIO.FastaIO import SimpleFastaParser
from Bio.SeqUtils.ProtParam import ProteinAnalysis
from joblib import Parallel, delayed

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.archives import text_lines
from plumbline.data.sources.csv_rows import Bad, csv_rows, listed, say_left_out

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
    "flexibility": lambda chain: float(np.mean(chain.flexibility() or [math.nan])),  # none of fewer than 9 residues
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


class Germline(NamedTuple):
    """Beginnings of human V segments, one of each family, and endings of J segments, as amino acids."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]


HEAVY = Germline(
    starts=(
        "QVQLVQSGAEVKKPGASVKVSCKASGYTFT",
        "QITLKESGPTLVKPTQTLTLTCTFSGFSLS",
        "EVQLVESGGGLVQPGGSLRLSCAASGFTFS",
        "QVQLQESGPGLVKPSETLSLTCTVSGGSIS",
        "QVQLQQWGAGLLKPSETLSLTCAVYGGSFS",
        "EVQLVQSGAEVKKPGESLKISCKGSGYSFT",
        "QVQLQQSGPGLVKPSQTLSLTCAISGDSVS",
    ),
    ends=("WGQGTLVTVSS", "WGQGTMVTVSS", "WGQGTTVTVSS", "WGKGTTVTVSS", "WGRGTLVTVSS"),
)
LIGHT = Germline(
    starts=(
        "DIQMTQSPSSLSASVGDRVTITCRASQSIS",
        "DIVMTQSPLSLPVTPGEPASISCRSSQSLL",
        "EIVLTQSPGTLSLSPGERATLSCRASQSVS",
        "DIVMTQSPDSLAVSLGERATINCKSSQSVL",
        "ETTLTQSPAFMSATPGDKVNISCKASQDID",
        "EIVLTQSPDFQSVTPKEKVTITCRASQSIG",
        "QSVLTQPPSVSGAPGQRVTISCTGSSSNIG",
        "QSALTQPASVSGSPGQSITISCTGTSSDVG",
        "SYELTQPPSVSVSPGQTASITCSGDKLG",
        "SSELTQDPAVSVALGQTVRITCQGDSLR",
        "QPVLTQSSSASASLGSSVKLTCTLSSGHSS",
        "QAVLTQPSSLSASPGASASLTCTLRSGINV",
        "NFMLTQPHSVSESPGKTVTISCTRSSGSIA",
        "QAVVTQEPSLTVSPGGTVTLTCGSSTGAVT",
        "QTVVTQEPSFSVSPGGTVTLTCGLSSGSVS",
        "QPVLTQPPSASASLGASVTLTCTLSSGYSN",
        "QAGLTQPPSVSKGLRQTATLTCTGNSNNVG",
    ),
    ends=("FGQGTKVEIK", "FGGGTKVEIK", "FGPGTKVDIK", "FGQGTRLEIK", "FGGGTKLTVL", "FGTGTKVTVL", "FGGGTQLTVL"),
)

LEAST_START, LEAST_END = 60.0, 25.0
"""Least scores of the alignment with a beginning and an ending of the germline. In a unit of 15,758 chains the least
scores are 82 and 32; half of them are 136 and 51 or more."""

BETWEEN = 70
"""Number of residues after the start of a V domain in which no J segment begins."""


@cache
def _aligner() -> PairwiseAligner:
    """Build the aligner of a whole germline segment with some part of a sequence.

    An additional residue costs more than a missing one: close to the start, the database's own alignment shifts the
    start instead of opening a gap.
    """
    aligner = PairwiseAligner(mode="global", substitution_matrix=substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -15.0, -1.0
    aligner.open_internal_deletion_score = -25.0  # of a residue of the sequence, in the germline's view
    aligner.end_deletion_score = 0.0  # the sequence goes on before and after the segment
    return aligner


class _Fit(NamedTuple):
    """Where a segment fits best in a sequence; a place is None if the residue that it is of has no counterpart."""

    score: float
    first: int | None
    last: int | None


def _fit(sequence: str, segments: Sequence[str]) -> _Fit:
    """Return the fit of the segment with the greatest score; of the score 0 if none is like the sequence."""
    aligner = _aligner()
    scores = [aligner.score(sequence, segment) for segment in segments] if sequence else [0.0]
    best = int(np.argmax(scores))
    if scores[best] <= 0:
        return _Fit(0.0, None, None)
    ours, theirs = aligner.align(sequence, segments[best])[0].aligned
    whole = theirs[0][0] == 0, theirs[-1][1] == len(segments[best])
    return _Fit(scores[best], int(ours[0][0]) if whole[0] else None, int(ours[-1][1]) - 1 if whole[1] else None)


CODES = frozenset("ACGTURYSWKMBDHVN")
"""Nucleotides, and the codes of those that are not certain."""


def open_frames(nucleotides: str) -> Iterator[str]:
    """Yield the sequences between stop codons in the three forward reading frames, as amino acids or X."""
    for start in range(3):
        codons = nucleotides[start : len(nucleotides) - (len(nucleotides) - start) % 3]
        yield from str(Seq(codons).translate()).replace("J", "X").split("*")  # J: leucine or isoleucine


def v_domain(nucleotides: str, germline: Germline) -> str | None:
    """Return the V domain in a contig, from the germline's first residue to J's last; None if there is none.

    Both ends are those of the alignment with the germline. (Counting residues from the first cysteine back to the start
    goes wrong where the leader has a cysteine, or a mutation or an insertion is in the way.)

    Args:
        nucleotides: the contig, 5' to 3', leader and constant region included; gaps are skipped.
        germline: HEAVY or LIGHT.
    """
    contig = re.sub(r"[-.\s]", "", nucleotides).upper()
    if not CODES.issuperset(contig):
        return None
    for frame in sorted(open_frames(contig), key=len, reverse=True):
        if len(frame) < BETWEEN:
            break
        start = _fit(frame, germline.starts)
        if start.first is None or start.score < LEAST_START:
            continue
        end = _fit(frame[start.first + BETWEEN :], germline.ends)
        if end.last is not None and end.score >= LEAST_END:
            return frame[start.first : start.first + BETWEEN + end.last + 1]
    return None


COMMENTS = (";", "#", "!")
"""Beginnings of comment lines in FASTA files."""


def read_contigs(path: Path) -> list[Pair]:
    """Return the pairs in a FASTA file, compressed or not, in which heavy and light contigs of a cell alternate.

    Comments, empty lines and gaps are skipped, and letters may be lower case. Contigs without a partner, and pairs with
    a chain without a V domain, are left out, with a warning that counts and lists them.

    Raises:
        PlumblineError: the file is damaged, or no heavy contig is followed by the light one of its cell.
    """
    text = "\n".join(line for line in text_lines(path) if line.strip() and not line.startswith(COMMENTS))
    contigs = [((title.split() or [""])[0], sequence) for title, sequence in SimpleFastaParser(io.StringIO(text))]
    pairs: list[Pair] = []
    bad: Bad = []
    place = partners = 0
    while place < len(contigs):
        heavy, light = [*contigs[place : place + 2], ("", "")][:2]
        cell = _cell(heavy[0], "heavy")
        if cell is None or cell != _cell(light[0], "light"):
            bad.append((heavy[0], "no partner"))
            place += 1
            continue
        domains = v_domain(heavy[1], HEAVY), v_domain(light[1], LIGHT)
        if domains[0] is None or domains[1] is None:
            bad.append((heavy[0] if domains[0] is None else light[0], "no V domain"))
        else:
            pairs.append(Pair(domains[0], domains[1]))
        place += 2
        partners += 1
    if not partners:
        raise PlumblineError(
            f"{path}: {len(contigs)} contigs are no pairs: heavy and light contigs of one cell should alternate, "
            "as heavy_chain_BARCODE_contig_1 and light_chain_BARCODE_contig_2"
        )
    say_left_out(path, bad, len(pairs) + len(bad))
    return pairs


def _cell(name: str, chain: str) -> str | None:
    """Return the barcode in `heavy_chain_BARCODE-1_contig_1`; None for another chain."""
    match = re.fullmatch(rf"{chain}_chain_(.+)_contig_\d+", name)
    return match[1] if match else None


def read_oas_csv(path: Path) -> list[Pair]:
    """Return the pairs in a csv of the Observed Antibody Space, with or without its line of metadata.

    The published files are two consecutive gzip members, metadata and table, both of which must be read. The V domains
    are those of the database's own alignment, without its gaps. Rows without them are left out, with a warning that
    counts and lists them.

    Raises:
        PlumblineError: the file is damaged or lacks a column.
    """
    columns = {f"sequence_alignment_aa_{chain}": f"sequence_alignment_aa_{chain}" for chain in CHAINS}
    rows, bad = csv_rows(path, columns, "no table of paired antibodies")
    pairs: list[Pair] = []
    for line, cells in rows.items():
        pair = Pair(*(re.sub("[-.]", "", cells[column]).upper() for column in columns))
        if all(pair):
            pairs.append(pair)
        else:
            bad.append((f"line {line}", "a chain without a sequence"))
    say_left_out(path, bad, len(pairs) + len(bad))
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

    Pairs with a residue that is not an amino acid, or a chain too short for a descriptor, are left out, with a warning
    that counts them and names the first. So are rows with the descriptors of an earlier row, since a tabular problem
    finds a row by its features.
    """
    blocks = [pairs[start : start + block] for start in range(0, len(pairs), block)]
    described = Parallel(n_jobs=jobs)(delayed(_describe_some)(one) for one in blocks)
    rows = [row for one in described for row in one]
    table = pd.DataFrame([row for row in rows if row is not None], columns=[*CHAINS, *DESCRIPTORS, *TARGETS])
    finite = np.isfinite(table[[*DESCRIPTORS, *TARGETS]].to_numpy("float64")).all(axis=1)
    first = ~table.duplicated(subset=list(DESCRIPTORS)).to_numpy()
    kept = table[finite & first].reset_index(drop=True)
    strange = [" ".join(pair) for pair, row in zip(pairs, rows, strict=True) if row is None]
    log.log(
        logging.WARNING if len(kept) < len(pairs) else logging.INFO,
        "%d antibodies: %d have a residue that is no amino acid, %d a chain too short to describe, %d repeat another's "
        "descriptors%s",
        len(pairs),
        len(pairs) - len(table),
        int((~finite).sum()),
        int((finite & ~first).sum()),
        listed([*strange, *table["heavy"][~finite]]),
    )
    return kept
