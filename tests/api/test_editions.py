"""The atlas, and how trials are added to it."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from made_edition import TASK, cells_of, run_chunk, spec_of

import plumbline as pb
from plumbline.analysis.atlas.edition import NOT_PLANNED, add_cells
from plumbline.analysis.atlas.rounds import RECORDED
from plumbline.analysis.evidence.evidence import Evidence, read_rows
from plumbline.analysis.evidence.runs import runs_of
from plumbline.api import editions
from plumbline.api.editions import (
    EDITION_FACTS,
    AtlasGrid,
    add_to_atlas,
    domain_of,
    empty_cells,
    reason_of,
)
from plumbline.api.experiment_runs import NAMES
from plumbline.api.repository import find_repository
from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.core.places import ATLAS, own_or_shipped
from plumbline.store.spec import Chunk

CHUNKS = [Chunk(spec=spec_of(name), seeds=(0, 1)) for name in ("random", "ei", "ucb")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two methods on one task; the third one's trials did not run."""
    folder = tmp_path_factory.mktemp("results")
    for chunk in CHUNKS[:2]:
        run_chunk(chunk, folder)
    return folder


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory, atlas_grid: AtlasGrid, results: Path) -> Path:
    """An edition of these results."""
    chunks, found = CHUNKS, cells_of(CHUNKS, results)
    assert [cell.pair for cell in found] == [(TASK, "random"), (TASK, "ei")]
    found = [cell._replace(facts={**cell.facts, "inputs": 1}) for cell in found]
    empty: Any = SimpleNamespace(
        experiments=[SimpleNamespace(specs=[chunk.spec for chunk in chunks])],
        methods=["ei", "atlas-ehvi", "atlas-penalised-ei"],
        entries=atlas_grid.entries,
    )
    found += empty_cells(empty, {TASK: domain_of(chunks[0].spec, results)})
    folder = tmp_path_factory.mktemp("atlas")
    add_cells(folder, found, atlas_grid.tasks(), EDITION_FACTS)
    return folder


def test_rounds(edition: Path) -> None:
    rounds = pb.atlas(folder=edition)
    assert rounds.groupby(["task", "method", "seed"], observed=True)["round"].apply(list).tolist() == [[0, 1, 2, 3]] * 4
    assert (rounds.loc[rounds["round"] == 0, "normalised_regret"] == 1).all()
    starts = rounds[rounds["round"] == 0].pivot(index="seed", columns="method", values="best")
    assert (starts["ei"] == starts["random"]).all(), "methods share the initial design"
    forecasts = rounds[(rounds["round"] > 0) & (rounds["method"] == "ei")]
    assert (
        forecasts[["covered_50", "covered_80", "covered_95", "pit", "nll", "width_80", "fit_seconds"]]
        .notna()
        .all(axis=None)
    )
    assert rounds.loc[rounds["round"] == 3, "recommended"].notna().all()
    assert (rounds["regret"] >= 0).all()


def test_a_rank_is_among_all_methods(edition: Path) -> None:
    every, some = pb.atlas("ranks", folder=edition), pb.atlas("ranks", folder=edition, methods="ei")
    assert len(some)
    assert some["beaten"].tolist() == every[every["method"] == "ei"]["beaten"].tolist()
    assert set(pb.atlas("profiles", folder=edition, methods=["ei"])["method"]) == {"ei"}


def test_an_edition_without_trials_says_so(tmp_path: Path, atlas_grid: AtlasGrid) -> None:
    add_cells(tmp_path, [], atlas_grid.tasks(), EDITION_FACTS)
    for part in ("findings", "ranks", "profiles", "trials"):
        with pytest.raises(PlumblineError, match="has no trials yet"):
            pb.atlas(part, folder=tmp_path)
    assert pb.atlas(folder=tmp_path).empty


def test_a_task_without_trials_says_so(edition: Path) -> None:
    with pytest.raises(PlumblineError, match="has no trials on 'common-branin"):
        pb.atlas("trials", task="common-branin-0.0", folder=edition)


def test_a_rank_takes_two_methods_and_a_profile_a_score(tmp_path: Path, results: Path, atlas_grid: AtlasGrid) -> None:
    (cell,) = cells_of(CHUNKS[:1], results)
    add_cells(tmp_path / "one", [cell], atlas_grid.tasks(), EDITION_FACTS)
    with pytest.raises(PlumblineError, match="has no ranks: they take 2 methods with scores on a task"):
        pb.atlas("ranks", folder=tmp_path / "one")
    assert set(pb.atlas("profiles", folder=tmp_path / "one")["method"]) == {"random"}
    solved = cell._replace(rounds=cell.rounds.assign(best=1.0, optimum=1.0))
    add_cells(tmp_path / "solved", [solved], atlas_grid.tasks(), EDITION_FACTS)
    with pytest.raises(PlumblineError, match="has no profiles: they take 1 method with scores on a task"):
        pb.atlas("profiles", folder=tmp_path / "solved")


