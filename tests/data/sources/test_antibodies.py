import csv
import gzip
import io
import logging
import os
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_name
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.antibodies import generated_antibodies
from plumbline.data.sources.antibodies import (
    CHAINS,
    DESCRIPTORS,
    HEAVY,
    LIGHT,
    MEASURES,
    TARGETS,
    Pair,
    describe_pair,
    describe_pairs,
    read_contigs,
    read_oas_csv,
    read_pairs,
    v_domain,
)

# A heavy, a kappa and a lambda chain from germline segments, as a textbook prints them.
HEAVY_CHAIN = (
    "EVQLLESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK"
    "DRGYFDYWGQGTLVTVSS"
)
KAPPA = "DIQMTQSPSSLSASVGDRVTITCRASQSISSYLNWYQQKPGKAPKLLIYAASSLQSGVPSRFSGSGSGTDFTLTISSLQPEDFATYYCQQSYSTPWTFGQGTKVEIK"
LAMBDA = "QSALTQPASVSGSPGQSITISCTGTSSDVGGYNYVSWYQQHPGKAPKLMIYEVSNRPSGVSNRFSGSKSGNTASLTISGLQAEDEADYYCSSYTSSSVVFGGGTKLTVL"
LEADERS = {HEAVY: "MEFGLSWLFLVAILKGVQC", LIGHT: "MAWALLLLTLLTQGTGSWA"}
CONSTANT = {HEAVY: "ASTKGPSVFPLAPSSK", LIGHT: "GQPKAAPSVTLFPPSS"}
CODONS: dict[str, list[str]] = {}
for codon, residue in unambiguous_dna_by_name["Standard"].forward_table.items():
    CODONS.setdefault(residue, []).append(codon)


def contig(chain: str, germline, shift: int = 0, seed: int = 0) -> str:
    """Return nucleotides that code for a chain between its leader and its constant region, `shift` out of frame."""
    draw = random.Random(seed)
    coding = "".join(draw.choice(CODONS[residue]) for residue in LEADERS[germline] + chain + CONSTANT[germline])
    return "TAG" * 3 + "G" * shift + coding


def fasta(path: Path, *records: tuple[str, str]) -> Path:
    path.write_bytes(gzip.compress("".join(f">{name}\n{sequence}\n" for name, sequence in records).encode()))
    return path


def cell(barcode: str, heavy: str, light: str) -> list[tuple[str, str]]:
    return [(f"heavy_chain_{barcode}-1_contig_1", heavy), (f"light_chain_{barcode}-1_contig_2", light)]


def oas_csv(path: Path, rows: list[dict[str, str]], metadata: str = '{"Run": 1, "Author": "us, et al."}') -> Path:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    quoted = '"' + metadata.replace('"', '""') + '"\n'
    path.write_bytes(gzip.compress(quoted.encode()) + gzip.compress(table.getvalue().encode()))
    return path


def aligned(heavy: str, light: str) -> dict[str, str]:
    return {
        "sequence_id_heavy": "x",
        "sequence_alignment_aa_heavy": heavy,
        "sequence_id_light": "y",
        "sequence_alignment_aa_light": light,
    }


