"""The names of the files of published results, against the results that are published."""

from pathlib import Path

import pytest

from plumbline.core.places import ATLAS, REFERENCE
from plumbline.store.published import (
    ANSWER,
    CLAIMS,
    COSTS,
    DOUBTS,
    SMALL_SAMPLES,
    EditionFiles,
    PublishedExperiment,
    drawn,
)

ROOT = Path(__file__).parents[2]
EXPERIMENTS = [PublishedExperiment(folder) for folder in sorted((ROOT / REFERENCE).iterdir()) if folder.is_dir()]


@pytest.mark.parametrize("home", EXPERIMENTS, ids=lambda home: home.name)
def test_a_published_experiment_has_files_of_these_names_alone(home: PublishedExperiment) -> None:
    assert set(home.folder.iterdir()) <= set(home.files)
    assert home.provenances


def test_every_kind_of_file_is_published_of_some_experiment() -> None:
    there = {path.name.removeprefix(home.name) for home in EXPERIMENTS for path in home.files if path.is_file()}
    assert there == {path.name.removeprefix("E") for path in PublishedExperiment(Path("E")).files}


def test_beside_the_experiments_lie_the_files_of_all_of_them() -> None:
    names = {CLAIMS, DOUBTS, COSTS, SMALL_SAMPLES, f"{ANSWER}.png", f"{ANSWER}.svg"}
    assert names == {path.name for path in (ROOT / REFERENCE).iterdir() if path.is_file()}


def test_the_provenance_of_trials_goes_before_that_of_the_illustration(tmp_path: Path) -> None:
    home = PublishedExperiment(tmp_path)
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