@pytest.mark.parametrize("named", [None, "results/atlas"])
def test_the_first_cells_of_a_workspace_hide_nothing(
    small_atlas: Path, results: Path, atlas_grid: AtlasGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: Any
) -> None:
    """What is beside them in the workspace's folder, such as a figure, stays there, and hides nothing either."""
    package, work = tmp_path / "package", tmp_path / "work"
    shutil.copytree(small_atlas, package / ATLAS)
    (work / ATLAS).mkdir(parents=True)
    (work / ATLAS / "interventions.png").write_bytes(b"figure")
    (work / "results" / "trials").mkdir()
    monkeypatch.setattr(places, "CHECKOUT", package)
    monkeypatch.chdir(work)
    assert own_or_shipped(ATLAS) == package / ATLAS
    grid = SimpleNamespace(specs=lambda: {TASK: CHUNKS[0].spec}, methods=[], experiments=[], tasks=atlas_grid.tasks)
    monkeypatch.setattr(editions, "AtlasGrid", lambda _: grid)
    monkeypatch.setattr(editions, "finished_cells", lambda *_: iter(cells_of(CHUNKS[1:2], results)))
    assert add_to_atlas("results", folder=named) == 1
    assert own_or_shipped(ATLAS) == work / ATLAS
    pairs = pb.atlas("cells")[["task", "method"]].to_numpy().tolist()
    assert sorted(pairs) == [
        [TASK, "ei"],
        [TASK, "random"],
        [TASK, "sobol"],
        ["common-branin-0.0", "random"],
        ["common-branin-0.0", "sobol"],
    ]
    assert len(pb.atlas()) == 5 * 2 * 4
    assert (work / ATLAS / "interventions.png").is_file()