class TestVDomain:
    @pytest.mark.parametrize("shift", [0, 1, 2])
    @pytest.mark.parametrize(("chain", "germline"), [(HEAVY_CHAIN, HEAVY), (KAPPA, LIGHT), (LAMBDA, LIGHT)])
    def test_leader_and_constant_region_are_removed_in_any_frame(self, chain: str, germline, shift: int) -> None:
        for seed in range(5):
            assert v_domain(contig(chain, germline, shift, seed), germline) == chain

    @given(seed=st.integers(0, 10_000))
    @example(seed=354)  # would have had a second glutamine where the first framework region may begin
    @settings(max_examples=60)
    def test_mutated_chains_too(self, seed: int) -> None:
        (pair,) = generated_antibodies(1, seed)
        assert v_domain(contig(pair.heavy, HEAVY, seed % 3, seed), HEAVY) == pair.heavy
        assert v_domain(contig(pair.light, LIGHT, seed % 3, seed), LIGHT) == pair.light

    @pytest.mark.slow
    @given(seed=st.integers(0, 10_000), place=st.integers(10, 22), change=st.sampled_from(["", "G", "SG", "C", "W"]))
    @settings(max_examples=60)
    def test_a_changed_first_framework_region_has_no_leader(self, seed: int, place: int, change: str) -> None:
        """An insertion, a deletion, or a mutation, of a conserved residue too, does not move the start."""
        for chain, germline in ((HEAVY_CHAIN, HEAVY), (KAPPA, LIGHT), (LAMBDA, LIGHT)):
            changed = chain[:place] + change + chain[place + 1 :]
            assert v_domain(contig(changed, germline, seed % 3, seed), germline) == changed

    @pytest.mark.parametrize("lost", ["C", "W"])
    def test_without_a_conserved_residue_too(self, lost: str) -> None:
        for chain, germline in ((HEAVY_CHAIN, HEAVY), (KAPPA, LIGHT), (LAMBDA, LIGHT)):
            for place in (place for place, residue in enumerate(chain) if residue == lost):
                changed = f"{chain[:place]}Y{chain[place + 1 :]}"
                assert v_domain(contig(changed, germline), germline) == changed

    def test_codes_of_uncertain_nucleotides_are_read(self) -> None:
        whole = contig(HEAVY_CHAIN, HEAVY)
        place = 9 + 3 * (len(LEADERS[HEAVY]) + 40)
        for code, residue in (("NNN", "X"), ("CTN", "L"), ("MTT", "X"), ("RAY", "B")):
            found = v_domain(whole[:place] + code + whole[place + 3 :], HEAVY)
            assert found == f"{HEAVY_CHAIN[:40]}{residue}{HEAVY_CHAIN[41:]}"

    def test_a_stop_codon_inside_is_no_domain(self) -> None:
        whole = contig(HEAVY_CHAIN, HEAVY)
        middle = 9 + 3 * (len(LEADERS[HEAVY]) + 60)
        assert v_domain(whole[:middle] + "TAA" + whole[middle + 3 :], HEAVY) is None

    def test_a_lost_base_is_no_domain(self) -> None:
        whole = contig(HEAVY_CHAIN, HEAVY)
        assert v_domain(whole[:200] + whole[201:], HEAVY) is None

    def test_a_contig_that_ends_before_j_is_no_domain(self) -> None:
        whole = contig(KAPPA, LIGHT)
        assert v_domain(whole[: 9 + 3 * (len(LEADERS[LIGHT]) + len(KAPPA) - 1)], LIGHT) is None

    def test_a_light_chain_is_no_heavy_one(self) -> None:
        assert v_domain(contig(KAPPA, LIGHT), HEAVY) is None
        assert v_domain(contig(HEAVY_CHAIN, HEAVY), LIGHT) is None

    @pytest.mark.parametrize("text", ["", "A", "ACG", "NNNNNN"])
    def test_nothing_in_nothing_out(self, text: str) -> None:
        assert v_domain(text, HEAVY) is None


