"""Comparisons of methods, and the seeds that they take, wherever their runs are."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import plumbline as pb
from plumbline.api.experiment_runs import metrics_of
from plumbline.api.listings import class_names
from plumbline.api.repository import find_repository, find_study
from plumbline.core.errors import PlumblineError


def test_reference_runs_and_their_comparison() -> None:
    runs = pb.runs("CBO-X1")
    assert {"task", "method", "metric", "seed", "last", "mean", "median", "evaluations"} <= set(runs)
    found = pb.compare(["ucb", "cucb"], experiment="CBO-X1")
    assert found.attrs["source"] == "CBO-X1 in results/reference"
    assert "mean_nominal_coverage" in set(runs["metric"]) - set(found["metric"]), "a level that was set"
    best = found[(found["metric"] == "best_f") & (found["method"] == "cucb")].set_index("task")
    assert set(best["better"]) == {"higher"}
    last = runs[runs["metric"] == "best_f"].pivot(index=["task", "seed"], columns="method", values="last")
    for task, one in best.iterrows():
        differences = (last.loc[task, "cucb"] - last.loc[task, "ucb"]).dropna()
        assert one["difference"] == pytest.approx(differences.mean())
        assert one["pairs"] == len(differences)
        assert one["difference_low"] < one["difference"] < one["difference_high"]
        assert (one["p"] < 0.05) == (not one["difference_low"] < 0 < one["difference_high"])
        assert one["p"] <= one["p_corrected"] <= 1


def test_results_on_file_of_a_former_definition_say_so() -> None:
    ran = "tr-eulbo-kg ran with the departures shrunk-twice-update, sampled-maximisers"
    former = f"{ran}: its definition has changed since"
    source = "AABO-T3 in results/reference"
    found = pb.compare(["tr-eulbo-ei", "tr-eulbo-kg"], experiment="AABO-T3")
    assert found.attrs["source"] == f"{source} ({former})"
    assert pb.compare(["tr-eulbo-ei", "tr-elbo-ei"], experiment="AABO-T3").attrs["source"] == source
    with pytest.warns(UserWarning, match=f"^AABO-T3: {former}"):
        pb.runs("AABO-T3")


def test_one_metric(tmp_path: Path) -> None:
    assert set(pb.runs("CBO-X1", metric="best_f")["metric"]) == {"best_f"}
    assert set(pb.compare(["ucb", "cucb"], "levy-20", metric="best_f")["metric"]) == {"best_f"}
    with pytest.raises(PlumblineError, match="unknown metric 'best_g': did you mean 'best_f'"):
        pb.compare(["ucb", "cucb"], "levy-20", metric="best_g")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="unknown experiment 'CBO-X11': did you mean 'CBO-X1'"):
        pb.runs("CBO-X11")
    with pytest.raises(PlumblineError, match="no runs of CAL-T1: run it"):
        pb.runs("CAL-T1")
    with pytest.raises(PlumblineError, match="no folder of results"):
        pb.runs("CAL-F3", folder=tmp_path / "none")


def test_the_metrics_of_an_experiment_are_those_of_its_figure_table_and_claims() -> None:
    _, study = find_study(find_repository(), "CAL-F3")
    assert metrics_of(study, "CAL-F3") == ["calibration_score", "best_f", "regret", "nll"]
    claims = [claim for claim in study.claims.values() if "CAL-F3-50" in claim.experiments]
    claimed = {test.metric for claim in claims for test in claim.tests}
    assert claimed
    assert claimed <= set(metrics_of(study, "CAL-F3-50"))


def test_listings_are_tables() -> None:
    methods, tasks, experiments, claims = pb.methods(), pb.tasks(), pb.experiments(), pb.claims()
    assert methods.set_index("method").loc["cucb", "class"] == "cucb"
    assert tasks.set_index("task").loc["ackley-2", ["problem", "rounds"]].tolist() == ["ackley-2", 30]
    assert experiments["experiment"].is_unique
    has_results = experiments.set_index("experiment")["reference"]
    assert has_results["CBO-X1"]
    assert has_results["ATLAS-clean"], "the atlas' experiments are in its edition, not below results/reference"
    assert claims.set_index("claim").loc["C1", "verdict"] == "reproduced"
    of_claims = experiments.set_index("experiment")["claims"]
    assert of_claims["CBO-F5-400"] == "C1, C2, C3", "those with fresh seeds count"
    for frame in (methods, tasks, experiments, claims):
        assert isinstance(frame, pd.DataFrame)
        assert not frame.isna().any().any()


def test_registered_classes() -> None:
    found = pb.classes()
    assert {"method", "problem", "design", "figure", "table", "metric", "statistic"} <= set(found["kind"])
    assert "regret" in set(pb.classes("metric")["name"])
    options = pb.classes("method", "ei").set_index("option")
    assert options.loc["model.kernel", "default"] == "matern52"
    assert pb.classes("metric", "regret").empty
    for kind, name, reason in (
        ("methods", "", "unknown kind of class 'methods': did you mean 'method'"),
        ("method", "eii", "unknown method 'eii': did you mean 'ei'"),
        ("metric", "regrets", "unknown metric 'regrets': did you mean 'regret'"),
        ("metrics", "regret", "unknown kind of class 'metrics': did you mean 'metric'"),
        ("", "ucb", "no kind of 'ucb': give one of method, problem"),
    ):
        with pytest.raises(PlumblineError, match=reason):
            pb.classes(kind, name)
    with pytest.raises(PlumblineError, match="unknown kind of class 'metrics': did you mean 'metric'"):
        class_names("metrics")


@pytest.mark.parametrize(
    ("asked", "options", "reason"),
    [
        ((["ucb", "cucb"], "levy-20"), {"of": "first"}, "unknown number of a run 'first': allowed: last, mean, median"),
        ((["ucb", "cucb"], "levy-20"), {"location": "mode"}, "unknown location 'mode': allowed: mean, median"),
        (("ucb", "levy-20"), {}, r"methods: name two or more, the baseline first \(got 'ucb'\)"),
        ((["ucb", "ucb"], "levy-20"), {}, "methods: 'ucb' is there twice"),
        ((["ucb", "cucb"],), {}, "no task: name one, or an experiment"),
        ((["ucb", "cucbb"], "levy-20"), {}, "unknown method 'cucbb': did you mean 'cucb'"),
        ((["ucb", "cucb"], "levy-21"), {}, "unknown task 'levy-21': did you mean 'levy-20'"),
        (
            (["cucb", "cei"], "sinc"),
            {"experiment": "CBO-X3-noise"},
            "CBO-X3-noise has reference results, but no",
        ),
        (
            (["locbo-radio", "random"], "radio-box"),
            {},
            "the reference results have means on 'radio-box'.*LOCBO-X3.*, but no single runs",
        ),
        (
            (["ei", "ucb"], "ackley-2"),
            {},
            "no experiment of the reference results has runs of ei, ucb on 'ackley-2', and results/store lacks ei, "
            "ucb: `plumbline trial --method ei --task ackley-2` runs a seed",
        ),
        ((["ucb", "cucb"], "levy-20"), {"store": "nope"}, "no folder of trials at nope"),
        ((["ucb", "cucb"], "levy-20"), {"folder": "nope"}, "no folder of results at nope"),
        ((["ucb", "cucb"], "levy-20"), {"store": "s", "folder": "f"}, "store: its trials are of no experiment"),
    ],
)
def test_a_wrong_question(asked: tuple[Any, ...], options: dict[str, Any], reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as error:
        pb.compare(*asked, **options)
    assert "\n" not in str(error.value)


CHEAP = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}


def run_branin(method: str, store: Path, seeds: Iterable[int], rounds: int = 1, **others: Any) -> pd.DataFrame:
    options = CHEAP if method == "ei" else {}
    places: dict[str, Any] = {"store": store, "data": store / "data"}
    return pb.run(
        method_class=method, problem="branin", options=options, seeds=seeds, rounds=rounds, **places, **others
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with six and five seeds of two methods on Branin's function."""
    folder: Path = tmp_path_factory.mktemp("store")
    run_branin("random", folder, range(6))
    run_branin("ei", folder, range(1, 6))
    return folder


