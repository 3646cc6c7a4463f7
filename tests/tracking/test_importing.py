"""Records -> MLflow: what arrives, and that nothing arrives twice."""

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from sqlalchemy.exc import SQLAlchemyError
from toy_trials import Results, copy, runs

from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import METRICS, by_round
from plumbline.store import records
from plumbline.study.plan import Plan
from plumbline.tracking import importing
from plumbline.trials.trial import Trial


def test_a_new_database(empty: Path) -> None:
    with closing(sqlite3.connect(empty)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT name FROM experiments").fetchall() == [("Default",)]


def found_id(results: Results) -> str:
    return results.client().get_experiment_by_name("toy").experiment_id


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every trial fail at its fifth evaluation."""
    original = Trial._evaluate

    def evaluate(self: Trial, *arguments: Any) -> Any:
        if len(self.log) == 4:
            raise PlumblineError("the fifth evaluation went wrong")
        return original(self, *arguments)

    monkeypatch.setattr(Trial, "_evaluate", evaluate)


def test_import(results: Results) -> None:
    line = results.track()
    assert line.startswith("2 trials imported, 0 there already, 0 of all failed;")
    assert f"`mlflow ui --backend-store-uri {results.uri}`" in line
    page = f"http://127.0.0.1:5000/#/experiments/{found_id(results)}?workflowType=machine_learning"
    assert line.splitlines()[1:] == [f"  toy: {page}"]
    found = runs(results.client())
    assert set(found) == {"branin random seed 0", "branin ei seed 0", "summary of quick"}
    run = found["branin ei seed 0"]
    rows = records.read_table(results.chunks[1]).to_pylist()
    assert run.info.status == "FINISHED"
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("plumbline.")}
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", tags.pop("plumbline.commit", "0" * 40))
    assert tags == {
        "plumbline.trial": rows[0]["key"],
        "plumbline.study.experiments": "toy",
        "plumbline.experiment": "TOY-F1,TOY-F10",
        "plumbline.task": "branin",
        "plumbline.method": "ei",
        "plumbline.seed": "0",
        "plumbline.preset": "quick",
        "plumbline.data": "generated",
    }
    params = run.data.params
    assert (params["task"], params["method"], params["seed"]) == ("branin", "ei", "0")
    assert params["problem.name"] == "branin"
    assert params["problem.noise_std"] == "0.0"
    assert params["method.search.restarts"] == "1"
    assert params["method.model.kernel"] == "matern52"
    assert params["budget.initial.design"] == "uniform"
    assert params["budget.rounds"] == "2"


def test_metrics_are_those_of_the_figures(results: Results) -> None:
    results.track()
    client = results.client()
    run = runs(client)["branin ei seed 0"]
    rows = frame_of(records.read_table(results.chunks[1]))
    evaluations = rows.groupby("iteration")["evaluation"].last() + 1

    def history(name: str) -> dict[int, float]:
        return {entry.step: entry.value for entry in client.get_metric_history(run.info.run_id, name)}

    streamed = [metric.name for metric in METRICS.values() if metric.streamed]
    logged = set(run.data.metrics)
    assert {"best_f", "regret", "nll", "calibration_score", "query_coverage", "round_seconds"} <= logged
    for name in sorted(logged):
        if name == "round_seconds":
            continue
        assert name in streamed or name.startswith("notes.")
        values = by_round(rows, name)
        assert history(name) == {int(evaluations[i]): value for i, value in values.iloc[0].items()}, name
    seconds = rows.groupby("iteration")["round_seconds"].last()
    assert history("round_seconds") == {int(evaluations[i]): value for i, value in seconds.items()}
    stamps = [entry.timestamp for entry in client.get_metric_history(run.info.run_id, "best_y")]
    assert stamps == sorted(stamps)
    assert run.info.start_time <= stamps[0]
    assert abs(run.info.end_time - stamps[-1]) <= 2


def test_long_trials_are_thinned(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.tracking.runs.STEPS", 2)
    results.track()
    run = runs(results.client())["branin ei seed 0"]
    for name in ("best_f", "round_seconds"):
        steps = [entry.step for entry in results.client().get_metric_history(run.info.run_id, name)]
        assert steps == [3, 5], "the initial design and the last round"


def test_a_second_import_changes_nothing(results: Results) -> None:
    results.track()
    before = {name: run.to_dictionary() for name, run in runs(results.client()).items() if "seed" in name}
    assert results.track().startswith("0 trials imported, 2 there already")
    assert {name: run.to_dictionary() for name, run in runs(results.client()).items() if "seed" in name} == before


def test_an_experiment_that_shares_trials_is_added_to_their_tags(results: Results) -> None:
    def planned(**changes: Any) -> Plan:
        return replace(results.plan, config=results.plan.config.model_copy(update=changes))

    results.track(planned(experiments=("TOY-F10",)))
    assert runs(results.client())["branin ei seed 0"].data.tags["plumbline.experiment"] == "TOY-F10"
    assert results.track().startswith("0 trials imported, 2 there already")
    assert runs(results.client())["branin ei seed 0"].data.tags["plumbline.experiment"] == "TOY-F10,TOY-F1"
    results.track(planned(preset="desk"))
    tags = runs(results.client())["branin ei seed 0"].data.tags
    assert tags["plumbline.experiment"] == "TOY-F10,TOY-F1,TOY-F2"
    assert tags["plumbline.preset"] == "quick,desk"


def test_a_crash_in_the_middle_is_mended(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(importing, "log_metrics", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            results.track()
    assert [run.info.status for run in runs(results.client()).values()] == ["RUNNING"]
    assert results.track().startswith("2 trials imported, 0 there already")
    assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}


def test_failed_trials(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(tmp_path, results.plan)
    with monkeypatch.context() as patch:
        failing(patch)
        results.run()
    assert results.track().startswith("2 trials imported, 0 there already, 2 of all failed")
    assert results.track().startswith("0 trials imported, 2 there already, 2 of all failed")
    found = runs(results.client())
    run = found["branin random seed 0"]
    assert run.info.status == "FAILED"
    assert "the fifth evaluation went wrong" in run.data.tags["plumbline.error"]
    assert len(results.client().get_metric_history(run.info.run_id, "best_y")) == 2
    assert found["summary of quick"].data.metrics == {"trials": 2, "failures": 2}

    for folder in results.store.iterdir():
        (folder / "records.parquet").unlink()
        (folder / "error.json").unlink()
    results.run()
    assert results.track().startswith("2 trials imported, 0 there already, 0 of all failed")
    assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}


def test_summary(results: Results) -> None:
    folder = results.root / "quick"
    names = ["figures/TOY-F1.png", "figures/TOY-F1.svg", "tables/TOY-F10.csv", "claims.csv"]
    for name in [*names, "figures/CAL-F1.png", "figures/TOY-F100.png", "figures/TOY-F1.pdf"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    client = results.client()

    def attached() -> list[str]:
        run = runs(client)["summary of quick"]
        tops = client.list_artifacts(run.info.run_id)
        inner = [e for top in tops if top.is_dir for e in client.list_artifacts(run.info.run_id, top.path)]
        return sorted(entry.path for entry in [*tops, *inner] if not entry.is_dir)

    results.track()
    assert attached() == sorted(names)
    first = runs(client)["summary of quick"]
    assert first.data.metrics == {"trials": 2, "failures": 0}
    assert first.data.tags["plumbline.summary"] == "quick"
    assert first.info.artifact_uri.startswith((results.root / "mlartifacts").as_uri())
    (folder / "figures/TOY-F1.svg").unlink()
    (folder / "claims.csv").unlink()
    results.track()
    assert attached() == ["figures/TOY-F1.png", "tables/TOY-F10.csv"]
    assert runs(client)["summary of quick"].info.run_id == first.info.run_id


def test_jobs_that_have_not_run_are_counted(results: Results, tmp_path: Path) -> None:
    first = results.chunks[0].relative_to(results.trials)
    some = tmp_path / "some"
    (some / first).parent.mkdir(parents=True)
    (some / first).write_bytes(results.chunks[0].read_bytes())
    results.trials = some
    assert results.track().startswith("1 trials imported, 0 there already, 0 of all failed, 1 jobs not run yet; ")


def test_no_records_at_all_is_one_line(results: Results, tmp_path: Path) -> None:
    results.trials = tmp_path / "nowhere"
    with pytest.raises(PlumblineError, match=r"no records of any of the 2 jobs in .*: run the trials first"):
        results.track()


def attach(results: Results, text: str) -> None:
    path = results.root / "quick" / "figures" / "TOY-F1.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def figure_of(results: Results) -> str:
    """Read the figure back from where MLflow says that it is."""
    repository = get_artifact_repository(runs(results.client())["summary of quick"].info.artifact_uri)
    return Path(repository.download_artifacts("figures/TOY-F1.png")).read_text()


def moved(results: Results, folder: Path) -> Results:
    there = Results(folder, results.plan)
    there.store, there.trials = results.store, results.trials
    return there


def test_results_that_were_moved_keep_their_figures(results: Results) -> None:
    attach(results, "a figure")
    results.track()
    there = moved(results, results.root.rename(results.root.with_name(f"{results.root.name}-moved")))
    assert there.track().startswith("0 trials imported, 2 there already")
    assert figure_of(there) == "a figure"
    for run in runs(there.client()).values():
        assert run.info.artifact_uri.startswith((there.root / "mlartifacts").as_uri() + "/toy/")


def test_a_copy_never_writes_where_it_was_copied_from(results: Results) -> None:
    attach(results, "the first")
    results.track()
    there = moved(results, results.root.with_name(f"{results.root.name}-copied"))
    shutil.copytree(results.root, there.root)
    attach(there, "the second")
    there.track()
    assert (figure_of(results), figure_of(there)) == ("the first", "the second")


def test_a_database_that_is_none(results: Results) -> None:
    (results.root / "mlflow.db").write_text("this is not a database, it is a sentence of some length")
    with pytest.raises(PlumblineError, match="move the file away"):
        results.track()


def test_a_database_of_another_version(results: Results) -> None:
    with sqlite3.connect(results.root / "mlflow.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    with pytest.raises(PlumblineError, match="mlflow db upgrade"):
        results.track()


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        *((uri, "give sqlite:///FILE or the http") for uri in (" ", "mlruns", "file:./mlruns", "postgresql://x/y")),
        *((uri, "give sqlite:///FILE or the http") for uri in ("sqlite://", "sqlite:/x.db", "sqlite://x.db", "data")),
        *((uri, "give sqlite:///FILE or the http") for uri in ("http://", "http:///x", "http://[", "http://x:port")),
        *(
            (uri, "give sqlite:///FILE or the http")
            for uri in ("http://x:99999999", "https://[::1", "mysql+x://a:b@c/d")
        ),
        *((uri, "name a file, as in") for uri in ("sqlite:///", "sqlite:////", "sqlite:///.", "sqlite:///:memory:")),
        *((uri, "name another file") for uri in ("sqlite:///a?b.db", "sqlite:///a.db?timeout=5")),
    ],
)
def test_addresses_that_are_none(uri: str, reason: str, results: Results) -> None:
    with pytest.raises(PlumblineError, match=re.escape(reason)) as error:
        results.track(uri=uri)
    assert str(error.value).startswith(f"MLflow at {uri!r}: ")


@given(st.text(st.characters(exclude_characters="\0")))
def test_any_address_is_one_or_a_line(text: str) -> None:
    for uri in (text, f"sqlite:///{text}", f"http://{text}", f"https://host:{text}"):
        try:
            importing._database(uri)
        except PlumblineError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", ["with blank.db", "a#b.db", "100%.db", "a%20b.db", "ü.db"])
def test_odd_names_of_databases(name: str, results: Results) -> None:
    copy(results.root / "mlflow.db", results.root / name)
    assert results.track(uri=f"sqlite:///{results.root}/{name}").startswith("2 trials imported")
    with closing(sqlite3.connect(results.root / name)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 3, "no other file was written"


def test_a_database_that_another_program_has(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing.sqlite3, "connect", partial(sqlite3.connect, timeout=0.1))
    with closing(sqlite3.connect(results.root / "mlflow.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(PlumblineError, match="another program has the database open for writing: stop it"):
            results.track()


@pytest.mark.parametrize("kind", [MlflowException, sqlite3.OperationalError, SQLAlchemyError])
@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("(sqlite3.OperationalError) database is locked [SQL: INSERT ...", "another program has the database open"),
        ("(sqlite3.OperationalError) database or disk is full", "disk full: free some space"),
        ("attempt to write a readonly database", "no permission to write: check the owner"),
        ("database disk image is malformed", "the database is damaged: move the file away"),
        ("Detected out-of-date database schema (found version x", "`mlflow db upgrade` it"),
    ],
)
def test_advice(
    words: str,
    remedy: str,
    kind: type[Exception],
    results: Results,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever says it: SQLite to us, SQLAlchemy while a database is made, or MLflow later."""

    def fails(*_: Any) -> None:
        raise kind(words)

    monkeypatch.setattr(importing, "log_metrics", fails)
    with pytest.raises(PlumblineError, match=re.escape(remedy)) as error:
        results.track()
    assert "\n" not in str(error.value)
    assert "move" not in str(error.value) or "is damaged" in str(error.value) or "upgrade" in str(error.value)
    assert capsys.readouterr().err == ""


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, results: Results) -> Results:
    """The same trials under a relative address, as `plumbline track` has it in a checkout."""
    monkeypatch.chdir(folder)
    there = Results(Path("my results"), results.plan)
    there.store, there.trials = results.store, results.trials
    return there