class TestReadContigs:
    def test_pairs_in_order_without_those_that_show_no_domain(self, tmp_path: Path, caplog) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.antibodies")
        good = contig(HEAVY_CHAIN, HEAVY)
        path = fasta(
            tmp_path / "some.fasta.gz",
            *cell("AAA", good, contig(KAPPA, LIGHT, 1)),
            *cell("AAC", good[:300], contig(KAPPA, LIGHT)),
            *cell("AAG", good, contig(LAMBDA, LIGHT, 2)),
        )
        assert read_contigs(path) == [Pair(HEAVY_CHAIN, KAPPA), Pair(HEAVY_CHAIN, LAMBDA)]
        assert "some.fasta.gz: 1 of 3 rows are left out (heavy_chain_AAC-1_contig_1: no V domain)" in caplog.text
        assert read_pairs(path) == read_contigs(path)

    @pytest.mark.parametrize(
        "records",
        [
            cell("AAA", "ACG", "ACG")[:1],
            cell("AAA", "ACG", "ACG")[::-1],
            [cell("AAA", "ACG", "ACG")[0], cell("AAC", "ACG", "ACG")[1]],
            [("one", "ACG"), ("other", "ACG")],
            [],
        ],
    )
    def test_contigs_that_do_not_alternate_are_one_line(self, tmp_path: Path, records) -> None:
        path = fasta(tmp_path / "some.fasta.gz", *records)
        with pytest.raises(PlumblineError, match=r"some\.fasta\.gz: .*heavy and light") as error:
            read_contigs(path)
        assert "\n" not in str(error.value)


def odd_fasta(draw: random.Random, records: list[tuple[str, str]]) -> bytes:
    """Return FASTA as somebody may write it, of the same contigs."""
    end = draw.choice(["\n", "\r\n"])
    lines = draw.choice([[], [""], ["; a comment", "", "# another"], ["! all"]])
    for name, sequence in records:
        lines.append(f">{name}{draw.choice(['', ' heavy_chain_X-1_contig_9', chr(9) + 'length=1', ' '])}")
        text = draw.choice([str, str.lower])(sequence)
        for _ in range(draw.randrange(3)):
            place = draw.randrange(len(text))
            text = text[:place] + draw.choice(["-", "---", ".", " "]) + text[place:]
        width = draw.choice([60, 80, 10_000])
        lines += [text[i : i + width] for i in range(0, len(text), width)] + draw.choice([[], [""], ["; a comment"]])
    return (draw.choice(["", "\ufeff"]) + end.join(lines) + draw.choice(["", end, "\n\n"])).encode()


