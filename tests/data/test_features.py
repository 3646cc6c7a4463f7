import gzip
import importlib.metadata
import io
import random
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset, Features
from plumbline.data.feature_table import read_table
from plumbline.data.features import build_features, read_features, write_features
from plumbline.data.generated.antibodies import generated_antibodies
from plumbline.data.generated.dna import generated_dna
from plumbline.data.generated.molecules import generated_molecules
from plumbline.data.generated.newsgroups import generated_newsgroups
from plumbline.data.sources import antibodies
from plumbline.data.sources.antibodies import describe_pairs
from plumbline.data.sources.dna import COLUMNS, LABEL
from plumbline.data.sources.guacamol import OBJECTIVES, score_smiles
from plumbline.data.sources.molecules import (
    DESCRIPTORS,
    DOCKING,
    TARGETS,
    canonical_molecules,
    describe_molecules,
    sample_rows,
)
from plumbline.data.sources.newsgroups import corpus

SMILES = ["CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O", "C1CC", "CC(=O)Nc1ccc(O)cc1", "CCCCCC"]


def dataset(features: Features | None, file: str | None = "few.txt.gz") -> Dataset:
    return Dataset(name="few", title="a few", file=file, licence="none", citation="us", features=features)


FEW = dataset(Features(kind="molecules", rows=4, seed=1))
GENERATED = dataset(Features(kind="generated-molecules", rows=12, seed=3), file=None)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return describe_molecules(SMILES)


@pytest.fixture
def written(tmp_path: Path, table: pd.DataFrame) -> Path:
    path = tmp_path / "features" / "few.parquet"
    write_features(table, path, FEW)
    return path


class TestBuild:
    def test_from_a_file_with_a_sample_of_its_rows(self, tmp_path: Path) -> None:
        raw = tmp_path / "few.txt.gz"
        raw.write_bytes(gzip.compress("\n".join(SMILES).encode()))
        built = build_features(FEW, raw)
        expected = describe_molecules(sample_rows(SMILES, 4, 1))
        pd.testing.assert_frame_equal(built, expected, check_exact=True)
        assert built.columns.tolist() == ["smiles", *DESCRIPTORS, *TARGETS]

    def test_from_nothing(self) -> None:
        built = build_features(GENERATED)
        assert 0 < len(built) <= 12
        pd.testing.assert_frame_equal(built, build_features(GENERATED), check_exact=True)

    def test_a_missing_file_is_named(self) -> None:
        with pytest.raises(PlumblineError, match=r"'few' is built from few\.txt\.gz: fetch it"):
            build_features(FEW)

    def test_a_dataset_that_other_code_reads_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(PlumblineError, match="'few' has no `features` entry"):
            build_features(dataset(None), tmp_path / "few.txt.gz")


NOTHING = {
    "molecules": {
        "few.smiles": [
            b"",
            b"\n\n",
            b"smiles\n",
            b"# none\nno molecule\n",
            b"smiles,name\nCCO,ethanol\n",
            b"\xff\xfe\x00",
        ],
        "few.smiles.gz": [gzip.compress(b"", mtime=0), gzip.compress(b"smiles\n", mtime=0)],
    },
    "dna": {"few.scale": [b"", b"\n", b"# label and features\n"]},
    "antibodies": {
        "few.csv": [b"sequence_alignment_aa_heavy,sequence_alignment_aa_light\n"],
        "few.fasta": [b">heavy_chain_A-1_contig_1\nACG\n>light_chain_A-1_contig_2\nACG\n"],
    },
    "docking": {
        "few.csv": [",".join(["smiles", *DESCRIPTORS, "logP", "penalized_logP", "qed", "SA", DOCKING]).encode()]
    },
}
NOTHING |= dict.fromkeys(("smiles", "guacamol"), NOTHING["molecules"])
PAGES = {"molecules": "few.smiles", "dna": "few.scale", "antibodies": "few.csv", "docking": "few.csv"}


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [(kind, name, one) for kind, files in NOTHING.items() for name, some in files.items() for one in some],
)
def test_a_file_of_which_nothing_is_left_is_one_line(tmp_path: Path, kind: str, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        PlumblineError, match=rf"{name} cannot be read \(nothing is left of {name}: .*fetch it"
    ) as error:
        build_features(of_kind(kind, name), tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("kind", "name"), [*PAGES.items(), ("antibodies", "few.fasta"), ("guacamol", "few.smiles")])
