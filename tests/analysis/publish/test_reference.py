"""Results that are kept: merged by their keys, with one provenance."""

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import made_evidence as made
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as arrow
import pytest
from filelock import FileLock, Timeout
from PIL import Image

from plumbline.analysis.outputs.style import PALETTE, house_style, panels
from plumbline.analysis.publish import reference
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.explorer import explored_reference
from plumbline.analysis.publish.reference import combined_provenance, curves, keep, keep_figure, keep_verdicts, merge
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.records import read_table, write_table
from plumbline.store.reference_files import ExperimentFiles
from plumbline.study.plan import Plan


def test_merging_replaces_rows_of_the_same_keys_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    merge(path, pd.DataFrame({"task": ["b", "a"], "method": ["x", "x"], "value": [2.0, 1.0]}), ["task", "method"])
    merge(path, pd.DataFrame({"task": ["a"], "method": ["x"], "value": [7.0]}), ["task", "method"])
    assert pd.read_csv(path).to_numpy().tolist() == [["a", "x", 7.0], ["b", "x", 2.0]]


def test_merging_nothing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    merge(path, pd.DataFrame({"claim": ["K1"], "low": [0.0]}), ["claim"])
    before = path.read_bytes()
    merge(path, pd.DataFrame({"claim": [], "low": []}), ["claim"])
    assert path.read_bytes() == before


def test_provenance_lists_each_value_once() -> None:
    facts = [
        {"commit": "a", "dirty": False, "spec": {}, "wall_seconds": 1800.0},
        {"commit": "b", "dirty": False, "spec": {}, "wall_seconds": 1800.0},
    ]
    assert combined_provenance(facts) == {"commit": ["a", "b"], "dirty": [False], "trials": 2, "wall_hours": 1.0}


def test_an_illustration_is_kept_with_where_it_comes_from(tmp_path: Path) -> None:
    drawn = {"kind": "rkhs-function"}
    plan = made.plan({"E": {"title": "No trials", "illustration": drawn, "figure": drawn, "quick": {}}})
    table = arrow.Table.from_pandas(made.illustrated("rkhs-function").illustration, preserve_index=False)
    write_table(tmp_path / "quick/illustrations/E.parquet", table, {METADATA_KEY: json.dumps({"commit": "abc"})})
    (tmp_path / "quick/figures").mkdir()
    (tmp_path / "quick/figures/E.svg").write_text("<svg/>")
    Image.new("RGBA", (4, 3), "white").save(tmp_path / "quick/figures/E.png")
    keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
    kept = tmp_path / "reference/E"
    assert sorted(path.name for path in kept.iterdir()) == [
        "E-illustration.parquet",
        "E.png",
        "illustration-provenance.json",
    ]
    assert read_table(kept / "E-illustration.parquet").num_rows == table.num_rows
    about = json.loads((kept / "illustration-provenance.json").read_text())
    assert about == {"experiment": "E", "preset": "quick", "commit": "abc"}


@pytest.mark.slow
def test_figures_are_kept_in_fewer_colours_all_near_their_own(tmp_path: Path) -> None:
    with house_style():
        figure, ((left, right),) = panels(1, 2)
        left.imshow(np.outer(np.sin(np.arange(40) / 9), np.arange(60)), cmap="viridis")
        for i, name in enumerate(PALETTE):
            right.plot(np.sin(np.arange(50) / (i + 3)), color=PALETTE[name])
            right.fill_between(np.arange(50), i / 9, i / 9 + 0.3, color=PALETTE[name], alpha=0.15)
        figure.savefig(tmp_path / "E.png")
        plt.close(figure)
    home = ExperimentFiles(tmp_path / "E")
    home.folder.mkdir()
    keep_figure(tmp_path / "E.png", home.folder)
    drawn, kept = (np.asarray(Image.open(path).convert("RGB")) for path in (tmp_path / "E.png", home.figure))
    assert kept.shape == drawn.shape
    assert np.abs(kept.astype(int) - drawn).max() <= 24
    assert home.figure.stat().st_size < (tmp_path / "E.png").stat().st_size / 2


