import errno
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import made_evidence as made
import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import (
    budget_label,
    columns_for,
    draw,
    evidence_of,
    seeds_label,
    tabulate,
)
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import Legend

FIGURE = {"kind": "curves"}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="session")
def folder_of_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that property tests may write to."""
    return tmp_path_factory.mktemp("drawn")


def grid(*tasks: str) -> list[dict[str, Any]]:
    return [{"tasks": list(tasks), "methods": ["plain"]}]


class TestDataLabel:
    def test_synthetic_tasks_have_none(self) -> None:
        assert made.plan({"E": made.experiment()}).resolve("E").data == ""

    def test_a_stand_in_is_named_as_such(self) -> None:
        plan = made.plan({"E": made.experiment(grid=grid("forrester", "qed"))})
        assert plan.resolve("E").data == "generated-molecules (generated, stands in for zinc250k)"

    def test_so_is_one_that_is_not_generated(self) -> None:
        plan = made.plan({"E": made.experiment(grid=grid("qed"))}, data="real")
        config = plan.config.model_copy(update={"instead": {"zinc250k": "zinc-again"}})
        assert replace(plan, config=config).resolve("E").data == "zinc-again (stands in for zinc250k)"

    def test_real_data_is_named_as_it_is(self) -> None:
        plan = made.plan({"E": made.experiment(grid=grid("qed"))}, data="real")
        assert plan.resolve("E").data == "zinc250k"

    def test_each_dataset_once(self) -> None:
        plan = made.plan({"E": made.experiment(grid=grid("qed", "logp"))}, data="real")
        assert plan.resolve("E").data == "zinc250k"

    def test_generated_data_asked_for_by_name_is_not_passed_off_as_real(self) -> None:
        for data in ("real", "generated"):
            plan = made.plan({"E": made.experiment(grid=grid("made-qed"))}, data=data)
            assert "generated" in plan.resolve("E").data


class TestSeedsLabel:
    def test_all_have_the_same(self, folder: Path) -> None:
        assert seeds_label(made.read(folder, made.trial()).rows) == "1 seed"
        assert seeds_label(made.read(folder, made.trial(), made.trial(seed=1)).rows) == "2 seeds"

    def test_tasks_may_have_different_ones(self, folder: Path) -> None:
        trials = made.trial(), made.trial(seed=1), made.trial("valley")
        assert seeds_label(made.read(folder, *trials).rows) == "1 or 2 seeds"

    def test_without_trials(self, folder: Path) -> None:
        assert seeds_label(made.read(folder, made.failure()).rows) == ""


class TestBudgetLabel:
    def label(self, folder: Path, *trials: list[dict[str, Any]]) -> str:
        return budget_label(made.read(folder, *trials).rows)

    def test_initial_design_and_queries(self, folder: Path) -> None:
        assert self.label(folder, made.trial(initial=3, rounds=4), made.trial(seed=1, initial=3, rounds=4)) == (
            "3 + 4 evaluations"
        )

    def test_batches_count_evaluations(self, folder: Path) -> None:
        assert self.label(folder, made.trial(initial=3, rounds=4, q=2)) == "3 + 8 evaluations"

    def test_tasks_may_have_different_ones(self, folder: Path) -> None:
        both = made.trial(initial=3, rounds=4), made.trial("valley", initial=5, rounds=2)
        assert self.label(folder, *both) == "3 + 4 or 5 + 2 evaluations"

    def test_one_trial_under_two_labels_is_not_counted_twice(self, folder: Path) -> None:
        """Labels are no part of a key: two methods with the same options share their trials in the store."""
        same = made.key_of("bowl", "plain", 0)
        assert self.label(folder, made.trial(), made.trial(method="also", key=same)) == (
            f"{made.INITIAL} + {made.ROUNDS} evaluations"
        )

    def test_of_nothing_it_is_empty(self, folder: Path) -> None:
        assert self.label(folder, made.failure()) == ""


class TestErrors:
    def test_an_experiment_without_a_figure_or_a_table(self, found: Evidence, folder: Path) -> None:
        plan = made.plan({"E": made.experiment()})
        with pytest.raises(PlumblineError, match="E has no figure"):
            draw(plan.resolve("E"), found, [folder / "E.svg"])
        with pytest.raises(PlumblineError, match="E has no table"):
            tabulate(plan.resolve("E"), found)

    def test_an_experiment_that_the_preset_leaves_out(self, found: Evidence, folder: Path) -> None:
        plan = made.plan({"E": made.experiment(figure=FIGURE, quick=None)})
        with pytest.raises(PlumblineError, match="E is not part of preset 'quick'"):
            plan.resolve("E")

    def test_an_unknown_experiment(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown experiment 'MADE-F2': did you mean 'MADE-F1'"):
            tabulate(made.plan({"MADE-F1": made.experiment()}).resolve("MADE-F2"), found)

    def test_an_unknown_kind(self, found: Evidence, folder: Path) -> None:
        plan = made.plan({"E": made.experiment(figure={"kind": "curve"}, table={"kind": "final-value"})})
        with pytest.raises(PlumblineError, match="unknown figure 'curve': did you mean 'curves'"):
            draw(plan.resolve("E"), found, [folder / "E.svg"])
        with pytest.raises(PlumblineError, match="unknown table 'final-value': did you mean 'final-values'"):
            tabulate(plan.resolve("E"), found)

    def test_an_unknown_ending(self, found: Evidence, folder: Path) -> None:
        plan = made.plan({"E": made.experiment(figure=FIGURE)})
        with pytest.raises(PlumblineError, match=r"unknown format of .*E\.sgv 'sgv': did you mean 'svg'"):
            draw(plan.resolve("E"), found, [folder / "E.png", folder / "E.sgv"])
        assert not list(folder.iterdir())

    def test_an_unknown_metric(self) -> None:
        options = {"rows": [{"metric": "regrets", "label": "regret"}]}
        plan = made.plan({"E": made.experiment(figure={"kind": "curves", "options": options})})
        with pytest.raises(PlumblineError, match="unknown metric 'regrets': did you mean 'regret'"):
            columns_for(plan.resolve("E"), "figure")

    def test_an_experiment_with_trials_needs_their_records(self) -> None:
        with pytest.raises(PlumblineError, match="E rests on trials: give its collected records"):
            evidence_of(made.plan({"E": made.experiment()}).resolve("E"), [])

    def test_a_full_disk_leaves_the_old_figure(
        self, found: Evidence, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = folder / "E.svg"
        path.write_text("the old one", encoding="utf-8")

        def full(self: Figure, target: Path, **_: Any) -> None:
            Path(target).write_text("half of the new", encoding="utf-8")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Figure, "savefig", full)
        with pytest.raises(OSError, match="No space left"):
            draw(made.plan({"E": made.experiment(figure=FIGURE)}).resolve("E"), found, [path])
        plt.close("all")
        assert [(p.name, p.read_text(encoding="utf-8")) for p in folder.iterdir()] == [("E.svg", "the old one")]


def test_columns_are_those_that_are_drawn() -> None:
    rows = [{"metric": "regret", "label": "regret"}, {"metric": "query_coverage", "label": "coverage"}]
    table = {"kind": "final-values", "options": {"metrics": ["nll"]}}
    plan = made.plan({"E": made.experiment(figure={"kind": "curves", "options": {"rows": rows}}, table=table)})
    assert set(columns_for(plan.resolve("E"), "figure")) == {"optimum", "f", "roles", "covered"}
    assert set(columns_for(plan.resolve("E"), "table")) == {"nll", "round_seconds"}


WORDS = st.text("ab $_%\\^{}[]()<>&|`~*#'\"é😀", min_size=1, max_size=40).filter(str.strip)
WORDS |= st.sampled_from(["long" * 60, "_private", "$x$", r"\frac{1}{2}", "50% & more"])


@pytest.mark.slow
@settings(max_examples=10)
@given(title=WORDS, legend=WORDS, label=WORDS)
def test_words_show_in_a_figure_as_they_are(
    found: Evidence, folder_of_session: Path, title: str, legend: str, label: str
) -> None:
    options = {"rows": [{"metric": "regret", "label": label}], "panels": [{"task": "bowl", "title": title}]}
    evidence = replace(found, legends={"plain": Legend(label=legend)})
    resolved = made.plan({"E": made.experiment(figure={"kind": "curves", "options": options})}).resolve("E")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        draw(resolved, evidence, [folder_of_session / "E.svg"])
    texts = ["".join(one.itertext()) for one in ElementTree.parse(folder_of_session / "E.svg").iter(f"{SVG}text")]
    assert label in texts
    assert "".join(title.split()) in "".join("".join(texts).split()), "a long title has several lines"
    assert " ".join(legend.split()) in {one.removeprefix("\u200b") for one in texts}


def test_control_characters_and_line_ends_leave_a_legend_in_one_line(found: Evidence, folder: Path) -> None:
    evidence = replace(found, legends={"plain": Legend(label="_one\ntwo\x07")})
    resolved = made.plan({"E": made.experiment(figure=FIGURE)}).resolve("E")
    draw(resolved, evidence, [folder / "E.svg"])
    texts = ["".join(one.itertext()) for one in ElementTree.parse(folder / "E.svg").iter(f"{SVG}text")]
    assert "\u200b_one two" in texts


def test_a_figure_without_any_value_is_refused(found: Evidence, folder: Path) -> None:
    options = {"rows": [{"metric": "hypervolume", "label": "of one outcome"}]}
    resolved = made.plan({"E": made.experiment(figure={"kind": "curves", "options": options})}).resolve("E")
    with pytest.raises(PlumblineError, match="E: nothing to draw: none of its trials has a value of hypervolume"):
        draw(resolved, found, [folder / "E.png"])
    assert list(folder.iterdir()) == []