def test_a_web_page_is_one_line(tmp_path: Path, kind: str, name: str) -> None:
    (tmp_path / name).write_bytes(b"<!DOCTYPE html>\n<html>\nI\n404\n</html>")
    with pytest.raises(PlumblineError, match=rf"{name} is a web page: delete it and fetch it again"):
        build_features(of_kind(kind, name), tmp_path / name)


@pytest.mark.parametrize("kind", ["docking", "molecules", "dna", "antibodies", "guacamol", "newsgroups"])
def test_a_file_for_generated_data_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(PlumblineError, match=r"dataset 'few' is generated, and not built from .*x: leave --raw out"):
        build_features(of_kind(f"generated-{kind}", None), tmp_path / "x")


SMALL = {
    "molecules": ("few.smiles", "\n".join(SMILES).encode()),
    "guacamol": ("few.smiles.gz", "\n".join(SMILES).encode()),
    "docking": (
        "few.csv",
        describe_molecules(SMILES).assign(**{DOCKING: -7.5, "logP": 1, "penalized_logP": 2, "SA": 3}).to_csv().encode(),
    ),
    "antibodies": (
        "few.csv.gz",
        pd.DataFrame(generated_antibodies(4, 0), columns=[f"sequence_alignment_aa_{one}" for one in antibodies.CHAINS])
        .to_csv()
        .encode(),
    ),
}
"""A small valid file of each kind; those of contigs, of LIBSVM and of archives have a test of their own."""

INSERTED = (b'"', b"\n", b"\r", b"\0", b",", b">", b"\xff", b"(", b"[H]", b"%99", b"9" * 30, "\u2028".encode())


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_damaged_bytes_are_a_table_or_one_line(tmp_path: Path, kind: str) -> None:
    name, whole = SMALL[kind]
    draw, said, entry = random.Random(kind), [], of_kind(kind, name, rows=10)
    build_features(entry, write(tmp_path / name, whole))
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 2, 20])):
            place = draw.randrange(len(content))
            content[place : place + draw.randrange(3)] = draw.choice([*INSERTED, draw.randbytes(1), b""]) or b"x"
        try:
            table = build_features(entry, write(tmp_path / name, bytes(content), draw))
            write_features(table, tmp_path / "few.parquet", entry)
            pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), table, check_exact=True)
        except PlumblineError as error:
            said.append(str(error))
    assert all("few." in one and "\n" not in one for one in said)