@pytest.mark.parametrize("kind", ["curves", "sweep"])
def test_single_runs_are_kept_by_round_whether_or_not_they_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setitem(made.LIBRARY.tasks, "bowl", made.LIBRARY.tasks["forrester"])
    figure = {"kind": kind, "options": made.FIGURES[kind]}
    plan = made.plan({"E": made.experiment(grid=[{"tasks": ["bowl"], "methods": ["plain"]}], figure=figure, seeds=1)})
    rows = made.trial()
    made.write(tmp_path / "quick/records/E.parquet", rows)
    draw(tmp_path / "quick")
    folder = TrialFolder(tmp_path / "store", rows[0]["key"])
    folder.write_json(folder.provenance_path, {"commit": "abc", "wall_seconds": 1.0})
    keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
    rounds = read_table(tmp_path / "reference/E/E-rounds.parquet").to_pandas()
    asked = {(row["seed"], row["iteration"]) for row in rows if row["iteration"] > 0}
    for _, run in rounds.groupby("metric", observed=True):
        places = list(zip(run["seed"], run["iteration"], strict=True))
        assert places == sorted(places), "run by run"
        assert asked <= set(places)
    assert (tmp_path / "reference/E/provenance.json").is_file()
    shown = explored_reference(ExperimentFiles(tmp_path / "reference/E"), {}, plan.library, Titles(plan.library))
    assert shown is not None
    assert all("values" in run for run in shown["runs"]), "readers see single seeds"


def test_curves_say_of_how_many_seeds_they_are(folder: Path) -> None:
    trials = [made.trial(seed=seed) for seed in range(3)]
    for row in trials[1][:4]:
        row["f"] = [float("nan")]
    found = curves(made.read(folder, *trials), ["regret"]).set_index("iteration")
    assert found["seeds"].to_dict() == {0: 2, 1: 2, 2: 2, 3: 3, 4: 3, 5: 3, 6: 3}


def draw(folder: Path) -> None:
    """Write a figure and a table as the preset's."""
    for kind in ("figures", "tables"):
        (folder / kind).mkdir(exist_ok=True, parents=True)
    Image.new("RGBA", (4, 3), "white").save(folder / "figures/E.png")
    (folder / "tables/E.csv").write_text("method,regret\nplain,0.5\n")


def run(folder: Path, store: Path, seeds: int = 6) -> None:
    """Write records as the preset's, a figure and a table, and what trials leave."""
    draw(folder)
    trials = [made.trial(method=method, seed=seed) for method in made.METHODS for seed in range(seeds)]
    made.write(folder / "records/E.parquet", *trials)
    for rows in trials:
        one = TrialFolder(store, rows[0]["key"])
        one.write_json(one.provenance_path, {"commit": "abc", "wall_seconds": 1.0})