class TestOddFasta:
    PAIRS = (Pair(HEAVY_CHAIN, KAPPA), Pair(HEAVY_CHAIN, LAMBDA))

    def records(self) -> list[tuple[str, str]]:
        cells = [
            cell(name, contig(pair.heavy, HEAVY, 1), contig(pair.light, LIGHT, 2))
            for name, pair in zip(("AAA", "AAC"), self.PAIRS, strict=True)
        ]
        return [record for one in cells for record in one]

    @pytest.mark.parametrize("seed", range(30))
    def test_any_layout_is_read(self, tmp_path: Path, seed: int) -> None:
        draw = random.Random(seed)
        content = odd_fasta(draw, self.records())
        path = tmp_path / draw.choice(["some.fasta", "some.fasta.gz"])
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
        assert read_pairs(path) == list(self.PAIRS)

    @pytest.mark.parametrize("lost", range(4))
    def test_a_contig_without_a_partner_costs_no_other_pair(self, tmp_path: Path, lost: int, caplog) -> None:
        records = self.records()
        del records[lost]
        path = fasta(tmp_path / "some.fasta.gz", *records)
        assert read_contigs(path) == [self.PAIRS[1 - lost // 2]]
        partner = self.records()[lost ^ 1][0]
        assert f"1 of 2 rows are left out ({partner}: no partner)" in caplog.text

    @pytest.mark.parametrize("strange", ["N" * 400, "*", "EVQLLES", "", "caf\u00e9", "ACG?"])
    def test_what_is_no_contig_costs_no_other_pair(self, tmp_path: Path, strange: str, caplog) -> None:
        records = self.records()
        records[0] = records[0][0], strange
        path = fasta(tmp_path / "some.fasta.gz", *records)
        assert read_contigs(path) == [self.PAIRS[1]]
        assert f"1 of 2 rows are left out ({records[0][0]}: no V domain)" in caplog.text

    def test_damaged_bytes_are_pairs_or_one_line(self, tmp_path: Path) -> None:
        said: list[str] = []
        draw, whole = random.Random(0), odd_fasta(random.Random(0), self.records())
        path = tmp_path / "some.fasta"
        for _ in range(60):
            content = bytearray(whole)
            for _ in range(draw.choice([1, 1, 20])):
                content[draw.randrange(len(content))] = draw.randrange(256)
            path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
            try:
                assert all(isinstance(pair, Pair) for pair in read_contigs(path))
            except PlumblineError as error:
                said.append(str(error))
        assert not any("\n" in one for one in said)


class TestReadOasCsv:
    @pytest.mark.parametrize("metadata", [None, '"{""Run"": 1, ""By"": ""us, all""}"', '{"Run": 1, "By": "us, all"}'])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_with_or_without_metadata_and_marks(
        self, tmp_path: Path, metadata: str | None, end: str, mark: str
    ) -> None:
        rows = [
            "x,sequence_alignment_aa_light,sequence_alignment_aa_heavy",
            '"a, b",di--q,EV-Q.L',
            "short,row",
            "c,QSAL,QVQL",
        ]
        text = mark + end.join([*([] if metadata is None else [metadata]), *rows])
        (tmp_path / "unit.csv").write_bytes(text.encode())
        (tmp_path / "unit.csv.gz").write_bytes(gzip.compress(text.encode()))
        for name in ("unit.csv", "unit.csv.gz"):
            assert read_pairs(tmp_path / name) == [Pair("EVQL", "DIQ"), Pair("QVQL", "QSAL")]

    def test_both_gzip_members_are_read_and_gaps_removed(self, tmp_path: Path) -> None:
        rows = [aligned("EV-QL", "DI--Q"), aligned("QVQL", "QSAL")]
        path = oas_csv(tmp_path / "unit.csv.gz", rows)
        assert read_oas_csv(path) == [Pair("EVQL", "DIQ"), Pair("QVQL", "QSAL")]
        assert read_pairs(path) == read_oas_csv(path)

    def test_one_member_is_read_just_so(self, tmp_path: Path) -> None:
        path = oas_csv(tmp_path / "unit.csv.gz", [aligned("EVQL", "DIQ")])
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))
        assert read_oas_csv(path) == [Pair("EVQL", "DIQ")]

    def test_a_row_without_a_chain_is_left_out_and_counted(self, tmp_path: Path, caplog) -> None:
        path = oas_csv(tmp_path / "unit.csv.gz", [aligned("", "DIQ"), aligned("EVQL", "DIQ")])
        assert read_oas_csv(path) == [Pair("EVQL", "DIQ")]
        assert "unit.csv.gz: 1 of 2 rows are left out (line 3: a chain without a sequence)" in caplog.text

    def test_metadata_alone_is_no_table(self, tmp_path: Path) -> None:
        path = tmp_path / "unit.csv.gz"
        path.write_bytes(gzip.compress(b'"{""Run"": 1}"\n'))
        with pytest.raises(PlumblineError, match="has no column sequence_alignment_aa_heavy"):
            read_oas_csv(path)

    def test_a_missing_column_is_named(self, tmp_path: Path) -> None:
        row = {key: value for key, value in aligned("EVQL", "DIQ").items() if not key.endswith("aa_light")}
        with pytest.raises(PlumblineError, match="has no column sequence_alignment_aa_light"):
            read_oas_csv(oas_csv(tmp_path / "unit.csv.gz", [row]))

    @pytest.mark.parametrize("reader", [read_oas_csv, read_contigs])
    def test_a_truncated_file_is_one_line_with_the_remedy(self, tmp_path: Path, reader) -> None:
        path = tmp_path / "unit.gz"
        whole = gzip.compress(np.random.default_rng(0).bytes(5000).hex().encode())
        for content in (whole[: len(whole) // 2], b"<html>not found</html>"):
            path.write_bytes(content)
            with pytest.raises(PlumblineError, match=r"unit\.gz cannot be unpacked.*fetch it again") as error:
                reader(path)
            assert "\n" not in str(error.value)

    def test_another_kind_of_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(PlumblineError, match=r"antibodies are read from \.fasta\.gz or \.csv\.gz"):
            read_pairs(tmp_path / "unit.txt")


class TestDescribePair:
    def test_of_glycines_and_tryptophans_by_hand(self) -> None:
        row = describe_pair(Pair("G" * 30 + "W" * 10, "K" * 20))
        assert row is not None
        # Average masses in water-free residues: glycine 57.0513, tryptophan 186.2099, lysine 128.1723; water 18.0153.
        assert row["heavy_molecular_weight"] == pytest.approx(30 * 57.0513 + 10 * 186.2099 + 18.0153, abs=0.05)
        assert row["light_molecular_weight"] == pytest.approx(20 * 128.1723 + 18.0153, abs=0.05)
        assert row["heavy_aromaticity"] == 0.25
        # Kyte and Doolittle: glycine -0.4, tryptophan -0.9, lysine -3.9.
        assert row["heavy_gravy"] == pytest.approx((30 * -0.4 + 10 * -0.9) / 40)
        assert row["light_gravy"] == pytest.approx(-3.9)
        assert row["heavy_extinction_reduced"] == 10 * 5500
        assert row["light_extinction_oxidised"] == 0
        assert row["light_charge_at_ph7"] > 19
        assert row["light_isoelectric_point"] > 10

    def test_stability_is_minus_the_mean_instability_index(self) -> None:
        # Guruprasad's table: GG 13.34, GW 13.34, WW 1.0, KK 1.0; the index is 10/length times the sum over neighbours.
        row = describe_pair(Pair("G" * 30 + "W" * 10, "K" * 20))
        assert row is not None
        heavy = 10 / 40 * (29 * 13.34 + 13.34 + 9 * 1.0)
        light = 10 / 20 * 19 * 1.0
        assert row["stability"] == pytest.approx(-(heavy + light) / 2)

    def test_columns_and_types(self) -> None:
        row = describe_pair(Pair(HEAVY_CHAIN, KAPPA))
        assert row is not None
        assert list(row) == [*CHAINS, *DESCRIPTORS, *TARGETS]
        assert len(DESCRIPTORS) == 2 * len(MEASURES)
        assert all(isinstance(row[name], float) for name in (*DESCRIPTORS, *TARGETS))

    @pytest.mark.parametrize("chain", ["", "EVQX", "EV*L", "EV-L", "evql"])
    def test_what_is_no_chain_is_none(self, chain: str) -> None:
        assert describe_pair(Pair(chain, KAPPA)) is None
        assert describe_pair(Pair(HEAVY_CHAIN, chain)) is None


class TestDescribePairs:
    SOME = generated_antibodies(7, 1)

    def test_what_is_left_out_is_counted_in_the_log(self, caplog) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.antibodies")
        table = describe_pairs([self.SOME[0], Pair("EVXL", KAPPA), self.SOME[0], self.SOME[1]])
        assert table["heavy"].tolist() == [pair.heavy for pair in self.SOME[:2]]
        assert (
            "4 antibodies: 1 have a residue that is no amino acid, 0 a chain too short to describe, 1 repeat"
            in caplog.text
        )
        assert f"descriptors (EVXL {KAPPA[:55]})" in caplog.text

    @pytest.mark.slow
    def test_blocks_and_jobs_make_no_difference(self) -> None:
        alone = describe_pairs(self.SOME)
        pd.testing.assert_frame_equal(describe_pairs(self.SOME, block=2), alone, check_exact=True)
        pd.testing.assert_frame_equal(describe_pairs(self.SOME, jobs=2, block=3), alone, check_exact=True)

    def test_a_chain_too_short_to_describe_costs_no_other(self, caplog) -> None:
        short = [Pair("EVQLLESG", KAPPA), Pair(HEAVY_CHAIN, "DIQ")]
        table = describe_pairs([self.SOME[0], *short, self.SOME[1]])
        assert table["heavy"].tolist() == [pair.heavy for pair in self.SOME[:2]]
        assert "2 a chain too short to describe" in caplog.text

    def test_nothing_in_nothing_out(self) -> None:
        assert describe_pairs([]).columns.tolist() == [*CHAINS, *DESCRIPTORS, *TARGETS]


class TestRealUnit:
    """Run 1279067 of the database, against V domains cut by somebody else from the same contigs."""

    @pytest.fixture(scope="class")
    def mirror(self) -> Path:
        folder = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere"))
        if not (folder / "1279067_1_Paired_subset_columns.csv.gz").is_file():
            pytest.skip("needs PLUMBLINE_MIRROR with run 1279067")
        return folder

    @pytest.fixture(scope="class")
    def reference(self, mirror: Path) -> list[dict[str, str]]:
        with gzip.open(mirror / "1279067_1_Paired_subset_columns.csv.gz", "rt", newline="") as file:
            file.readline()
            return list(csv.DictReader(file))

    @pytest.mark.slow
    def test_the_csv_has_7879_pairs(self, mirror: Path, reference: list[dict[str, str]]) -> None:
        pairs = read_oas_csv(mirror / "1279067_1_Paired_subset_columns.csv.gz")
        assert len(pairs) == 7879
        expected = [tuple(row[f"sequence_alignment_aa_{chain}"] for chain in CHAINS) for row in reference]
        assert [tuple(pair) for pair in pairs] == expected

    # Numbers of the rows that need an alignment, with insertions and deletions in the first framework region, cysteines
    # in the leader, and without the conserved cysteines, tryptophan, or J motif.
    HARD = (
        6,
        17,
        40,
        94,
        100,
        128,
        238,
        520,
        642,
        1012,
        1257,
        1280,
        2072,
        2163,
        3229,
        4415,
        4810,
        4902,
        5007,
        5520,
        5647,
    )
    HARD += (6391, 6734, 7407, 7452, 7625, 7712, 7803)
    ROWS = (*HARD, *range(1, 7879, 90))

    def unequal(self, reference: list[dict[str, str]], rows: Iterable[int]) -> dict[str, tuple[str | None, str]]:
        """Return the chains that are not those of the database's alignment: ours and theirs."""
        found = {}
        for row in rows:
            for chain, germline in (("heavy", HEAVY), ("light", LIGHT)):
                ours = v_domain(reference[row][f"sequence_{chain}"], germline)
                theirs = reference[row][f"sequence_alignment_aa_{chain}"]
                if ours != theirs:
                    found[f"{reference[row][f'sequence_id_{chain}']} {chain}"] = ours, theirs
        return found

    def test_v_domains_are_those_of_the_alignment(self, reference: list[dict[str, str]]) -> None:
        assert self.unequal(reference, self.ROWS) == {}

    @pytest.mark.slow
    def test_all_but_two_of_15758_v_domains_are_those_of_the_alignment(self, reference: list[dict[str, str]]) -> None:
        """One is cut off in the alignment within J, and one has the last residue of its leader there."""
        cut, led = self.unequal(reference, range(len(reference))).items()
        assert cut[0] == "CCCAATCCACCTGGTG-1_contig_1 light"
        assert cut[1][0] == f"{cut[1][1]}GGTKLTVL"
        assert led[0] == "TACGGGCAGGCATGGT-1_contig_2 heavy"
        assert led[1][1] == f"C{led[1][0]}"

    @pytest.mark.slow
    def test_all_contigs_give_pairs(self, mirror: Path) -> None:
        assert len(read_contigs(mirror / "1279067_1_Paired_sequences.fasta.gz")) == 8437