def write(path: Path, content: bytes, draw: random.Random | None = None) -> Path:
    """Write content, compressed if its name says so; of a compressed one, sometimes with another byte."""
    packed = bytearray(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    if draw is not None and path.suffix == ".gz" and draw.random() < 0.3:
        packed[draw.randrange(len(packed))] = draw.randrange(256)
    path.write_bytes(packed)
    return path


class TestRoundTrip:
    def test_the_table_comes_back_to_the_bit(self, written: Path, table: pd.DataFrame) -> None:
        pd.testing.assert_frame_equal(read_features(written), table, check_exact=True)

    def test_with_what_it_rests_on(self, written: Path) -> None:
        found = read_table(written)[1]
        assert read_table(written)[1] == found
        assert found["rdkit"] == importlib.metadata.version("rdkit")
        assert Dataset.model_validate(found["dataset"]) == FEW

    def test_written_twice_it_is_the_same_file(self, written: Path, table: pd.DataFrame) -> None:
        before = written.read_bytes()
        write_features(table, written, FEW)
        assert written.read_bytes() == before

    def test_nothing_lies_beside_it(self, written: Path) -> None:
        assert [path.name for path in written.parent.iterdir()] == ["few.parquet"]


class TestDamage:
    def test_a_missing_file_names_the_command_that_builds_it(self, tmp_path: Path) -> None:
        with pytest.raises(PlumblineError, match=r"no features at .*: `plumbline features zinc250k` builds them"):
            read_features(tmp_path / "zinc250k.parquet")

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
    def test_a_truncated_file_is_one_line_with_the_remedy(self, written: Path, share: float) -> None:
        whole = written.read_bytes()
        written.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(PlumblineError, match=r"is corrupt .*: delete it and run again") as error:
            read_features(written)
        assert "\n" not in str(error.value)
        assert str(written) in str(error.value)

    def test_zeroed_pages_are_one_line_with_the_remedy(self, written: Path) -> None:
        content = bytearray(written.read_bytes())
        content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
        written.write_bytes(bytes(content))
        with pytest.raises(PlumblineError) as error:
            read_features(written)
        assert "\n" not in str(error.value)

    @pytest.mark.slow
    def test_damaged_bytes_never_give_another_table(self, written: Path, table: pd.DataFrame) -> None:
        draw, whole, said = random.Random(0), written.read_bytes(), []
        for _ in range(60):
            content = bytearray(whole)
            content[draw.randrange(4, len(whole) * 2 // 3)] ^= 1 << draw.randrange(8)
            written.write_bytes(bytes(content))
            try:
                pd.testing.assert_frame_equal(read_features(written), table, check_exact=True)
            except PlumblineError as error:
                said.append(str(error))
        assert len(said) > 20
        assert all(str(written) in one and "\n" not in one for one in said)

    def test_another_kind_of_file_is_one_line_with_the_remedy(self, written: Path) -> None:
        written.write_text("smiles,qed\nCCO,0.4\n", encoding="utf-8")
        with pytest.raises(PlumblineError, match="is corrupt"):
            read_features(written)


class TestSchema:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"qed": 1.5}, "qed"),
            ({"sa": -1.0}, "sa"),
            ({"logp": np.nan}, "logp"),
            ({"smiles": "CCO"}, "smiles"),
            ({"mol_weight": "heavy"}, "mol_weight"),
            ({"surprise": 1.0}, "surprise"),
        ],
    )
    def test_a_violation_is_one_line_naming_file_and_column(
        self, tmp_path: Path, table: pd.DataFrame, change: dict[str, object], said: str
    ) -> None:
        path = tmp_path / "few.parquet"
        with pytest.raises(PlumblineError, match="features break their schema") as error:
            write_features(table.assign(**change), path, FEW)
        message = str(error.value)
        assert "\n" not in message
        assert str(path) in message
        assert said in message
        assert not path.exists()

    @pytest.mark.parametrize("column", ["smiles", "qed", "exact_mol_wt"])
    def test_a_missing_column_is_named(self, tmp_path: Path, table: pd.DataFrame, column: str) -> None:
        with pytest.raises(PlumblineError, match=column):
            write_features(table.drop(columns=column), tmp_path / "few.parquet", FEW)

    def test_a_file_that_breaks_it_is_refused_at_reading_too(self, written: Path, table: pd.DataFrame) -> None:
        content = parquet.read_table(written)
        place = content.column_names.index("qed")
        parquet.write_table(content.set_column(place, "qed", [[2.0] * len(table)]), written)
        with pytest.raises(PlumblineError, match=r"few\.parquet: features break their schema.*qed"):
            read_features(written)

    def test_infinite_values_are_refused(self, tmp_path: Path, table: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match="logp"):
            write_features(table.assign(logp=np.inf), tmp_path / "few.parquet", FEW)

    def test_a_file_that_does_not_say_what_it_is_is_refused(self, written: Path, table: pd.DataFrame) -> None:
        table.to_parquet(written)
        for read in (read_features, read_table):
            with pytest.raises(PlumblineError, match="does not say what it was built from: delete it"):
                read(written)

    @pytest.mark.parametrize(
        "said", [b"", b"{", b"[]", b"null", b'{"dataset": 1}', b'{"dataset": {"name": "few"}}', b"\xff"]
    )
    def test_provenance_that_says_nothing_is_refused(self, written: Path, table: pd.DataFrame, said: bytes) -> None:
        content = arrow.Table.from_pandas(table, preserve_index=False).replace_schema_metadata({b"plumbline": said})
        parquet.write_table(content, written)
        with pytest.raises(PlumblineError, match="does not say what it was built from: delete it") as error:
            read_features(written)
        assert "\n" not in str(error.value)

    def test_a_kind_that_there_is_not_is_refused(self, written: Path, table: pd.DataFrame) -> None:
        said = b'{"dataset": {"name": "few", "features": {"kind": "proteins"}}}'
        content = arrow.Table.from_pandas(table, preserve_index=False).replace_schema_metadata({b"plumbline": said})
        parquet.write_table(content, written)
        with pytest.raises(PlumblineError, match=r"few\.parquet is of an unknown kind, 'proteins'"):
            read_features(written)

    def test_a_table_of_another_dataset_is_refused(self, written: Path) -> None:
        other = written.rename(written.with_name("zinc-drd3.parquet"))
        for read in (read_features, read_table):
            with pytest.raises(PlumblineError, match="was built from the dataset 'few', not from 'zinc-drd3'") as error:
                read(other)
            assert "`plumbline features zinc-drd3` builds the right one" in str(error.value)

    @pytest.mark.parametrize("kind", ["molecules", "docking", "antibodies"])
    def test_rows_with_the_same_descriptors_are_named(self, tmp_path: Path, kind: str) -> None:
        entry = of_kind(kind, "few")
        table = build_features(of_kind(f"generated-{kind}", None, rows=12))
        path = tmp_path / "few.parquet"
        write_features(table, path, entry)
        features = [*(antibodies.DESCRIPTORS if kind == "antibodies" else DESCRIPTORS)]
        table.loc[7, features] = table.loc[3, features]
        with pytest.raises(PlumblineError, match=r"few\.parquet: rows 3 and 7 have the same descriptors"):
            write_features(table, path, entry)
        metadata = parquet.read_schema(path).metadata
        parquet.write_table(
            arrow.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(metadata), path
        )
        with pytest.raises(PlumblineError, match=r"few\.parquet: rows 3 and 7 have the same descriptors") as error:
            read_features(path)
        assert "\n" not in str(error.value)

    def test_a_table_of_a_dataset_that_has_none_is_refused(self, tmp_path: Path, table: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match="'few' has no `features` entry"):
            write_features(table, tmp_path / "few.parquet", dataset(None))

    @pytest.mark.parametrize(("column", "value"), [("mol_weight", np.nan), ("qed", np.inf)])
    def test_a_number_that_is_none_is_named_by_row_and_column(
        self, tmp_path: Path, table: pd.DataFrame, column: str, value: float
    ) -> None:
        table = table.copy()
        table.loc[2, column] = value
        with pytest.raises(PlumblineError, match=rf"{column} of row 2 \(CC.*\) is {value}"):
            write_features(table, tmp_path / "few.parquet", FEW)