@pytest.mark.slow
def test_trials_of_a_store(store: Path) -> None:
    found = pb.compare(["random", "ei"], "branin", store=store).set_index("method")
    assert found["metric"].unique().tolist() == ["regret"], "the optimum is known"
    assert found["seeds"].to_dict() == {"random": 6, "ei": 5}
    assert found.loc["ei", "pairs"] == 5
    single = run_branin("random", store, range(6))
    assert found.loc["random", "value"] == pytest.approx(single.groupby("seed")["regret"].last().mean())
    assert set(pb.compare(["random", "ei"], "branin", metric="round_seconds", store=store)["metric"]) == {
        "round_seconds"
    }
    with pytest.raises(PlumblineError, match="has no trials of 'ucb' on 'branin' that ended well"):
        pb.compare(["random", "ucb"], "branin", store=store)


def test_trials_of_other_settings_are_not_mixed(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    run_branin("random", tmp_path / "store", range(2, 5), rounds=2)
    with pytest.warns(UserWarning, match="random on branin: 3 seeds with other rounds, options or data left out"):
        found = pb.compare(["random", "ei"], "branin", store=tmp_path / "store").set_index("method")
    assert found["seeds"].to_dict() == {"random": 3, "ei": 5}


def test_a_method_that_the_configuration_has_with_other_options_is_named(tmp_path: Path) -> None:
    places: dict[str, Any] = {"store": tmp_path, "data": tmp_path / "data", "seeds": range(2), "rounds": 1}
    pb.run("ucb", "ackley-2", options={**CHEAP, "sqrt_beta": 7.0}, **places)
    pb.run("random", "ackley-2", **places)
    with pytest.warns(
        UserWarning, match="^ucb on ackley-2: its trials are not of the present 'ucb' of config/methods"
    ) as said:
        pb.compare(["ucb", "random"], "ackley-2", store=tmp_path)
    assert not any("random" in str(one.message) for one in said)


@pytest.mark.parametrize("other", [{"problem_options": {"noise_std": 5.0}}, {"initial": 7}])
def test_methods_on_other_problems_are_not_compared(tmp_path: Path, other: dict[str, Any]) -> None:
    run_branin("random", tmp_path, range(2))
    run_branin("sobol", tmp_path, range(2), **other)
    with pytest.raises(PlumblineError, match="'random' and 'sobol' have other options of the problem, initial designs"):
        pb.compare(["random", "sobol"], "branin", store=tmp_path)


def test_one_damaged_trial_does_not_stop_a_comparison(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    broken = next((tmp_path / "store").glob("*/spec.json"))
    seed = json.loads(broken.read_text())["seed"]
    broken.unlink()
    with pytest.warns(UserWarning, match=r"no file .*spec\.json.*the trial is left out"):
        found = pb.compare(["random", "ei"], "branin", store=tmp_path / "store").set_index("method")
    assert found["seeds"].sum() == 10, seed


def test_unequal_budgets_are_a_warning(tmp_path: Path) -> None:
    run_branin("random", tmp_path, range(2))
    run_branin("ei", tmp_path, range(2), rounds=2)
    with pytest.warns(UserWarning, match="budgets on 'branin' differ, in evaluations: random 6, ei 7"):
        pb.compare(["random", "ei"], "branin", store=tmp_path)


@pytest.mark.slow
def test_the_seeds_that_a_comparison_takes(store: Path) -> None:
    found = pb.seeds(["ucb", "cucb"], "levy-20", effect="50%", metric="best_f")
    assert found["power"].tolist() == [0.8, 0.9]
    assert (found["pairs"] == 25).all()
    assert (found["low"] <= found["seeds"]).all()
    assert (found["seeds"] <= found["high"]).all()
    assert found["effect"].to_numpy() == pytest.approx(0.5 * found["baseline_mean"].abs())
    stored = pb.seeds(["random", "ei"], "branin", effect=1.0, store=store, given=9)
    assert (stored["effect"] == -1.0).all()
    assert (stored["given"] == 9).all()
    with pytest.raises(PlumblineError, match="no task: name one"):
        pb.seeds(["ucb", "cucb"], "")


def test_what_the_store_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One method was run, the other was not: only the latter is asked for."""
    monkeypatch.chdir(tmp_path)
    pb.run("random", "ackley-2", rounds=1)
    with pytest.raises(PlumblineError, match=r"store lacks ucb: `plumbline trial --method ucb --task ackley-2`"):
        pb.compare(["random", "ucb"], "ackley-2")


def test_a_problem_that_only_the_store_has_runs_on_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no entry of config/tasks, and no reference results."""
    monkeypatch.chdir(tmp_path)
    run_branin("random", tmp_path / "results/store", range(2))
    lacks = "results/store lacks ucb: `plumbline trial --method ucb --problem branin` runs a seed"
    with pytest.raises(PlumblineError, match=lacks):
        pb.compare(["random", "ucb"], "branin")
    lacks = "results/store lacks locbo-ucb: `plumbline trial --class locbo-ucb --problem branin` runs a seed"
    with pytest.raises(PlumblineError, match=lacks):
        pb.compare(["random", "locbo-ucb"], "branin")
    with pytest.raises(PlumblineError, match=r"unknown method 'rondom': did you mean 'random'\?"):
        pb.compare(["random", "rondom"], "branin")
    pb.run(method_class="random", problem="branin-currin", rounds=1, seeds=2)
    for name, near in {"branim": "branin", "branin-curin": "branin-currin"}.items():
        with pytest.raises(PlumblineError, match=f"unknown task '{name}': did you mean '{near}'"):
            pb.compare(["random", "ucb"], name)
        with pytest.raises(PlumblineError, match=f"unknown task '{name}': did you mean '{near}'"):
            pb.compare(["random", "ucb"], name, store="results/store")
    with pytest.raises(PlumblineError, match="of 'ucb' on 'branin' that ended well; of others it has: random"):
        pb.compare(["random", "ucb"], "branin", store="results/store")


def test_classes_by_their_paths_are_compared_by_their_names(tmp_path: Path) -> None:
    """Both run as `ask-tell`, with other options."""
    for name in ("Steps", "Batch"):
        found = pb.run(
            method_class="ask-tell",
            problem="branin",
            options={"optimiser": f"ask_tell_cases:{name}"},
            seeds=2,
            rounds=1,
            store=tmp_path,
            data=tmp_path,
        )
        assert set(found["method"]) == {name}
    compared = pb.compare(["Steps", "Batch"], "branin", store=tmp_path)
    assert compared["method"].tolist() == ["Steps", "Batch"]
    with pytest.raises(PlumblineError, match="of others it has: Batch, Steps"):
        pb.compare(["Steps", "ask-tell"], "branin", store=tmp_path)


def test_methods_may_be_separated_by_commas() -> None:
    expected = pb.compare(["ucb", "cucb"], "levy-20", experiment="CBO-X1", metric="best_f")
    found = pb.compare("ucb, cucb", "levy-20", experiment="CBO-X1", metric="best_f")
    pd.testing.assert_frame_equal(found, expected)


def test_the_number_is_that_of_tasks_with_runs() -> None:
    with pytest.raises(PlumblineError, match=r"did you mean 'levy-20'\? \d+ tasks have runs here$"):
        pb.compare("ucb,cucb", "levi-20")
