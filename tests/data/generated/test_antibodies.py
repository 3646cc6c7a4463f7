import pytest

from plumbline.data.generated.antibodies import (
    HEAVY,
    HEAVY_J,
    HEAVY_V,
    LIGHT,
    LIGHT_J,
    LIGHT_V,
    complete,
    generated_antibodies,
)
from plumbline.data.sources.antibodies import AMINO_ACIDS, DESCRIPTORS, describe_pairs

PAIRS = generated_antibodies(200, 0)


@pytest.mark.parametrize("segment", [*HEAVY_V.values(), *LIGHT_V.values()])
def test_germline_segments_have_their_cysteines_where_everybody_has_them(segment: str) -> None:
    heavy_or_lambda = segment in HEAVY_V.values() or segment == LIGHT_V["IGLV2-14"]
    assert segment.index("C") == (21 if heavy_or_lambda else 22)
    assert segment.count("C") == 2
    assert "YYC" in segment


@pytest.mark.parametrize("v", LIGHT_V)
def test_unmutated_chains_are_whole(v: str) -> None:
    for j in LIGHT_J[v[:3]].values():
        assert complete(LIGHT, LIGHT_V[v] + j)
    for heavy in HEAVY_V.values():
        assert all(complete(HEAVY, heavy + "DRG" + j) for j in HEAVY_J.values())


def test_a_piece_is_not_whole() -> None:
    chain = PAIRS[0].heavy
    assert not complete(HEAVY, chain[1:])
    assert not complete(HEAVY, chain[:-1])
    assert not complete(HEAVY, chain + "A")


def test_it_repeats_itself_and_another_seed_does_not() -> None:
    assert generated_antibodies(20, 0) == PAIRS[:20]
    assert generated_antibodies(20, 1) != PAIRS[:20]


def test_all_differ_and_are_whole_v_domains() -> None:
    assert len(set(PAIRS)) == len(PAIRS) == 200
    for heavy, light in PAIRS:
        assert complete(HEAVY, heavy)
        assert complete(LIGHT, light)
        assert AMINO_ACIDS.issuperset(heavy + light)


def test_every_segment_is_used() -> None:
    tails = {heavy[-11:] for heavy, _ in PAIRS}
    assert {j[-11:] for j in HEAVY_J.values()} <= tails
    for v in LIGHT_V.values():
        assert max(sum(a == b for a, b in zip(v, light, strict=False)) for _, light in PAIRS) > 0.9 * len(v)


def test_as_a_problem_stability_spreads_without_ties() -> None:
    table = describe_pairs(PAIRS)
    assert len(table) == 200
    low, high = table["stability"].quantile([0.05, 0.95])
    assert high - low > 10
    assert table["stability"].nunique() > 190
    assert not table.duplicated(subset=list(DESCRIPTORS)).any()
