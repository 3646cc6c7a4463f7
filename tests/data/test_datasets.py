from pathlib import Path

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset, dataset_for, find_dataset, load_datasets

COMMITTED = Path(__file__).resolve().parents[2] / "config" / "datasets.yaml"

GOOD = {
    "title": "numbers",
    "file": "numbers.gz",
    "url": "https://example.org/numbers.gz",
    "hash": "0" * 64,
    "licence": "none",
    "citation": "none",
    "features": {"kind": "molecules", "rows": 10},
}


def write(path: Path, **changes: object) -> Path:
    entry = {key: value for key, value in (GOOD | changes).items() if value is not ...}
    path.write_text(yaml.safe_dump({"numbers": entry}), encoding="utf-8")
    return path


class TestCommittedList:
    @pytest.fixture(scope="class")
    def datasets(self) -> dict[str, Dataset]:
        return load_datasets(COMMITTED)

    def test_it_loads(self, datasets: dict[str, Dataset]) -> None:
        assert {"zinc250k", "generated-molecules"} <= set(datasets)
        assert all(dataset.name == name for name, dataset in datasets.items())

    def test_the_readme_of_the_data_folder_has_every_file_with_its_licence(self, datasets: dict[str, Dataset]) -> None:
        text = (COMMITTED.parents[1] / "data/README.md").read_text(encoding="utf-8")
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `") and line.count(" | ") == 4]
        listed = {row[0].strip("| `"): row[3] for row in rows}
        assert listed == {one.file: one.licence for one in datasets.values() if one.file}

    def test_no_file_name_is_used_for_two_files(self, datasets: dict[str, Dataset]) -> None:
        """Two tables may be made of one: of ZINC's molecules all, or some with their descriptors."""
        files = {(dataset.file, dataset.url, dataset.hash) for dataset in datasets.values() if dataset.file}
        assert len(files) == len({name for name, _, _ in files})

    def test_what_is_downloaded_has_an_address_and_a_checksum_or_says_why_not(
        self, datasets: dict[str, Dataset]
    ) -> None:
        for dataset in datasets.values():
            if dataset.file is not None:
                assert dataset.url or dataset.note, dataset.name
                assert dataset.hash or dataset.note, dataset.name
            if dataset.hash is not None:
                algorithm, _, digest = dataset.hash.rpartition(":")
                assert len(digest) == {"": 64, "sha256": 64, "md5": 32}[algorithm], dataset.name
                assert set(digest) <= set("0123456789abcdef"), dataset.name

    def test_what_is_generated_is_built_by_a_generator_and_stands_in_for_a_dataset(
        self, datasets: dict[str, Dataset]
    ) -> None:
        generated = [dataset for dataset in datasets.values() if dataset.file is None]
        assert generated
        for dataset in generated:
            assert dataset.features is not None
            assert dataset.features.kind.startswith("generated")
            assert dataset.stands_in_for in datasets

    def test_no_dataset_has_two_stand_ins(self, datasets: dict[str, Dataset]) -> None:
        real = [dataset.stands_in_for for dataset in datasets.values() if dataset.stands_in_for]
        assert len(real) == len(set(real))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"licencse": "MIT"}, ["unknown field 'licencse'", "did you mean 'licence'?"]),
        ({"licence": ...}, ["licence", "required"]),
        ({"title": 3}, ["title", "3"]),
        ({"features": {"kind": "molecule", "rows": 10}}, ["features.kind", "'generated-molecules'"]),
        ({"features": {"kind": "molecules", "rows": 0}}, ["features.rows", "greater than 0"]),
        ({"features": {"kind": "molecules", "rows": 10, "sead": 1}}, ["features", "did you mean 'seed'?"]),
        ({"features": {"kind": "molecules"}}, ["features.rows", "required"]),
    ],
)
def test_a_typo_is_one_line_with_file_dataset_field_and_what_is_allowed(
    tmp_path: Path, changes: dict[str, object], said: list[str]
) -> None:
    path = write(tmp_path / "datasets.yaml", **changes)
    with pytest.raises(PlumblineError) as error:
        load_datasets(path)
    message = str(error.value)
    assert message.startswith(f"{path}: numbers: ")
    assert "\n" not in message
    for part in said:
        assert part in message


@pytest.mark.parametrize("text", ["numbers: [", "numbers", "- numbers", "", "numbers:\n", "numbers: {1: 2}\n"])
def test_what_is_no_list_of_datasets_is_one_line_naming_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "datasets.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlumblineError) as error:
        load_datasets(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_no_list_at_all_is_one_line_naming_the_file(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no file .*datasets\.yaml"):
        load_datasets(tmp_path / "datasets.yaml")


def test_an_unknown_dataset_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(PlumblineError, match=r"unknown dataset 'zinc250'.*did you mean 'zinc250k'"):
        find_dataset(load_datasets(COMMITTED), "zinc250")
    assert find_dataset(load_datasets(COMMITTED), "zinc250k").file == "zinc.txt.gz"


def test_a_file_named_after_another_dataset_is_refused(tmp_path: Path) -> None:
    datasets = {name: Dataset(name=name, title="t", licence="none", citation="none") for name in ("one", "other")}
    for allowed in ("one.parquet", "anything.parquet"):
        assert dataset_for(tmp_path / allowed, datasets, "one").name == "one"
    with pytest.raises(PlumblineError, match=r"other\.parquet is the name of features of 'other', not of 'one'"):
        dataset_for(tmp_path / "other.parquet", datasets, "one")
    with pytest.raises(PlumblineError, match="unknown dataset 'on'"):
        dataset_for(tmp_path / "one.parquet", datasets, "on")


def test_a_dataset_does_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_datasets(COMMITTED)["zinc250k"].file = "other"
