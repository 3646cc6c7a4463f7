import gzip
import io
import logging
import math
import os
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.molecules import (
    DESCRIPTORS,
    DOCKING,
    LOGP_MEAN,
    LOGP_SD,
    RING_MEAN,
    RING_SD,
    SA_MEAN,
    SA_SD,
    TARGETS,
    canonical_molecules,
    describe_molecule,
    describe_molecules,
    large_ring_penalty,
    penalized_logp,
    read_docking,
    read_smiles,
    sample_rows,
)

LINES = b'CCO\n"c1ccccc1"\n\n  CC(=O)O  \n'
READ = ["CCO", "c1ccccc1", "CC(=O)O"]
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SOME = ["CCO", "c1ccccc1", ASPIRIN, "CC(=O)Nc1ccc(O)cc1", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CCCCCC", "OCC(O)CO"]


def archive(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"{name}.txt")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return path


class TestReadSmiles:
    def test_text(self, tmp_path: Path) -> None:
        path = tmp_path / "molecules.smiles"
        path.write_bytes(LINES)
        assert read_smiles(path) == READ

    def test_gzip(self, tmp_path: Path) -> None:
        path = tmp_path / "molecules.smiles.gz"
        path.write_bytes(gzip.compress(LINES))
        assert read_smiles(path) == READ

    def test_one_member_of_an_archive(self, tmp_path: Path) -> None:
        path = archive(tmp_path / "molecules.txt.gz", other=b"N\n", zinc=LINES)
        assert read_smiles(path, "zinc.txt") == READ

    def test_windows_line_ends(self, tmp_path: Path) -> None:
        path = tmp_path / "molecules.smiles"
        path.write_bytes(LINES.replace(b"\n", b"\r\n"))
        assert read_smiles(path) == READ

    def test_an_archive_without_the_member_is_one_line(self, tmp_path: Path) -> None:
        path = archive(tmp_path / "molecules.tar.gz", other=b"N\n")
        with pytest.raises(PlumblineError, match=r"molecules\.tar\.gz cannot be unpacked.*zinc\.txt"):
            read_smiles(path, "zinc.txt")

    @pytest.mark.parametrize("member", [None, "zinc.txt"])
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
    def test_a_truncated_archive_is_one_line_with_the_remedy(
        self, tmp_path: Path, member: str | None, share: float
    ) -> None:
        content = np.random.default_rng(0).bytes(20_000).hex().encode()
        path = tmp_path / "molecules.gz"
        if member:
            archive(path, zinc=content)
        else:
            path.write_bytes(gzip.compress(content))
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(PlumblineError, match=r"molecules\.gz cannot be unpacked.*fetch it again") as error:
            read_smiles(path, member)
        assert "\n" not in str(error.value)

    def test_damage_inside_a_gzip_file_is_one_line(self, tmp_path: Path) -> None:
        content = bytearray(gzip.compress(np.random.default_rng(0).bytes(20_000).hex().encode()))
        content[1000:1100] = bytes(100)
        path = tmp_path / "molecules.gz"
        path.write_bytes(bytes(content))
        with pytest.raises(PlumblineError, match="cannot be unpacked"):
            read_smiles(path)

    def test_what_is_no_archive_is_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "molecules.gz"
        path.write_bytes(b"<html>not found</html>")
        for member in (None, "zinc.txt"):
            with pytest.raises(PlumblineError, match="cannot be unpacked"):
                read_smiles(path, member)

    def test_a_member_that_is_a_folder_is_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "molecules.tar.gz"
        with tarfile.open(path, "w:gz") as file:
            entry = tarfile.TarInfo("zinc.txt")
            entry.type = tarfile.DIRTYPE
            file.addfile(entry)
        with pytest.raises(PlumblineError, match="cannot be unpacked"):
            read_smiles(path, "zinc.txt")


class TestSampleRows:
    @given(size=st.integers(0, 60), n=st.integers(1, 80), seed=st.integers(0, 2**31), again=st.integers(0, 2**31))
    def test_it_draws_without_replacement_in_order_and_repeats_itself(
        self, size: int, n: int, seed: int, again: int
    ) -> None:
        rows = [f"C{i:03d}" for i in range(size)]
        drawn = sample_rows(rows, n, seed)
        assert len(drawn) == min(n, size)
        assert drawn == sorted(set(drawn))
        assert set(drawn) <= set(rows)
        assert drawn == sample_rows(rows, n, seed)
        assert n < size or drawn == sample_rows(rows, n, again)

    def test_another_seed_draws_others(self) -> None:
        rows = [str(i) for i in range(1000)]
        assert sample_rows(rows, 100, 0) != sample_rows(rows, 100, 1)

    def test_every_row_has_the_same_chance(self) -> None:
        counts = np.zeros(20)
        for seed in range(2000):
            counts[[int(row) for row in sample_rows([str(i) for i in range(20)], 5, seed)]] += 1
        # 500 expected, standard deviation 19.4: five of them to either side.
        assert (np.abs(counts - 500) < 97).all()


class TestDescribeMolecule:
    def test_benzene(self) -> None:
        row = describe_molecule("C1=CC=CC=C1")
        assert row is not None
        assert row["smiles"] == "c1ccccc1"
        # IUPAC weights: C 12.011, H 1.008; masses of 12C and 1H: 12 and 1.00782503207.
        assert row["mol_weight"] == pytest.approx(6 * 12.011 + 6 * 1.008, abs=1e-9)
        assert row["heavy_atom_mol_wt"] == pytest.approx(6 * 12.011, abs=1e-9)
        assert row["exact_mol_wt"] == pytest.approx(6 * 12 + 6 * 1.00782503207, abs=1e-6)
        assert row["num_valence_electons"] == 6 * 4 + 6
        assert row["num_radical_electrons"] == 0
        # Every atom is alike: one environment more with each radius, on six atoms.
        assert [row[f"fp_density_morgan_{r}"] for r in (1, 2, 3)] == pytest.approx([2 / 6, 3 / 6, 4 / 6])
        charges = [row[f"{kind}_partial_charge"] for kind in ("max", "min")]
        assert charges[0] == charges[1] < 0
        assert row["max_abs_partial_charge"] == row["min_abs_partial_charge"] == -charges[0]
        # Wildman and Crippen (1999): six aromatic CH, .1581 each, and their hydrogens, .1230 each.
        assert row["logp"] == pytest.approx(1.6866, abs=1e-4)
        # The easiest of molecules: the SA score is at its end of the scale.
        assert row["sa"] == pytest.approx(1.0, abs=1e-9)
        assert row["qed"] == pytest.approx(0.4426, abs=1e-3)

    def test_aspirin(self) -> None:
        row = describe_molecule(ASPIRIN)
        assert row is not None
        # C9 H8 O4
        assert row["mol_weight"] == pytest.approx(9 * 12.011 + 8 * 1.008 + 4 * 15.999, abs=1e-9)
        assert row["exact_mol_wt"] == pytest.approx(180.04225873, abs=1e-6)
        assert row["num_valence_electons"] == 9 * 4 + 8 + 4 * 6
        assert row["logp"] == pytest.approx(1.3101, abs=1e-4)
        assert row["qed"] == pytest.approx(0.550, abs=1e-3)

    def test_a_radical_is_counted(self) -> None:
        row = describe_molecule("C[CH2]")
        assert row is not None
        assert row["num_radical_electrons"] == 1

    def test_columns_and_types(self) -> None:
        row = describe_molecule("CCO")
        assert row is not None
        assert list(row) == ["smiles", *DESCRIPTORS, *TARGETS]
        assert len(DESCRIPTORS) == 12
        assert all(isinstance(row[name], float) for name in (*DESCRIPTORS, *TARGETS))

    @pytest.mark.parametrize("text", ["C1CC", "not a molecule", "c1cccc1", "F(C)(C)C"])
    def test_what_is_no_molecule_is_none(self, text: str) -> None:
        assert describe_molecule(text) is None


class TestPenalizedLogP:
    def test_it_is_the_sum_of_three_normalised_terms(self) -> None:
        assert penalized_logp(LOGP_MEAN, -SA_MEAN, -RING_MEAN) == pytest.approx(0.0, abs=1e-12)
        assert penalized_logp(LOGP_MEAN + LOGP_SD, -SA_MEAN, -RING_MEAN) == pytest.approx(1.0)
        assert penalized_logp(LOGP_MEAN, -SA_MEAN + SA_SD, -RING_MEAN) == pytest.approx(-1.0)
        assert penalized_logp(LOGP_MEAN, -SA_MEAN, -RING_MEAN + RING_SD) == pytest.approx(-1.0)

    def test_of_benzene_by_hand(self) -> None:
        row = describe_molecule("c1ccccc1")
        assert row is not None
        by_hand = (1.6866 - 2.45777691) / 1.43341767 + (3.05352042 - 1.0) / 0.83460587 + 0.04861121 / 0.28746695
        assert row["penalized_logp"] == pytest.approx(by_hand, abs=1e-4)

    @pytest.mark.parametrize(
        ("smiles", "penalty"),
        [("CCO", 0), ("C", 0), ("C1CC1", 0), ("c1ccccc1", 0), ("C1CCCCCC1", 1), ("C1CCCCCCCCC1", 4)],
    )
    def test_atoms_of_the_largest_ring_beyond_six(self, smiles: str, penalty: int) -> None:
        assert large_ring_penalty(Chem.MolFromSmiles(smiles)) == penalty

    def test_rings_of_separate_parts_do_not_add_up(self) -> None:
        assert large_ring_penalty(Chem.MolFromSmiles("C1CCCCCC1.C1CCCCCC1")) == 1


class TestDescribeMolecules:
    def test_what_is_left_out_is_counted_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.molecules")
        no_charge = "C[Hg]C"  # Gasteiger has no parameters for mercury: the charges are NaN
        described = describe_molecule(no_charge)
        assert described is not None
        assert not math.isfinite(described["max_partial_charge"])
        table = describe_molecules(["CCO", "C1CC", no_charge, "OCC", "c1ccccc1"])
        assert table["smiles"].tolist() == ["CCO", "c1ccccc1"]
        assert table.index.tolist() == [0, 1]
        assert (
            "5 molecules: 1 do not parse, 1 have a descriptor that is not finite, 1 repeat another's descriptors"
            in caplog.text
        )

    def test_what_repeats_only_what_was_left_out_is_counted_once(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.molecules")
        assert describe_molecules(["C[Hg]C", "C[Hg]C"]).empty
        assert "2 have a descriptor that is not finite, 0 repeat" in caplog.text

    def test_no_two_rows_have_the_same_features(self) -> None:
        table = describe_molecules(SOME * 2)
        assert table["smiles"].tolist() == describe_molecules(SOME)["smiles"].tolist()
        assert not table.duplicated(subset=list(DESCRIPTORS)).any()

    @pytest.mark.slow
    def test_blocks_and_jobs_make_no_difference(self) -> None:
        alone = describe_molecules(SOME)
        pd.testing.assert_frame_equal(describe_molecules(SOME, block=2), alone, check_exact=True)
        pd.testing.assert_frame_equal(describe_molecules(SOME, jobs=2, block=2), alone, check_exact=True)

    def test_nothing_in_nothing_out(self) -> None:
        table = describe_molecules([])
        assert table.empty
        assert table.columns.tolist() == ["smiles", *DESCRIPTORS, *TARGETS]


class TestCanonicalMolecules:
    def test_what_is_left_out_is_counted_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.molecules")
        table = canonical_molecules(["OCC", "C1CC", "C1=CC=CC=C1", "CCO", "NC", "c1ccccc1", "none"])
        assert table.columns.tolist() == ["smiles"]
        assert table["smiles"].tolist() == ["CCO", "c1ccccc1", "CN"]
        assert "7 molecules: 2 do not parse, 2 repeat another" in caplog.text
        assert caplog.records[-1].levelno == logging.WARNING

    def test_where_nothing_is_left_out_there_is_no_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "plumbline.data.sources.molecules")
        assert len(canonical_molecules(SOME)) == len(SOME)
        assert [record.levelno for record in caplog.records] == [logging.INFO]

    def test_blocks_and_jobs_make_no_difference(self) -> None:
        alone = canonical_molecules(SOME * 2)
        pd.testing.assert_frame_equal(canonical_molecules(SOME * 2, block=3), alone, check_exact=True)
        pd.testing.assert_frame_equal(canonical_molecules(SOME * 2, jobs=2, block=3), alone, check_exact=True)

    def test_nothing_in_nothing_out(self) -> None:
        table = canonical_molecules([])
        assert table.empty
        assert table.columns.tolist() == ["smiles"]


class TestPublishedTable:
    """The 512 rows that CBO published: computed years ago, with RDKit of that time."""

    @pytest.fixture(scope="class")
    def published(self) -> pd.DataFrame:
        path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "zinc_subsample.csv"
        if not path.is_file():
            pytest.skip("needs PLUMBLINE_MIRROR with zinc_subsample.csv")
        return pd.read_csv(path)

    @pytest.fixture(scope="class")
    def computed(self, published: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame([describe_molecule(smiles) for smiles in published["smiles"]])

    @pytest.mark.parametrize("name", DESCRIPTORS)
    def test_each_descriptor(self, name: str, published: pd.DataFrame, computed: pd.DataFrame) -> None:
        assert len(computed) == 512
        np.testing.assert_allclose(computed[name], published[name], rtol=0, atol=1e-9)

    @pytest.mark.parametrize(("ours", "theirs"), [("logp", "logP"), ("sa", "SA"), ("qed", "qed")])
    def test_each_target(self, ours: str, theirs: str, published: pd.DataFrame, computed: pd.DataFrame) -> None:
        np.testing.assert_allclose(computed[ours], published[theirs], rtol=0, atol=1e-9)

    def test_penalised_logp_but_for_two_rows(self, published: pd.DataFrame, computed: pd.DataFrame) -> None:
        difference = (computed["penalized_logp"] - published["penalized_logP"]).abs()
        assert (difference > 1e-9).sum() == 2
        assert difference.max() < 0.25

    def test_it_is_read_as_it_is(self, published: pd.DataFrame) -> None:
        table = read_docking(Path(os.environ["PLUMBLINE_MIRROR"]) / "zinc_subsample.csv")
        assert table.columns.tolist() == ["smiles", *DESCRIPTORS, *TARGETS, DOCKING]
        assert len(table) == 512
        for name in ("smiles", *DESCRIPTORS, DOCKING):
            assert table[name].tolist() == published[name].tolist()
        assert table["sa"].tolist() == published["SA"].tolist()


class TestReadDocking:
    @pytest.fixture
    def rows(self) -> pd.DataFrame:
        """A table as it is published, its columns in another order, whole numbers and a column that is not wanted."""
        names = {"logp": "logP", "penalized_logp": "penalized_logP", "sa": "SA"}
        table = describe_molecules(SOME).rename(columns=names).assign(unwanted=1)
        return table.assign(num_radical_electrons=0, **{DOCKING: np.linspace(-9, -5, len(SOME))})[::-1]

    def write(self, tmp_path: Path, table: pd.DataFrame) -> Path:
        table.to_csv(tmp_path / "scores.csv", index=False)
        return tmp_path / "scores.csv"

    def test_columns_types_and_values(self, tmp_path: Path, rows: pd.DataFrame) -> None:
        table = read_docking(self.write(tmp_path, rows))
        assert table.columns.tolist() == ["smiles", *DESCRIPTORS, *TARGETS, DOCKING]
        assert table["smiles"].tolist() == rows["smiles"].tolist()
        assert (table.dtypes[1:] == "float64").all()
        assert table[DOCKING].tolist() == rows[DOCKING].tolist()
        assert table["logp"].tolist() == rows["logP"].tolist()

    def test_repeats_are_left_out_and_counted(self, tmp_path: Path, rows: pd.DataFrame, caplog) -> None:
        table = read_docking(self.write(tmp_path, pd.concat([rows, rows[:2]])))
        assert len(table) == len(rows)
        said = f"2 of {len(rows) + 2} rows are left out (line {len(rows) + 2}: the molecule or descriptors"
        assert said in caplog.text

    @pytest.mark.parametrize("column", ["smiles", "mol_weight", "logP", DOCKING])
    def test_a_missing_column_is_one_line(self, tmp_path: Path, rows: pd.DataFrame, column: str) -> None:
        name = "logp" if column == "logP" else column
        with pytest.raises(PlumblineError, match=rf"scores\.csv has no column {name}:") as error:
            read_docking(self.write(tmp_path, rows.drop(columns=column)))
        assert "\n" not in str(error.value)

    def test_text_for_a_number_is_one_line(self, tmp_path: Path, rows: pd.DataFrame) -> None:
        path = self.write(tmp_path, rows.assign(mol_weight="heavy"))
        with pytest.raises(PlumblineError, match=r"scores\.csv cannot be read .*heavy.*fetch it again"):
            read_docking(path)

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00broken", b'a,b\n"1,2\n'])
    def test_what_is_no_csv_is_one_line(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "scores.csv"
        path.write_bytes(content)
        with pytest.raises(PlumblineError, match=r"scores\.csv") as error:
            read_docking(path)
        assert "\n" not in str(error.value)