def of_kind(kind: str, file: str | None, rows: int = 4) -> Dataset:
    return dataset(Features.model_validate({"kind": kind, "rows": rows, "seed": 1}), file)


@pytest.fixture(scope="module")
def scores(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{DOCKING: np.linspace(-9.0, -5.0, len(table))})


class TestDocking:
    def test_from_the_published_layout(self, tmp_path: Path, scores: pd.DataFrame) -> None:
        raw = tmp_path / "scores.csv"
        scores.rename(columns={"logp": "logP", "penalized_logp": "penalized_logP", "sa": "SA"}).to_csv(raw, index=False)
        entry = of_kind("docking", raw.name, rows=100)
        built = build_features(entry, raw)
        pd.testing.assert_frame_equal(built, scores, check_exact=True)
        write_features(built, tmp_path / "few.parquet", entry)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), scores, check_exact=True)
        fewer = build_features(of_kind("docking", raw.name, rows=2), raw)
        assert fewer.index.tolist() == [0, 1]
        assert set(fewer["smiles"]) < set(scores["smiles"])

    def test_generated(self, tmp_path: Path) -> None:
        entry = of_kind("generated-docking", None, rows=12)
        built = build_features(entry)
        molecules = build_features(of_kind("generated-molecules", None, rows=12))
        pd.testing.assert_frame_equal(built.drop(columns=DOCKING), molecules, check_exact=True)
        write_features(built, tmp_path / "few.parquet", entry)

    def test_a_table_without_scores_is_refused(self, tmp_path: Path, table: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match=f"features break their schema.*{DOCKING}"):
            write_features(table, tmp_path / "few.parquet", of_kind("docking", "scores.csv"))

    def test_scores_in_a_table_of_molecules_are_refused(self, tmp_path: Path, scores: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match=f"features break their schema.*{DOCKING}"):
            write_features(scores, tmp_path / "few.parquet", FEW)


