"""A dataset that needs no download: antibodies made by recombining and mutating human germline segments."""

import re

import numpy as np
from numpy.random import Generator

from plumbline.data.sources.antibodies import HEAVY, LIGHT, Pair

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
"""Human germline segments as amino acids, a few of the most used."""

RESIDUES = "ADEFGHIKLMNPQRSTVY"
"""What mutations and junctions are drawn from: a cysteine or tryptophan more would blur where the domain begins."""

JUNCTION = range(3, 13)
MUTATED = 0.2
"""The largest share of residues that is changed; somatic hypermutation reaches it."""


def mutate(chain: str, skeleton: re.Pattern[str], generator: Generator) -> str:
    """Return `chain` with up to a fifth of its residues replaced, such that it still is one whole V domain."""
    mutated = list(chain)
    rate = generator.uniform(0.0, MUTATED)
    for place in np.flatnonzero(generator.random(len(chain)) < rate):
        old = mutated[place]
        mutated[place] = RESIDUES[int(generator.integers(len(RESIDUES)))]
        if not whole(skeleton, "".join(mutated)):
            mutated[place] = old
    return "".join(mutated)


def whole(skeleton: re.Pattern[str], chain: str) -> bool:
    """Return whether `chain` is a V domain from end to end, whatever residue stands before it.

    A lambda chain whose fifth residue is a glutamine too would take the last one of the leader for its first.
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

    A heavy chain is a V and a J segment with a random junction between them, a light chain the two segments alone; each
    residue then has a chance of up to a fifth, drawn for each chain, to be replaced by another.
    """
    generator = np.random.default_rng(seed)
    found: dict[Pair, None] = {}
    while len(found) < size:
        found[_antibody(generator)] = None
    return list(found)
