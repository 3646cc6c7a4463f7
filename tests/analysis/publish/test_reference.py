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
from PIL import Image

from plumbline.analysis.outputs.style import PALETTE, house_style, panels
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.explorer import explored_on_file
from plumbline.analysis.publish.reference import (
    combined_provenance,
    curves,
    doubt_table,
    effect,
    keep,
    keep_figure,
    keep_verdicts,
    merge,
    read_claims,
    read_doubts,
    verdict_summary,
    verdict_table,
)
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.records import write_table
from plumbline.study.plan import Plan, load_plan
from plumbline.study.settings import read_config


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
        "E-illustration.csv",
        "E.png",
        "illustration-provenance.json",
    ]
    assert len(pd.read_csv(kept / "E-illustration.csv")) == table.num_rows
    about = json.loads((kept / "illustration-provenance.json").read_text())
    assert about == {"experiment": "E", "preset": "quick", "commit": "abc"}


def test_figures_are_kept_in_fewer_colours_all_near_their_own(tmp_path: Path) -> None:
    with house_style():
        figure, ((left, right),) = panels(1, 2)
        left.imshow(np.outer(np.sin(np.arange(40) / 9), np.arange(60)), cmap="viridis")
        for i, name in enumerate(PALETTE):
            right.plot(np.sin(np.arange(50) / (i + 3)), color=PALETTE[name])
            right.fill_between(np.arange(50), i / 9, i / 9 + 0.3, color=PALETTE[name], alpha=0.15)
        figure.savefig(tmp_path / "E.png")
        plt.close(figure)
    (tmp_path / "kept").mkdir()
    keep_figure(tmp_path / "E.png", tmp_path / "kept")
    drawn, kept = (np.asarray(Image.open(folder / "E.png").convert("RGB")) for folder in (tmp_path, tmp_path / "kept"))
    assert kept.shape == drawn.shape
    assert np.abs(kept.astype(int) - drawn).max() <= 24
    assert (tmp_path / "kept/E.png").stat().st_size < (tmp_path / "E.png").stat().st_size / 2


@pytest.mark.parametrize(("kind", "kept"), [("curves", True), ("sweep", False)])
def test_curves_are_kept_where_the_figure_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, kept: bool
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
    assert (tmp_path / "reference/E/E-curves.parquet").is_file() == kept
    assert (tmp_path / "reference/E/E-rounds.parquet").is_file() == kept
    assert (tmp_path / "reference/E/provenance.json").is_file()
    shown = explored_on_file(tmp_path / "reference/E", {}, plan.library, Titles(plan.library))
    assert (shown is not None and all("values" in run for run in shown["runs"])) == kept, "readers see single seeds"


def test_curves_say_of_how_many_seeds_they_are(folder: Path) -> None:
    trials = [made.trial(seed=seed) for seed in range(3)]
    for row in trials[1][:4]:
        row["f"] = [float("nan")]
    found = curves(made.read(folder, *trials), ["regret"]).set_index("iteration")
    assert found["seeds"].to_dict() == {0: 2, 1: 2, 2: 2, 3: 3, 4: 3, 5: 3, 6: 3}


BETTER = {"source": "section 5", "statement": "S.", "experiments": ["E"], "seeds": 5, "primary": made.TEST}
ROW = {"claim": "K1", "role": "primary", "test": "final regret", "ours": -1.234, "low": -2.0, "high": 0.05, "seeds": 20}
ROW |= {"experiments": "E", "data": "synthetic", "missing": "", "published": "", "size_p": np.nan, "needed": np.nan}


def planned(*names: str, **changes: Any) -> Plan:
    """Return a plan of these claims, about one experiment."""
    experiment = made.experiment(grid=[{"tasks": ["bowl"], "methods": list(made.METHODS)}], seeds=6)
    return made.plan({"E": experiment}, dict.fromkeys(names, BETTER | changes))


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
        return planned("K1")

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

    def test_they_can_be_judged_anew(self, plan: Plan, tmp_path: Path) -> None:
        """Under other claims, without a trial: in order, and those of studies that are not in the plan stay."""
        run(tmp_path / "quick", tmp_path / "store")
        keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
        other = dict.fromkeys(COLUMNS) | ROW | {"claim": "A1", "verdict": "partly"}
        gone = dict.fromkeys(COLUMNS) | ROW | {"claim": "K2", "verdict": "partly"}
        pd.DataFrame([gone, other]).to_csv(tmp_path / "reference/claims.csv", index=False)
        changed = planned("K10", "K2", primary=BETTER["primary"] | {"threshold": 100.0})
        keep_verdicts(changed.studies.values(), changed.library, tmp_path / "reference")
        found = read_claims(tmp_path / "reference/claims.csv")
        assert found[["claim", "verdict"]].to_numpy().tolist() == [
            ["A1", "partly"],
            ["K2", "reproduced"],
            ["K10", "reproduced"],
        ]

    def test_without_any_the_table_has_its_columns(self, tmp_path: Path) -> None:
        for _ in range(2):
            keep_verdicts(planned("K1").studies.values(), made.LIBRARY, tmp_path)
            assert read_claims(tmp_path / "claims.csv").columns.tolist() == COLUMNS