class TestGuacamol:
    @pytest.fixture
    def raw(self, tmp_path: Path) -> Path:
        path = tmp_path / "some.smiles"
        path.write_text("\n".join(["C1=CC=CC=C1", *SMILES]), encoding="utf-8")
        return path

    def test_canonical_smiles_alone(self, tmp_path: Path, raw: Path) -> None:
        entry = of_kind("smiles", raw.name, rows=100)
        built = build_features(entry, raw)
        assert built.columns.tolist() == ["smiles"]
        # Benzene first, as it is in the file, and once; what does not parse is left out.
        others = [one for one in canonical_molecules(SMILES)["smiles"] if one != "c1ccccc1"]
        assert built["smiles"].tolist() == ["c1ccccc1", *others]
        write_features(built, tmp_path / "few.parquet", entry)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)
        assert read_table(tmp_path / "few.parquet")[1]["rdkit"] == importlib.metadata.version("rdkit")

    def test_with_the_scores_of_every_objective(self, tmp_path: Path, raw: Path) -> None:
        entry = of_kind("guacamol", raw.name, rows=100)
        built = build_features(entry, raw)
        assert built.columns.tolist() == ["smiles", *OBJECTIVES]
        for name, objective in OBJECTIVES.items():
            assert built[name].tolist() == score_smiles(objective, built["smiles"].tolist()).tolist()
        pd.testing.assert_frame_equal(built[["smiles"]], build_features(of_kind("smiles", raw.name, 100), raw))
        write_features(built, tmp_path / "few.parquet", entry)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["smiles", "guacamol"])
    def test_a_sample_of_the_rows_and_any_number_of_processes(self, tmp_path: Path, kind: str) -> None:
        raw = tmp_path / "some.smiles"
        raw.write_text("\n".join(generated_molecules(30, 0)), encoding="utf-8")
        entry = of_kind(kind, raw.name, rows=20)
        built = build_features(entry, raw)
        assert built["smiles"].tolist() == sample_rows(generated_molecules(30, 0), 20, 1)
        pd.testing.assert_frame_equal(build_features(entry, raw, jobs=2), built, check_exact=True)

    def test_generated(self, tmp_path: Path) -> None:
        entry = of_kind("generated-guacamol", None, rows=12)
        built = build_features(entry)
        assert built["smiles"].tolist() == generated_molecules(12, 1)
        write_features(built, tmp_path / "few.parquet", entry)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)

    @pytest.mark.parametrize(("value", "said"), [(1.5, "median-1"), (np.nan, "median-1 of row 0")])
    def test_what_is_no_score_is_refused(self, tmp_path: Path, value: float, said: str) -> None:
        entry = of_kind("generated-guacamol", None, rows=3)
        with pytest.raises(PlumblineError, match=f"features break their schema.*{said}"):
            write_features(build_features(entry).assign(**{"median-1": value}), tmp_path / "few.parquet", entry)


class TestAntibodies:
    ENTRY = of_kind("antibodies", "unit.csv.gz")

    @pytest.fixture
    def raw(self, tmp_path: Path) -> Path:
        lines = ["sequence_alignment_aa_heavy,sequence_alignment_aa_light"]
        lines += [",".join(pair) for pair in generated_antibodies(9, 0)]
        path = tmp_path / "unit.csv.gz"
        path.write_bytes(gzip.compress(b'"{}"\n') + gzip.compress("\n".join(lines).encode()))
        return path

    def test_from_a_file_with_a_sample_of_its_rows_and_back(self, tmp_path: Path, raw: Path) -> None:
        built = build_features(self.ENTRY, raw)
        expected = describe_pairs(sample_rows(generated_antibodies(9, 0), 4, 1))
        pd.testing.assert_frame_equal(built, expected, check_exact=True)
        assert built.columns.tolist() == [*antibodies.CHAINS, *antibodies.DESCRIPTORS, *antibodies.TARGETS]
        write_features(built, tmp_path / "few.parquet", self.ENTRY)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)
        found = read_table(tmp_path / "few.parquet")[1]
        assert found["biopython"] == importlib.metadata.version("biopython")
        assert Dataset.model_validate(found["dataset"]) == self.ENTRY

    def test_generated(self) -> None:
        built = build_features(of_kind("generated-antibodies", None, rows=6))
        pd.testing.assert_frame_equal(built, describe_pairs(generated_antibodies(6, 1)), check_exact=True)

    def test_a_number_that_is_none_is_named_by_row_and_column(self, tmp_path: Path) -> None:
        table = describe_pairs(generated_antibodies(2, 0))
        table.loc[1, "heavy_flexibility"] = np.nan
        with pytest.raises(PlumblineError, match=r"heavy_flexibility of row 1 \([A-Z]+\) is nan"):
            write_features(table, tmp_path / "few.parquet", self.ENTRY)

    def test_a_table_of_molecules_is_refused(self, tmp_path: Path, table: pd.DataFrame) -> None:
        with pytest.raises(PlumblineError, match="features break their schema"):
            write_features(table, tmp_path / "few.parquet", self.ENTRY)