def test_an_edition_elsewhere_begins_empty(
    results: Path, atlas_grid: AtlasGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = SimpleNamespace(specs=lambda: {TASK: CHUNKS[0].spec}, methods=[], experiments=[], tasks=atlas_grid.tasks)
    monkeypatch.setattr(editions, "AtlasGrid", lambda _: grid)
    monkeypatch.setattr(editions, "finished_cells", lambda *_: iter(cells_of(CHUNKS[1:2], results)))
    assert add_to_atlas(results, folder=tmp_path / "mine") == 1
    assert pb.atlas("cells", folder=tmp_path / "mine")["method"].tolist() == ["ei"]


@pytest.mark.parametrize("methods", [None, 3, ["ei", None], [["ei"]]])
def test_what_are_no_names_is_said_in_a_line(edition: Path, methods: Any) -> None:
    with pytest.raises(PlumblineError, match="methods: names are wanted"):
        pb.atlas("cells", folder=edition, methods=methods)


@pytest.mark.slow
def test_findings_are_of_all_tasks_and_methods(edition: Path) -> None:
    for options in ({"task": TASK}, {"methods": ["ei", "random"]}):
        with pytest.raises(PlumblineError, match="the findings are analyses of all tasks and methods"):
            pb.atlas("findings", folder=edition, **options)
    found = pb.atlas("findings", folder=edition)
    assert found["p_corrected"].isna().all(), "an edition of two methods has none of the pairs"


def test_parts(edition: Path) -> None:
    assert len(pb.atlas("trials", folder=edition, methods=["ei"])) == 2
    cells = pb.atlas("cells", folder=edition).set_index("method")
    assert cells["seeds"].to_dict() == {"random": 2, "ei": 2, "atlas-ehvi": 0, "atlas-penalised-ei": 0}
    assert cells.loc["atlas-ehvi", "empty"] == "for several objectives; this problem has one objective"
    assert cells.loc["atlas-penalised-ei", "empty"] == NOT_PLANNED
    assert cells.loc["ei", "seconds"] > 0
    tasks = pb.atlas("tasks", task=TASK, folder=edition)
    assert tasks[["track", "measure"]].to_numpy().tolist() == [["misspecified", "value"]]
    assert len(pb.atlas("tasks", folder=edition)) == 37


@pytest.mark.slow
def test_runs_are_those_of_the_records(edition: Path, results: Path) -> None:
    """To the last bit where a metric is kept so."""
    rows = pd.concat([read_rows(chunk.path(results / "trials"), [*RECORDED, "f"])[0] for chunk in CHUNKS[:2]])
    metrics = ["regret", "best_f", "incumbent_f"]
    recorded = runs_of(Evidence(rows), [(TASK, method, name) for method in ("random", "ei") for name in metrics])
    order = ["metric", "method", "seed"]
    for name in metrics:
        found = pb.runs("ATLAS-misspecified", folder=edition, metric=name).sort_values(order, ignore_index=True)
        expected = recorded[recorded["metric"] == name].sort_values(order, ignore_index=True).rename(columns=NAMES)
        same = [column for column in found if column != "evaluations"]  # the atlas plans ten points, these have four
        pd.testing.assert_frame_equal(found[same], expected[same], check_dtype=False, check_categorical=False, rtol=0)
    assert set(pb.runs("ATLAS-misspecified", folder=edition)["metric"]) == {"regret"}, "the task's own measure"
    assert set(pb.runs("ATLAS-misspecified", folder=edition, metric="nll")["method"]) == {"ei"}, "it alone forecasts"
    with pytest.raises(PlumblineError, match="unknown metric of ATLAS-misspecified 'regrets': did you mean 'regret'"):
        pb.runs("ATLAS-misspecified", folder=edition, metric="regrets")
    with pytest.raises(PlumblineError, match="unknown experiment of the atlas 'ATLAS-clean'"):
        pb.runs("ATLAS-clean", folder=edition)


def test_methods_of_an_edition_are_compared(edition: Path) -> None:
    by_task = pb.compare(["random", "ei"], TASK, folder=edition)
    assert by_task.attrs["source"] == f"ATLAS-misspecified in {edition}"
    last = pb.atlas(folder=edition).query("round == 3").pivot(index="seed", columns="method", values="regret")
    assert by_task.set_index("method").loc["ei", "difference"] == pytest.approx((last["ei"] - last["random"]).mean())
    named = pb.compare(["random", "ei"], experiment="ATLAS-misspecified", folder=edition)
    pd.testing.assert_frame_equal(named, by_task)


def test_another_edition_on_file_hinders_no_other_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results" / "atlas"
    folder.mkdir(parents=True)
    (folder / "edition.json").write_text('{"edition": "1999.01"}\n')
    monkeypatch.chdir(tmp_path)
    assert len(pb.runs("CBO-X1")) > 0
    assert len(pb.compare(["ucb", "cucb"], "levy-20", experiment="CBO-X1")) > 0
    with pytest.raises(PlumblineError, match=r"is the atlas 1999\.01; this version of plumbline reads"):
        pb.runs("ATLAS-noisy")


@pytest.mark.slow
def test_results_without_trials_change_no_edition(edition: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in edition.iterdir()}
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(PlumblineError, match="no trials in"):
            add_to_atlas(folder, folder=edition)
    (tmp_path / "trials").mkdir()
    assert add_to_atlas(tmp_path, folder=edition, data=tmp_path) == 0
    assert {path.name: path.read_bytes() for path in edition.iterdir()} == before


def test_ranks_and_profiles(edition: Path) -> None:
    ranks = pb.atlas("ranks", folder=edition)
    assert set(ranks["cost"]) == {"", "1 second", "1 minute", "1 hour", "1 day"}
    assert set(ranks.loc[ranks["cost"] == "", "track"]) == {"all", "misspecified"}
    assert ranks.groupby(["cost", "track"])["beaten"].sum().tolist() == pytest.approx([1.0] * 6)
    profiles = pb.atlas("profiles", folder=edition)
    assert set(profiles["method"]) == {"random", "ei"}
    assert profiles["share"].between(0, 1).all()


def test_what_there_is_not(edition: Path, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="unknown part of the atlas 'round': did you mean 'rounds'"):
        pb.atlas("round", folder=edition)  # type: ignore[arg-type]
    with pytest.raises(
        PlumblineError, match="unknown task of the atlas 'atlas-forester': did you mean 'atlas-forrester'"
    ):
        pb.atlas(task="atlas-forester", folder=edition)
    with pytest.raises(PlumblineError, match="unknown method of the atlas 'eii': did you mean 'ei'"):
        pb.atlas(methods=["eii"], folder=edition)
    with pytest.raises(PlumblineError, match="no atlas at"):
        pb.atlas(folder=tmp_path)


def test_every_cell_that_is_planned_can_run(atlas_grid: AtlasGrid) -> None:
    """A method that refuses a task would leave a hole; public libraries need not be installed."""
    for experiment in atlas_grid.experiments:
        if experiment.inputs:
            continue  # its data are not at hand; methods of a track are the same on all of its tasks
        spec = experiment.specs[0]
        domain = domain_of(spec, Path())
        for one in experiment.specs:
            if one.task == spec.task:
                reason = reason_of(one.method, domain)
                assert reason == NOT_PLANNED or "is not installed" in reason, (one.task, one.method.label, reason)


def test_the_grid_is_the_protocol_s(atlas_grid: AtlasGrid) -> None:
    tasks = atlas_grid.tasks()
    single = tasks[~tasks["track"].isin(["constraints", "objectives"])]
    trials = sum(len(seeds) for one in atlas_grid.experiments for _, seeds in one.trials)
    assert (len(single), trials) == (33, 8_268)
    text = (find_repository() / "docs/results/atlas-protocol.md").read_text(encoding="utf-8")
    assert "33" in text
    assert "8,268" in text