@pytest.mark.parametrize("how", ["move", "copy"])
def test_a_moved_folder_has_its_figures_before_any_import(
    how: str, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Addresses are as relative as that of the database: both are resolved from where `mlflow ui` is started."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first / "my results", second):
        folder.mkdir(parents=True)
    there = in_folder(first, monkeypatch, results)
    copy(results.root / "mlflow.db", first / "my results/mlflow.db")
    attach(there, "a figure")
    there.track()
    attach(there, "the same figure")
    there.track()
    if how == "move":
        (first / "my results").rename(second / "my results")
    else:
        shutil.copytree(first / "my results", second / "my results")
        attach(there, "a later figure of the first")
        there.track()
    there = in_folder(second, monkeypatch, results)
    assert figure_of(there) == "the same figure"
    for run in runs(there.client()).values():
        assert run.info.artifact_uri.startswith("./my%20results/mlartifacts/toy/")
    uris = [there.client().get_experiment_by_name("toy").artifact_location]
    assert uris == ["./my%20results/mlartifacts/toy"]
    assert [entry.path for entry in there.client().list_artifacts(summary_id(there), "figures")] == [
        "figures/TOY-F1.png"
    ]


def summary_id(results: Results) -> str:
    return str(runs(results.client())["summary of quick"].info.run_id)