class TestDna:
    ENTRY = of_kind("dna", "few.scale")

    @pytest.mark.slow
    def test_from_the_published_layout_and_back(self, tmp_path: Path) -> None:
        raw = tmp_path / "few.scale"
        expected = generated_dna(9, 0)
        rows = [
            f"{row[LABEL]:.0f} " + " ".join(f"{i}:1" for i, name in enumerate(COLUMNS, 1) if row[name])
            for _, row in expected.iterrows()
        ]
        raw.write_text("\n".join(rows), encoding="utf-8")
        pd.testing.assert_frame_equal(build_features(of_kind("dna", raw.name, rows=100), raw), expected)
        built = build_features(self.ENTRY, raw)
        pd.testing.assert_frame_equal(built, expected.loc[sample_rows(range(9), 4, 1)].reset_index(drop=True))
        write_features(built, tmp_path / "few.parquet", self.ENTRY)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)
        found = read_table(tmp_path / "few.parquet")[1]
        assert found["scikit-learn"] == importlib.metadata.version("scikit-learn")

    def test_generated(self, tmp_path: Path) -> None:
        entry = of_kind("generated-dna", None, rows=6)
        built = build_features(entry)
        pd.testing.assert_frame_equal(built, generated_dna(6, 1), check_exact=True)
        write_features(built, tmp_path / "few.parquet", entry)

    @pytest.mark.parametrize(("column", "value"), [(LABEL, 4.0), ("x7", 0.5), ("x7", np.nan)])
    def test_other_digits_and_labels_are_refused(self, tmp_path: Path, column: str, value: float) -> None:
        table = generated_dna(4, 0).assign(**{column: value})
        with pytest.raises(PlumblineError, match=f"features break their schema.*{column}"):
            write_features(table, tmp_path / "few.parquet", self.ENTRY)


class TestNewsgroups:
    ENTRY = of_kind("newsgroups", "posts.tar.gz", rows=6)

    def test_from_an_archive_and_back(self, tmp_path: Path) -> None:
        raw = tmp_path / "posts.tar.gz"
        with tarfile.open(raw, "w:gz") as archive:
            for i in range(9):
                content = f"From: nobody\n\nRocket number {i}, rocket engine".encode()
                member = tarfile.TarInfo(f"20news-bydate-train/sci.space/{i}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        built = build_features(self.ENTRY, raw)
        assert set(built["words"]) == {"rocket number rocket engine"}
        assert built["part"].tolist() == ["train"] * 5 + ["test"]
        write_features(built, tmp_path / "few.parquet", self.ENTRY)
        pd.testing.assert_frame_equal(read_features(tmp_path / "few.parquet"), built, check_exact=True)
        found = read_table(tmp_path / "few.parquet")[1]
        assert found["scikit-learn"] == importlib.metadata.version("scikit-learn")

    def test_a_missing_archive_is_named(self) -> None:
        with pytest.raises(PlumblineError, match=r"is built from posts\.tar\.gz: fetch it and name it with --raw"):
            build_features(self.ENTRY)

    def test_generated(self, tmp_path: Path) -> None:
        entry = of_kind("generated-newsgroups", None, rows=12)
        built = build_features(entry)
        pd.testing.assert_frame_equal(built, corpus(generated_newsgroups(12, 1), 12, 1), check_exact=True)
        write_features(built, tmp_path / "few.parquet", entry)

    @pytest.mark.parametrize(("column", "value"), [("part", "dev"), ("words", "one, two"), ("document", "a")])
    def test_other_parts_and_words_are_refused(self, tmp_path: Path, column: str, value: str) -> None:
        table = build_features(of_kind("generated-newsgroups", None, rows=12)).assign(**{column: value})
        with pytest.raises(PlumblineError, match=f"features break their schema.*{column}"):
            write_features(table, tmp_path / "few.parquet", self.ENTRY)
