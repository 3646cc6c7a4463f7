"""Records -> MLflow: what arrives, and that nothing arrives twice."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError
from toy_trials import Results, copy, everything, runs

from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import frame_of
from plumbline.metrics.registry import METRICS, as_recorded, by_round
from plumbline.store import records
from plumbline.study.plan import Plan
from plumbline.tracking import importing
from plumbline.tracking.addresses import database_of
from plumbline.tracking.database import DatabaseStore
from plumbline.trials.trial import Trial

ONE, TEN = "quick/toy/TOY-F1", "quick/toy/TOY-F10"


def test_a_new_database(empty: Path) -> None:
    with closing(sqlite3.connect(empty)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT name FROM experiments").fetchall() == [("Default",)]


def failing(monkeypatch: pytest.MonkeyPatch, *seeds: int, after: int = 4) -> None:
    """Make the trials of these seeds fail, at their fifth evaluation or another one."""
    original = Trial._evaluate

    def evaluate(self: Trial, *arguments: Any) -> Any:
        if len(self.log) == after and self.spec.seed in seeds:
            raise PlumblineError("the fifth evaluation went wrong")
        return original(self, *arguments)

    monkeypatch.setattr(Trial, "_evaluate", evaluate)


def history(results: Results, run: str, name: str) -> dict[int, float]:
    return {entry.step: entry.value for entry in results.client().get_metric_history(run, name)}


def rows_of(results: Results, method: int) -> pd.DataFrame:
    return frame_of(records.read_table(results.chunks[method]))


@pytest.mark.slow
def test_what_is_said(imported: Results) -> None:
    line, *pages = imported.said.splitlines()
    assert line == (
        f"8 trials imported, 0 there already, 0 of all failed; look at them with `plumbline ui --uri {imported.uri}` at"
    )
    for page, name in zip(pages, (ONE, TEN), strict=True):
        found = imported.client().get_experiment_by_name(name)
        assert page == (
            f"  {name.rpartition('/')[2]}: http://127.0.0.1:5000/#/experiments/{found.experiment_id}/runs"
            "?workflowType=machine_learning&viewStateShareKey=plumbline.trials"
        )
        assert "mlflow.sharedViewState.plumbline.trials" in found.tags
        tags = {key: value for key, value in found.tags.items() if key.startswith("plumbline.")}
        assert tags == {
            "plumbline.preset": "quick",
            "plumbline.study": "toy",
            "plumbline.experiment": name.rpartition("/")[2],
        }


def test_runs_of_an_experiment(imported: Results) -> None:
    found = runs(imported.client(), ONE)
    assert set(found) == {
        *(f"{method} s{seed} branin" for method in ("random", "ei") for seed in (0, 1)),
        "random mean of 2 branin",
        "ei mean of 2 branin",
    }
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    run = found["ei s1 branin"]
    key = rows_of(imported, 1).query("seed == 1")["key"].iloc[0]
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    assert re.fullmatch(r"[0-9a-f]{16}", tags.pop("plumbline.run"))
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", tags.pop("plumbline.commit", "0" * 40))
    assert tags == {
        "kind": "trial",
        "task": "branin",
        "method": "ei",
        "plumbline.trial": key,
        "plumbline.data": "generated",
    }
    params = run.data.params
    assert (params["task"], params["method"], params["seed"]) == ("branin", "ei", "1")
    assert params["problem.name"] == "branin"
    assert params["problem.noise_std"] == "0.0"
    assert params["method.search.restarts"] == "1"
    assert params["method.model.kernel"] == "matern52"
    assert params["budget.initial.design"] == "uniform"
    assert params["budget.rounds"] == "2"


def test_groups_by_method_are_of_trials_alone(imported: Results) -> None:
    """The first tags that are offered are those that one groups by; a mean in a group would be one more seed."""
    for name, run in runs(imported.client(), ONE).items():
        offered = [tag for tag in run.data.tags if not tag.startswith("mlflow.")]
        assert (offered[:2] == ["method", "task"]) == (" mean of " not in name)
        assert ("method" in offered) == (" mean of " not in name)
        assert run.data.params["method"] == name.partition(" ")[0]


@pytest.mark.parametrize("minimised", [False, True])
def test_metrics_are_those_of_the_figures(imported: Results, minimised: bool) -> None:
    run = runs(imported.client(), TEN if minimised else ONE)["ei s1 branin"]
    rows = rows_of(imported, 1)
    evaluations = rows.groupby("iteration")["evaluation"].last() + 1
    streamed = [metric.name for metric in METRICS.values() if metric.streamed]
    logged = set(run.data.metrics)
    best = "least_f" if minimised else "best_f"
    assert {best, "regret", "nll", "calibration_score", "query_coverage", "round_seconds"} <= logged
    assert ("best_f" in logged) != minimised
    turned = {"least_f": "best_f", "least_y": "best_y", "minus_incumbent_f": "incumbent_f"}
    for name in sorted(logged):
        if name == "round_seconds":
            continue
        metric = turned.get(name, name) if minimised else name
        assert metric in streamed or name.startswith("notes/")
        values = by_round(rows, metric.replace("notes/", "notes.")).loc[1]
        sign = -1 if metric != name else 1
        assert history(imported, run.info.run_id, name) == {
            int(evaluations[i]): sign * value for i, value in values.items()
        }, name
    seconds = rows[rows["seed"] == 1].groupby("iteration")["round_seconds"].last()
    assert history(imported, run.info.run_id, "round_seconds") == {
        int(evaluations[i]): value for i, value in seconds.items()
    }
    stamps = [entry.timestamp for entry in imported.client().get_metric_history(run.info.run_id, "regret")]
    assert stamps == sorted(stamps)
    assert run.info.start_time <= stamps[0]
    assert abs(run.info.end_time - stamps[-1]) <= 2


@pytest.mark.parametrize("method", ["random", "ei"])
def test_means_are_those_of_the_trials(imported: Results, method: str) -> None:
    """Added up number by number from the runs of the trials."""
    found = runs(imported.client(), TEN)
    mean = found[f"{method} mean of 2 branin"]
    trials = [found[f"{method} s{seed} branin"] for seed in (0, 1)]
    assert mean.data.params["seeds"] == "2"
    assert "seed" not in mean.data.params
    names = {name for name in mean.data.metrics if not name.startswith("interval/")}
    assert {"least_f", "regret", "round_seconds"} <= names
    for name in names:
        single = [history(imported, trial.info.run_id, name) for trial in trials]
        low, high = (history(imported, mean.info.run_id, f"interval/{name}.{end}") for end in ("low", "high"))
        for step, value in history(imported, mean.info.run_id, name).items():
            one, other = (values[step] for values in single)
            assert value == pytest.approx((one + other) / 2, abs=1e-12)
            reach = 12.7062047361747 * abs(one - other) / 2  # Student's 97.5% point of one degree of freedom
            assert (low[step], high[step]) == pytest.approx((value - reach, value + reach), abs=1e-9)


@pytest.mark.slow
def test_an_experiment_has_the_metrics_of_its_own_figure(results: Results) -> None:
    """Also those that others do not have."""
    study = results.plan.studies["toy"]
    options = {"rows": [{"metric": "instant_regret", "label": "regret"}]}
    figure = study.experiments["TOY-F10"].figure
    assert figure is not None
    changed = study.experiments["TOY-F10"].model_copy(update={"figure": figure.model_copy(update={"options": options})})
    experiments = {**study.experiments, "TOY-F10": changed}
    plan = replace(results.plan, studies={"toy": study.model_copy(update={"experiments": experiments})})
    results.track(plan)
    run = runs(results.client(), TEN)["ei s0 branin"]
    values = as_recorded(rows_of(results, 1), "instant_regret").loc[0]
    assert [*history(results, run.info.run_id, "instant_regret").values()] == values.tolist()
    assert "instant_regret" not in runs(results.client(), ONE)["ei s0 branin"].data.metrics


def artifacts_of(results: Results, experiment: str, run: str) -> Path:
    uri = runs(results.client(), experiment)[run].info.artifact_uri
    assert uri.startswith("mlflow-artifacts:/")
    return results.root / "mlartifacts" / uri.removeprefix("mlflow-artifacts:/")


def test_artifacts_of_a_trial(imported: Results) -> None:
    folder = artifacts_of(imported, TEN, "ei s1 branin")
    assert {path.name for path in folder.iterdir()} == {
        "spec.json",
        "provenance.json",
        "records.parquet",
        "timings.parquet",
        "curves.svg",
    }
    key = runs(imported.client(), TEN)["ei s1 branin"].data.tags["plumbline.trial"]
    for name in ("provenance.json", "records.parquet"):
        assert (folder / name).read_bytes() == (imported.store / key / name).read_bytes()
    assert json.loads((folder / "spec.json").read_text())["seed"] == 1
    assert "least_f: " in (folder / "curves.svg").read_text()


def test_no_address_tells_where_the_database_was(imported: Results) -> None:
    with closing(sqlite3.connect(imported.root / "mlflow.db")) as connection:
        found = connection.execute("SELECT artifact_uri FROM runs").fetchall()
    assert found
    assert all(uri.startswith("mlflow-artifacts:/quick/TOY-F1") for (uri,) in found)


@pytest.mark.slow
def test_a_store_that_is_gone_leaves_runs_without_its_files(results: Results, tmp_path: Path) -> None:
    results.store = tmp_path / "gone"
    results.track()
    folder = artifacts_of(results, ONE, "ei s0 branin")
    assert {path.name for path in folder.iterdir()} == {"spec.json", "curves.svg"}
    assert json.loads((folder / "spec.json").read_text())["task"] == "branin"


@pytest.mark.slow
def test_what_the_machine_did_for_a_job_of_more_than_a_minute(results: Results, tmp_path: Path) -> None:
    jobs = results.plan.jobs()
    head = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
    for chunk, seconds in zip(results.plan.resolve("TOY-F1").chunks, ("59.9", "75.5"), strict=True):
        path = tmp_path / "benchmarks" / f"{jobs[chunk.id]}.tsv"
        path.parent.mkdir(parents=True)
        path.write_text(f"{head}{seconds}\t0:01:15\t374.5\t1\t1\t1\t-\t1\t-\t70.25\n")
    results.track(jobs=jobs, benchmarks=tmp_path / "benchmarks")
    short, long = (
        {name: value for name, value in run.data.metrics.items() if name.startswith("system/")}
        for run in (runs(results.client())[f"{method} s0 branin"] for method in ("random", "ei"))
    )
    assert short == {}
    assert long == {
        "system/job_seconds": 75.5,
        "system/job_cpu_seconds": 70.25,
        "system/job_memory_megabytes": 374.5,
    }


@pytest.mark.slow
def test_long_trials_are_thinned(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.tracking.runs.STEPS", 2)
    results.track()
    for run in ("ei s0 branin", "ei mean of 2 branin"):
        for name in ("best_f", "round_seconds"):
            steps = [*history(results, runs(results.client())[run].info.run_id, name)]
            assert steps == [3, 5], "the initial design and the last round"


@pytest.mark.slow
def test_a_second_import_changes_nothing(results: Results) -> None:
    attach(results, "a figure")
    results.track()
    before, files = everything(results.root / "mlflow.db"), times(results.root)
    assert results.track().startswith("0 trials imported, 8 there already")
    assert everything(results.root / "mlflow.db") == before
    assert times(results.root) == files


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (folder / "mlartifacts").rglob("*")}


@pytest.mark.slow
def test_a_database_that_is_made_anew_has_the_same_runs(results: Results, imported: Results) -> None:
    """Addresses and folders of artifacts too."""
    results.track()
    one, other = (
        {name: run.info.artifact_uri for name, run in runs(of.client()).items()} for of in (results, imported)
    )
    assert one == other


def test_presets_have_experiments_of_their_own(results: Results) -> None:
    results.track(narrow(results, preset="desk", experiments=("TOY-F2",)))
    found = {one.name for one in results.client().search_experiments()}
    assert found == {"Default", "desk/toy/TOY-F2"}


def narrow(results: Results, **changes: Any) -> Plan:
    return replace(results.plan, config=results.plan.config.model_copy(update=changes))


@pytest.mark.slow
def test_an_import_of_one_experiment_leaves_others_alone(results: Results) -> None:
    results.track()
    before = {name: run.to_dictionary() for name, run in runs(results.client(), TEN).items()}
    assert results.track(narrow(results, experiments=("TOY-F1",))).startswith("0 trials imported, 4 there already")
    assert {name: run.to_dictionary() for name, run in runs(results.client(), TEN).items()} == before


def fewer(results: Results, folder: Path) -> Results:
    """The records of one method alone, as if the other's had never been run."""
    first = results.chunks[0].relative_to(results.trials)
    (folder / first).parent.mkdir(parents=True)
    (folder / first).write_bytes(results.chunks[0].read_bytes())
    other = Results(results.root, results.plan)
    other.store, other.trials = results.store, folder
    return other


