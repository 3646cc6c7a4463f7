"""The names of the files of reference results, against those of the package."""

from pathlib import Path

import pytest

from plumbline.core.places import ATLAS, REFERENCE
from plumbline.store.reference_files import (
    ANSWER,
    CLAIMS,
    COSTS,
    DOUBTS,
    SMALL_SAMPLES,
    EditionFiles,
    ExperimentFiles,
    drawn,
)

ROOT = Path(__file__).parents[2]
EXPERIMENTS = [ExperimentFiles(folder) for folder in sorted((ROOT / REFERENCE).iterdir()) if folder.is_dir()]


@pytest.mark.parametrize("home", EXPERIMENTS, ids=lambda home: home.name)
def test_an_experiment_has_files_of_these_names_alone(home: ExperimentFiles) -> None:
    assert set(home.folder.iterdir()) <= set(home.files)
    assert home.provenances


def test_some_experiment_has_each_kind_of_file() -> None:
    there = {path.name.removeprefix(home.name) for home in EXPERIMENTS for path in home.files if path.is_file()}
    assert there == {path.name.removeprefix("E") for path in ExperimentFiles(Path("E")).files}


def test_beside_the_experiments_lie_the_files_of_all_of_them() -> None:
    names = {CLAIMS, DOUBTS, COSTS, SMALL_SAMPLES, f"{ANSWER}.png", f"{ANSWER}.svg"}
    assert names == {path.name for path in (ROOT / REFERENCE).iterdir() if path.is_file()}


def test_the_provenance_of_trials_goes_before_that_of_the_illustration(tmp_path: Path) -> None:
    home = ExperimentFiles(tmp_path)
    home.illustration_provenance.touch()
    assert home.provenances == [home.illustration_provenance]
    home.provenance.touch()
    assert home.provenances == [home.provenance, home.illustration_provenance]


def test_an_experiment_is_drawn_by_its_own_figure_alone(tmp_path: Path) -> None:
    for name, picture in (("E", "E.png"), ("F", "E.png"), ("D", "D.png")):
        (tmp_path / name).mkdir()
        (tmp_path / name / picture).touch()
    assert drawn(tmp_path) == ["D", "E"]


def test_an_edition_has_its_tables_and_a_file_a_task() -> None:
    files = EditionFiles(ROOT / ATLAS)
    for path in (files.edition, files.cells, files.tasks, files.rounds("common-rkhs-2")):
        assert path.is_file(), path