def test_verdicts_as_markdown() -> None:
    studies = list(planned("K2", "K10", "K1").studies.values())
    rows = [ROW | {"outcome": "open", "verdict": "partly"}]
    rows += [
        ROW | {"claim": "K10", "outcome": outcome, "verdict": "partly", "seeds": seeds}
        for outcome, seeds in (("holds", 20), ("fails", 50), ("fails", 10))
    ]
    rows += [ROW | {"role": "secondary", "outcome": "holds", "verdict": "partly", "seeds": 2}]
    doubts = pd.DataFrame({"claims": ["C3 K10"], "doubt": ["D."], "repair": ["R."]})
    assert verdict_table(studies, pd.DataFrame(rows), doubts).splitlines()[2:] == [
        "| K1 | S. | **◐ partly** | final regret | -1.23 (-2 to 0.05) | 20 (5) | E |",
        "| K2 | S. | not judged |  |  | – (5) | E |",
        "| K10 | S. | **◐ partly**, in doubt | final regret | "
        "1 holds, 2 fail of 3 parts, with estimates from -1.23 to -1.23 | 10 to 50 (5) | E |",
    ]
    listed = made.plan({}, {"A1": {"source": "p. 1", "statement": "T."}}).studies.values()
    none = pd.DataFrame(columns=COLUMNS)
    assert verdict_table(listed, none, doubts).splitlines()[2:] == ["| A1 | T. | not run |  |  | – (–) | – |"]


@pytest.mark.parametrize("parts", [1, 2])
def test_what_was_not_run_is_said(parts: int) -> None:
    found = pd.DataFrame([ROW | {"outcome": "open", "missing": "F G"}] * parts)
    assert effect(found).endswith("; F, G not run")


def test_an_estimate_in_words() -> None:
    table = pd.DataFrame([ROW | {"low": float("-inf"), "high": float("inf"), "outcome": "open"}])
    assert effect(table) == "-1.23 (-inf to inf)"
    point = table.assign(low=table["ours"] - 1e-9, high=table["ours"] + 1e-9)
    assert effect(point) == "-1.23"
    several = pd.concat([table, table.assign(test="another", ours=7.0), table.assign(outcome="fails")])
    assert effect(several) == "final regret: 1 fails, 1 open; another: 1 open (7 (-inf to inf))"


def test_published_sizes_that_are_excluded_are_named_once() -> None:
    rows = [ROW | {"outcome": "open", "published": "half (p. 3)", "size_p": p} for p in (0.001, 0.02, 0.03)]
    assert effect(pd.DataFrame(rows)).endswith("; excluded: half (p. 3)")
    assert "excluded" not in effect(pd.DataFrame(rows[2:]))


def test_a_table_of_other_columns_is_written_anew(tmp_path: Path) -> None:
    """As after a change of what the table has; but not where it holds claims of other studies."""
    studies = planned("K1").studies.values()
    (tmp_path / "claims.csv").write_text("claim,verdict\nK1,partly\n")
    keep_verdicts(studies, made.LIBRARY, tmp_path)
    assert read_claims(tmp_path / "claims.csv").columns.tolist() == COLUMNS
    (tmp_path / "claims.csv").write_text("claim,verdict\nZ1,partly\n")
    with pytest.raises(PlumblineError, match="is no table of claims"):
        keep_verdicts(studies, made.LIBRARY, tmp_path)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_verdict_on_other_data_says_so(parts: int) -> None:
    """In the report, in the table and in the summary: what they say of an estimate is the same."""
    label = "online-lda-rebuilt (stands in for online-lda)"
    found = pd.DataFrame([ROW | {"outcome": "open", "data": label}] * parts)
    assert effect(found).endswith(f"; on {label}")
    assert "; on " not in effect(found.assign(data="online-lda"))


