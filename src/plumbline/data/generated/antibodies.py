"""Generated antibodies: recombined and mutated human germline segments."""

import re

import numpy as np
from numpy.random import Generator

from plumbline.data.sources.antibodies import Pair

# The skeleton that mutations leave intact: the first framework region of known length up to its cysteine, the
# tryptophan of the second, the cysteine that ends the third, and the J motif with the following residues of J. The
# first cysteine is at 22 in heavy chains and at 23 (kappa) or 22 (lambda) in light ones, which have a glutamine at 6.
HEAVY = re.compile(r"(?=(.{21}C.{8,20}W.{40,90}C.{2,45}WG.G.{7}))")
LIGHT = re.compile(r"(?=(.{5}Q.{15,16}C.{8,20}W.{40,90}C.{2,25}FG.G.{6}))")

HEAVY_V: dict[str, str] = {
    "IGHV1-69": "QVQLVQSGAEVKKPGSSVKVSCKASGGTFSSYAISWVRQAPGQGLEWMGGIIPIFGTANYAQKFQGRVTITADESTSTAYMELSSLRSEDTAVYYCAR",
    "IGHV3-23": "EVQLLESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK",
    "IGHV4-34": "QVQLQQWGAGLLKPSETLSLTCAVYGGSFSGYYWSWIRQPPGKGLEWIGEINHSGSTNYNPSLKSRVTISVDTSKNQFSLKLSSVTAADTAVYYCAR",
}
LIGHT_V: dict[str, str] = {
    "IGKV1-39": "DIQMTQSPSSLSASVGDRVTITCRASQSISSYLNWYQQKPGKAPKLLIYAASSLQSGVPSRFSGSGSGTDFTLTISSLQPEDFATYYCQQSYSTP",
    "IGKV3-20": "EIVLTQSPGTLSLSPGERATLSCRASQSVSSSYLAWYQQKPGQAPRLLIYGASSRATGIPDRFSGSGSGTDFTLTISRLEPEDFAVYYCQQYGSSP",
    "IGLV2-14": "QSALTQPASVSGSPGQSITISCTGTSSDVGGYNYVSWYQQHPGKAPKLMIYEVSNRPSGVSNRFSGSKSGNTASLTISGLQAEDEADYYCSSYTSSS",
}
HEAVY_J: dict[str, str] = {"IGHJ4": "YFDYWGQGTLVTVSS", "IGHJ6": "YYYYGMDVWGQGTTVTVSS"}
LIGHT_J: dict[str, dict[str, str]] = {
    "IGK": {"IGKJ1": "WTFGQGTKVEIK", "IGKJ4": "LTFGGGTKVEIK"},
    "IGL": {"IGLJ2": "VVFGGGTKLTVL"},
}
"""Some of the most used human germline segments, as amino acids."""

RESIDUES = "ADEFGHIKLMNPQRSTVY"
"""Residues of mutations and junctions. A further cysteine or tryptophan would make the domain's start ambiguous."""

JUNCTION = range(3, 13)
MUTATED = 0.2
"""Greatest share of mutated residues; somatic hypermutation reaches it."""


def mutate(chain: str, skeleton: re.Pattern[str], generator: Generator) -> str:
    """Return `chain` with up to a fifth of its residues replaced, such that it is still one complete V domain."""
    mutated = list(chain)
    rate = generator.uniform(0.0, MUTATED)
    for place in np.flatnonzero(generator.random(len(chain)) < rate):
        old = mutated[place]
        mutated[place] = RESIDUES[int(generator.integers(len(RESIDUES)))]
        if not complete(skeleton, "".join(mutated)):
            mutated[place] = old
    return "".join(mutated)


def complete(skeleton: re.Pattern[str], chain: str) -> bool:
    """Return whether `chain` is a V domain from end to end, for any residue before it.

    If the fifth residue of a lambda chain is a glutamine too, the pattern takes the leader's last residue as the first.
    """
    match = skeleton.match(chain)
    return match is not None and match[1] == chain and skeleton.match(f"X{chain}") is None


def _pick(segments: dict[str, str], generator: Generator) -> str:
    return sorted(segments)[int(generator.integers(len(segments)))]


def _antibody(generator: Generator) -> Pair:
    junction = "".join(RESIDUES[i] for i in generator.integers(len(RESIDUES), size=generator.choice(JUNCTION)))
    heavy = HEAVY_V[_pick(HEAVY_V, generator)] + junction + HEAVY_J[_pick(HEAVY_J, generator)]
    light_v = _pick(LIGHT_V, generator)
    light_j = LIGHT_J[light_v[:3]]
    light = LIGHT_V[light_v] + light_j[_pick(light_j, generator)]
    return Pair(mutate(heavy, HEAVY, generator), mutate(light, LIGHT, generator))


def generated_antibodies(size: int, seed: int) -> list[Pair]:
    """Return `size` different pairs of V domains; the same for the same seed.

    A heavy chain is a V and a J segment with a random junction between them; a light chain is the two segments alone.
    Each residue is then replaced by another with a probability of up to a fifth, drawn for each chain.
    """
    generator = np.random.default_rng(seed)
    pairs: dict[Pair, None] = {}
    while len(pairs) < size:
        pairs[_antibody(generator)] = None
    return list(pairs)