@pytest.mark.slow
def test_runs_of_records_that_are_gone_go(results: Results, tmp_path: Path) -> None:
    """As those of other code: two runs of one trial would be two seeds in a mean."""
    results.track()
    fewer(results, tmp_path / "some").track()
    assert set(runs(results.client())) == {"random s0 branin", "random s1 branin", "random mean of 2 branin"}
    assert results.track().startswith("4 trials imported, 4 there already")
    assert len(runs(results.client())) == 6


@pytest.mark.slow
def test_a_kill_in_the_middle_is_mended(results: Results, imported: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any number of runs: the next import ends with the same tables as one that was never stopped."""
    original, calls = DatabaseStore.add, iter(range(100))

    def add(self: DatabaseStore, *arguments: Any) -> None:
        if next(calls) in (1, 3):
            raise KeyboardInterrupt
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseStore, "add", add)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                results.track()
            assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}
    results.track()
    for table in ("runs", "metrics", "latest_metrics", "params", "tags"):
        one, other = (everything(root / "mlflow.db")[table] for root in (results.root, imported.root))
        assert one == other, table


@pytest.mark.slow
def test_failed_trials(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results.store, results.trials = tmp_path / "store", tmp_path / "trials"
    with monkeypatch.context() as patch:
        failing(patch, 0)
        results.run()
    assert results.track().startswith("8 trials imported, 0 there already, 4 of all failed")
    assert results.track().startswith("0 trials imported, 8 there already, 4 of all failed")
    found = runs(results.client())
    run = found["random s0 branin"]
    assert run.info.status == "FAILED"
    assert "the fifth evaluation went wrong" in run.data.tags["plumbline.error"]
    assert len(history(results, run.info.run_id, "best_y")) == 2
    assert (artifacts_of(results, ONE, "random s0 branin") / "error.json").is_file()
    mean, whole = found["random mean of 1 branin"], found["random s1 branin"]
    assert mean.data.tags["mlflow.note.content"] == "1 of 2 trials failed: the means are of the others."
    assert history(results, mean.info.run_id, "best_f") == history(results, whole.info.run_id, "best_f")
    assert not [name for name in mean.data.metrics if name.startswith("interval/")], "one seed has no spread"

    for folder in results.store.iterdir():
        if (folder / "error.json").is_file():
            (folder / "records.parquet").unlink()
            (folder / "error.json").unlink()
    results.run()
    assert results.track().startswith("4 trials imported, 4 there already, 0 of all failed")
    assert {run.info.status for run in runs(results.client()).values()} == {"FINISHED"}
    assert "random mean of 2 branin" in runs(results.client())


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 4])
def test_all_trials_failed(after: int, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results.store, results.trials = tmp_path / "store", tmp_path / "trials"
    with monkeypatch.context() as patch:
        failing(patch, 0, 1, after=after)
        results.run()
    results.track()
    assert len(runs(results.client())) == 4, "there is nothing to take a mean of"
    assert results.track().startswith("0 trials imported, 8 there already, 8 of all failed")


def attach(results: Results, text: str) -> None:
    for name in ("figures/TOY-F1.png", "tables/TOY-F1.csv", "figures/TOY-F10.svg", "claims.csv", "report.html"):
        path = results.root / "quick" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}: {text}")


@pytest.mark.slow
def test_outputs(results: Results) -> None:
    attach(results, "the first")
    for name in ("figures/CAL-F1.png", "figures/TOY-F100.png", "figures/TOY-F1.pdf"):
        (results.root / "quick" / name).write_text(name)
    said = results.track()
    assert "  report: http://127.0.0.1:5000/#/experiments/" in said

    def attached(experiment: str, run: str) -> dict[str, str]:
        folder = artifacts_of(results, experiment, run)
        return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}

    names = ["figures/TOY-F1.png", "tables/TOY-F1.csv"]
    assert attached(ONE, "figure and table") == {name: f"{name}: the first" for name in names}
    assert [*attached(TEN, "figure and table")] == ["figures/TOY-F10.svg"]
    assert {*attached("quick/report", "report of quick")} == {"claims.csv", "report.html"}
    attach(results, "the second")
    (results.root / "quick/tables/TOY-F1.csv").unlink()
    results.track()
    assert attached(ONE, "figure and table") == {"figures/TOY-F1.png": "figures/TOY-F1.png: the second"}
    assert len(results.client().search_runs([results.client().get_experiment_by_name(ONE).experiment_id])) == 7


def test_jobs_that_have_not_run_are_counted(results: Results, tmp_path: Path) -> None:
    said = fewer(results, tmp_path / "some").track()
    assert said.startswith("4 trials imported, 0 there already, 0 of all failed, 1 jobs not run yet; ")


def test_no_records_at_all_is_one_line(results: Results, tmp_path: Path) -> None:
    results.trials = tmp_path / "nowhere"
    with pytest.raises(PlumblineError, match=r"no records of any job in .*: run the trials first"):
        results.track()


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
            database_of(uri)
        except PlumblineError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.slow
@pytest.mark.parametrize("name", ["with blank.db", "a#b.db", "100%.db", "a%20b.db", "ü.db"])
def test_odd_names_of_databases(name: str, results: Results) -> None:
    copy(results.root / "mlflow.db", results.root / name)
    assert results.track(uri=f"sqlite:///{results.root}/{name}").startswith("8 trials imported")
    with closing(sqlite3.connect(results.root / name)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 12, "no other file was written"


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

    monkeypatch.setattr(DatabaseStore, "add", fails)
    with pytest.raises(PlumblineError, match=re.escape(remedy)) as error:
        results.track()
    assert "\n" not in str(error.value)
    assert "move" not in str(error.value) or "is damaged" in str(error.value) or "upgrade" in str(error.value)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["move", "copy"])
def test_a_moved_folder_has_its_own_artifacts(
    how: str, results: Results, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Before and after another import, which finds all there."""
    attach(results, "of the first")
    results.track()
    there = Results(tmp_path_factory.mktemp("elsewhere") / "my results", results.plan)
    there.store, there.trials = results.store, results.trials
    if how == "move":
        results.root.rename(there.root)
    else:
        shutil.copytree(results.root, there.root)
        attach(results, "of the first, later")
        results.track()
    for _ in range(2):
        figure = artifacts_of(there, ONE, "figure and table") / "figures/TOY-F1.png"
        assert figure.read_text() == "figures/TOY-F1.png: of the first"
        assert there.track().startswith("0 trials imported, 8 there already")
    attach(there, "of the second")
    there.track()
    assert (artifacts_of(there, ONE, "figure and table") / "figures/TOY-F1.png").read_text().endswith("of the second")
    if how == "copy":
        assert (artifacts_of(results, ONE, "figure and table") / "figures/TOY-F1.png").read_text().endswith("later")


@pytest.mark.slow
def test_of_tables_that_we_do_not_know_runs_are_made_one_by_one(
    results: Results, imported: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same runs, found again by the same tags."""
    monkeypatch.setattr("plumbline.tracking.database.SCHEMA", "another")
    assert results.track().startswith("8 trials imported")
    assert results.track().startswith("0 trials imported, 8 there already")
    for name, run in runs(results.client(), TEN).items():
        other = runs(imported.client(), TEN)[name]
        assert run.data.params == other.data.params
        assert run.data.metrics == other.data.metrics
        assert run.data.tags == other.data.tags
        assert (artifacts_of(results, TEN, name) / "curves.svg").is_file() == (" mean of " not in name)