def test_a_table_of_claims_is_told_from_other_files(tmp_path: Path) -> None:
    named = {"role": "primary", "outcome": "open", "verdict": "partly"}
    pd.DataFrame([dict.fromkeys(COLUMNS, "x") | named]).to_csv(tmp_path / "claims.csv")
    assert len(read_claims(tmp_path / "claims.csv")) == 1
    pd.DataFrame([dict.fromkeys(COLUMNS, 1.0) | named | {"claim": "K1", "test": "", "sentence": ""}]).to_csv(
        tmp_path / "unnamed.csv"
    )
    unnamed = read_claims(tmp_path / "unnamed.csv")
    assert unnamed[["test", "sentence"]].to_numpy().tolist() == [["", ""]], "no words are words"
    (tmp_path / "README.md").write_text("# Title\n\nOne, two\nthree, four, five\n")
    (tmp_path / "costs.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    for name in ("README.md", "costs.csv", "empty.csv"):
        with pytest.raises(PlumblineError, match=f"{name} is no table of claims") as error:
            read_claims(tmp_path / name)
        assert "\n" not in str(error.value)
    with pytest.raises(PlumblineError, match="no table of claims at"):
        read_claims(tmp_path / "absent.csv")


def test_a_summary_counts_the_verdicts_of_each_study() -> None:
    stated = {"source": "p. 1", "statement": "S.", "seeds": 5}
    one = made.plan({}, {"C1": stated, "C10": stated, "C3": stated}).studies["made-up"]
    other = made.plan({}, {"A2": stated}).studies["made-up"].model_copy(update={"study": "another"})
    found = [("C1", "partly"), ("C1", "partly"), ("C10", "reproduced"), ("A2", "partly")]
    assert verdict_summary([one, other], pd.DataFrame(found, columns=["claim", "verdict"])).splitlines() == [
        "| verdict | made-up | another | **all** |",
        "|---|--:|--:|--:|",
        "| ◆\u00a0reproduced | 1 | – | 1 |",
        "| ◐\u00a0partly | 1 | 1 | 2 |",
        "| not run or judged | 1 | – | 1 |",
        "| claims | 3 | 1 | 4 |",
    ]


def test_doubts_lie_beside_the_claims(tmp_path: Path) -> None:
    assert doubt_table(read_doubts(tmp_path / "claims.csv")).count("\n") == 1
    pd.DataFrame({"claims": ["C1 C2"], "doubt": ["D."], "repair": ["R."]}).to_csv(tmp_path / "doubts.csv", index=False)
    doubts = read_doubts(tmp_path / "claims.csv")
    assert doubt_table(doubts).splitlines()[2:] == ["| C1, C2 | D. | R. |"]


def test_the_committed_doubts_are_about_claims_that_are_run(root: Path) -> None:
    path = root / "results/reference/claims.csv"
    doubts = read_doubts(path)
    plan = load_plan(read_config(root / "config/config.yaml"), root)
    run = {name for study in plan.studies.values() for name, claim in study.claims.items() if claim.experiments}
    assert {name for names in doubts["claims"] for name in names.split()} <= run
    assert doubts.notna().all(axis=None)
    assert not doubts.map(lambda text: "|" in text).any(axis=None)


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


@pytest.mark.parametrize(("column", "word"), [("verdict", "reproducd"), ("role", "primry"), ("outcome", "hold")])
def test_a_word_that_there_is_not_is_named(tmp_path: Path, column: str, word: str) -> None:
    row = dict.fromkeys(COLUMNS, "x") | {"role": "primary", "outcome": "open", "verdict": "partly", column: word}
    pd.DataFrame([row]).to_csv(tmp_path / "claims.csv", index=False)
    with pytest.raises(PlumblineError, match=rf"claims\.csv, line 2: unknown {column} '{word}': did you mean"):
        read_claims(tmp_path / "claims.csv")


@pytest.mark.parametrize(
    "text", ["", "claims,doubt\nC1,D.\n", "claims,doubt,repair\nC1,D.", "claims,doubt,repair\nC1,D.,\n"]
)
def test_damaged_doubts_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "doubts.csv").write_text(text)
    with pytest.raises(PlumblineError, match=r"doubts\.csv") as caught:
        read_doubts(tmp_path / "claims.csv")
    assert "\n" not in str(caught.value)