class TestRunsThatAreKept:
    @pytest.fixture
    def plan(self, monkeypatch: pytest.MonkeyPatch) -> Plan:
        monkeypatch.setitem(made.LIBRARY.tasks, "bowl", made.LIBRARY.tasks["forrester"])
        return made.planned("K1")

    @pytest.mark.slow
    def test_verdicts_are_judged_by_them(self, plan: Plan, tmp_path: Path) -> None:
        run(tmp_path / "quick", tmp_path / "store")
        keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
        keep_verdicts(plan.studies.values(), plan.library, tmp_path / "reference")
        found = read_claims(tmp_path / "reference/claims.csv")
        assert found[["claim", "verdict", "seeds"]].to_numpy().tolist() == [["K1", "inconclusive at this scale", 6]]

    @pytest.mark.parametrize("shown", [(), ("table",), ("figure",), ("figure", "table")])
    def test_without_claims_they_are_of_what_is_shown(self, plan: Plan, tmp_path: Path, shown: tuple[str, ...]) -> None:
        outputs = {
            "figure": {"kind": "curves", "options": {"rows": [{"metric": "best_f", "label": "best value"}]}},
            "table": {"kind": "final-values", "options": {"metrics": ["regret", "best_f"]}},
        }
        metrics = {"figure": {"best_f"}, "table": {"regret", "best_f"}}
        grid = [{"tasks": ["bowl"], "methods": list(made.METHODS)}]
        experiment = made.experiment(
            **{"figure": None, "grid": grid, "seeds": 6, **{kind: outputs[kind] for kind in shown}}
        )
        run(tmp_path / "quick", tmp_path / "store")
        keep(
            [made.plan({"E": experiment}).resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference"
        )
        path = tmp_path / "reference/E/E-runs.parquet"
        assert path.exists() == bool(shown)
        if shown:
            runs = pd.read_parquet(path)
            assert set(runs["metric"]) == set().union(*(metrics[kind] for kind in shown))
            assert len(runs) == runs["metric"].nunique() * len(made.METHODS) * 6

    @pytest.mark.slow
    def test_they_can_be_judged_anew(self, plan: Plan, tmp_path: Path) -> None:
        """Under other claims, without a trial: in order, and those of studies that are not in the plan stay."""
        run(tmp_path / "quick", tmp_path / "store")
        keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
        other = dict.fromkeys(COLUMNS) | made.PART | {"claim": "A1", "verdict": "partly"}
        gone = dict.fromkeys(COLUMNS) | made.PART | {"claim": "K2", "verdict": "partly"}
        pd.DataFrame([gone, other]).to_csv(tmp_path / "reference/claims.csv", index=False)
        changed = made.planned("K10", "K2", primary=made.CLAIM["primary"] | {"threshold": 100.0})
        keep_verdicts(changed.studies.values(), changed.library, tmp_path / "reference")
        found = read_claims(tmp_path / "reference/claims.csv")
        assert found[["claim", "verdict"]].to_numpy().tolist() == [
            ["A1", "partly"],
            ["K2", "reproduced"],
            ["K10", "reproduced"],
        ]

    def test_without_any_the_table_has_its_columns(self, tmp_path: Path) -> None:
        for _ in range(2):
            keep_verdicts(made.planned("K1").studies.values(), made.LIBRARY, tmp_path)
            assert read_claims(tmp_path / "claims.csv").columns.tolist() == COLUMNS


def test_a_table_of_other_columns_is_written_anew(tmp_path: Path) -> None:
    """As after a change of what the table has; but not where it holds claims of other studies."""
    studies = made.planned("K1").studies.values()
    (tmp_path / "claims.csv").write_text("claim,verdict\nK1,partly\n")
    keep_verdicts(studies, made.LIBRARY, tmp_path)
    assert read_claims(tmp_path / "claims.csv").columns.tolist() == COLUMNS
    (tmp_path / "claims.csv").write_text("claim,verdict\nZ1,partly\n")
    with pytest.raises(PlumblineError, match="is no table of claims"):
        keep_verdicts(studies, made.LIBRARY, tmp_path)


@pytest.mark.parametrize("step", ["merge", "judge_reference"])
def test_the_folder_is_locked_while_its_tables_are_read_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Else one of two processes loses what the other one has added."""
    monkeypatch.setitem(made.LIBRARY.tasks, "bowl", made.LIBRARY.tasks["forrester"])
    plan, home, ours = made.planned("K1"), tmp_path / "reference", getattr(reference, step)
    locked = []

    def watched(*arguments: Any) -> Any:
        with pytest.raises(Timeout):
            FileLock(tmp_path / ".reference.lock").acquire(timeout=0)
        locked.append(step)
        return ours(*arguments)

    monkeypatch.setattr(reference, step, watched)
    run(tmp_path / "quick", tmp_path / "store")
    keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", home)
    if step == "judge_reference":
        keep_verdicts(plan.studies.values(), plan.library, home)
    assert locked == [step]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestWhatIsKeptIsWhole:
    """What is there before is there after a refusal, to the byte."""

    OUTPUTS: ClassVar[dict[str, Any]] = {
        "figure": {"kind": "curves", "options": {"rows": [{"metric": "best_f", "label": "best value"}]}},
        "table": {"kind": "final-values", "options": {"metrics": ["regret"]}},
    }

    def plan(self, preset: str = "quick", seeds: int = 6, **changes: Any) -> Plan:
        grid = [{"tasks": ["bowl"], "methods": list(made.METHODS)}]
        experiment = made.experiment(**{"grid": grid, "seeds": seeds, **self.OUTPUTS, "desk": {}, **changes})
        plan = made.plan({"E": experiment})
        return Plan(plan.config.model_copy(update={"preset": preset}), plan.studies, made.LIBRARY, plan.datasets)

    @pytest.fixture
    def kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setitem(made.LIBRARY.tasks, "bowl", made.LIBRARY.tasks["forrester"])
        self.run(tmp_path)
        self.keep(tmp_path)
        return tmp_path / "reference"

    def run(self, folder: Path, seeds: int = 6) -> None:
        run(folder / "results", folder / "store", seeds)

    def keep(self, folder: Path, plan: Plan | None = None, *, replace: bool = False) -> None:
        keep([(plan or self.plan()).resolve("E")], folder / "results", folder / "store", folder / "reference", replace)

    def refused(self, folder: Path, words: str, plan: Plan | None = None) -> None:
        before = contents(folder / "reference")
        with pytest.raises(PlumblineError, match=words) as caught:
            self.keep(folder, plan)
        assert "\n" not in str(caught.value)
        assert contents(folder / "reference") == before

    def test_the_same_again_changes_nothing(self, kept: Path, tmp_path: Path) -> None:
        before = contents(kept)
        (kept / "E" / "notes.md").write_text("by hand")
        self.keep(tmp_path)
        assert contents(kept) == before | {"E/notes.md": b"by hand"}
        assert sorted(path.name for path in kept.iterdir()) == ["E", "costs.csv"], "nothing is left beside"

    @pytest.mark.parametrize("missing", ["figures/E.png", "tables/E.csv", "records/E.parquet"])
    @pytest.mark.parametrize("content", [None, b"", b"\x89PNG half"])
    def test_what_is_missing_or_damaged_is_named(
        self, kept: Path, tmp_path: Path, missing: str, content: bytes | None
    ) -> None:
        path = tmp_path / "results" / missing
        path.unlink() if content is None else path.write_bytes(content)
        self.refused(tmp_path, path.name)

    def test_without_the_store_nothing_is_replaced(self, kept: Path, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "store")
        draw(tmp_path / "results")
        self.refused(tmp_path, r"no file .*provenance\.json")

    def test_damaged_costs_and_claims_stop_it_first(self, kept: Path, tmp_path: Path) -> None:
        for name in ("costs.csv", "claims.csv"):
            (kept / name).write_text("task,met")
            self.refused(tmp_path, name)
            (kept / name).unlink()

    @pytest.mark.slow
    def test_fewer_seeds_replace_only_on_demand(self, kept: Path, tmp_path: Path) -> None:
        self.run(tmp_path, 5)
        fewer = self.plan(seeds=5)
        words = "E: kept are 6 seeds of preset quick on synthetic, these are 5 seeds of preset quick on .*: --replace"
        self.refused(tmp_path, words, fewer)
        self.keep(tmp_path, fewer, replace=True)
        assert json.loads((kept / "E/provenance.json").read_text())["seeds"] == 5
        self.run(tmp_path, 6)
        self.keep(tmp_path)
        assert json.loads((kept / "E/provenance.json").read_text())["seeds"] == 6

    def test_another_preset_replaces_only_on_demand(self, kept: Path, tmp_path: Path) -> None:
        self.refused(
            tmp_path, "kept are 6 seeds of preset quick .* these are 6 seeds of preset desk", self.plan("desk")
        )
        self.keep(tmp_path, self.plan("desk"), replace=True)
        assert json.loads((kept / "E/provenance.json").read_text())["preset"] == "desk"

    def test_of_several_experiments_all_are_kept_or_none(self, kept: Path, tmp_path: Path) -> None:
        experiments = {
            name: made.experiment(grid=[{"tasks": ["bowl"], "methods": list(made.METHODS)}], seeds=6) for name in "EF"
        }
        plan = made.plan(experiments)
        before = contents(kept)
        with pytest.raises(PlumblineError, match=r"F\.parquet"):
            keep([plan.resolve("E"), plan.resolve("F")], tmp_path / "results", tmp_path / "store", kept, replace=True)
        assert contents(kept) == before

    def test_results_and_what_is_kept_are_two_folders(self, kept: Path, tmp_path: Path) -> None:
        for place in (tmp_path / "results", tmp_path / "store", tmp_path / "store" / "deep"):
            with pytest.raises(PlumblineError, match="name another folder"):
                keep([self.plan().resolve("E")], tmp_path / "results", tmp_path / "store", place)
