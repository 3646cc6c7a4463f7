import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_evidence as made
import pandas as pd
import pytest
import yaml
from made_atlas import made_edition
from made_runs import claim_test

from plumbline.analysis.outputs.style import verdict_styles
from plumbline.analysis.publish import report
from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.markdown import duration
from plumbline.analysis.publish.report import answer, number, p_value, write_report
from plumbline.analysis.publish.report_experiments import failures_in, seconds_in
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.study.plan import Plan
from plumbline.study.verdicts import LOOKS, VERDICTS, brief, slug

KINDS = (("figures", "png"), ("figures", "svg"), ("tables", "csv"), ("records", "parquet"))
NASTY = "<script>alert('x')</script> & <b>"


class Page(HTMLParser):
    """What is on the page: its tags, their references, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.words = ""
        self.code = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.code += tag in ("script", "style")
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.references += [value for name, value in attrs if name in ("src", "href", "srcset", "data") and value]

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        self.words += "" if self.code else data


def claim_row(**changes: Any) -> dict[str, Any]:
    row = dict.fromkeys(COLUMNS, "") | {
        "claim": "K1",
        "experiments": "MADE-F1",
        "source": "section 5",
        "statement": "It is better.",
        "role": "primary",
        "test": "final regret",
        **criterion(claim_test()),
        "published": "better",
        "ours": -1.23456789,
        "deviation": float("nan"),
        "low": -2.0,
        "high": -0.5,
        "seeds": 3,
        "paper_seeds": 5,
        "budget": "8 evaluations",
        "preset": "quick",
        "data": "synthetic",
        "outcome": "holds",
        "verdict": "reproduced",
    }
    return row | changes


@pytest.fixture(autouse=True)
def _elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from the repository, whose reference results would be on the page; without the library of charts."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(places, "shipped", lambda: folder)
    monkeypatch.setattr(report, "chart_library", lambda: "window.vegaEmbed = null;")


def experiments(**changes: Any) -> dict[str, Any]:
    return {
        "MADE-F1": made.experiment(
            title="The first", figure={"kind": "curves"}, table={"kind": "final-values"}, **changes
        ),
        "MADE-T1": {"title": "A space", "caption": "Of cooking.", "table": {"kind": "search-space"}, "quick": {}},
        "MADE-F9": made.experiment(title="Left out", quick=None),
    }


def results(folder: Path, *trials: Any, claims: list[dict[str, Any]] | None = None) -> Path:
    """Write a preset's results as the pipeline leaves them."""
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True)
    (folder / "figures" / "MADE-F1.png").write_bytes(made.PIXEL)
    frame = pd.DataFrame({"method": ["plain"], "final_regret": [0.123456789], "calibration_score": [float("nan")]})
    frame.to_csv(folder / "tables" / "MADE-F1.csv", index=False)
    pd.DataFrame({"hyperparameter": ["oven"], "low": ["1e-4"]}).to_csv(folder / "tables" / "MADE-T1.csv", index=False)
    made.write(folder / "records" / "MADE-F1.parquet", *(trials or [made.trial()]))
    pd.DataFrame([claim_row()] if claims is None else claims, columns=COLUMNS).to_csv(
        folder / "claims.csv", index=False
    )
    return folder


def page(plan: Plan, folder: Path) -> Page:
    output = folder / "page" / "report.html"
    write_report(plan.run, folder, output, folder / "claims.csv")
    assert [path.name for path in output.parent.iterdir()] == ["report.html"]
    return Page(output.read_text(encoding="utf-8"))


def test_what_is_left_out_is_said(folder: Path) -> None:
    plan = made.plan(experiments())
    results(folder / "quick")
    assert "Left out as" not in page(plan, folder / "quick").words
    config = plan.config.model_copy(update={"without": ("MADE-T1",)})
    shown = page(replace(plan, config=config), folder / "quick")
    assert "Left out as the configuration asks (without): MADE-T1." in shown.words
    assert "Of cooking." not in shown.words


class TestPage:
    def test_every_experiment_of_the_preset_is_there(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert {"run-MADE-F1", "run-MADE-T1", "run-claims", "provenance"} <= set(found.ids)
        words = " ".join(found.words.split())
        for said in ("MADE-F1 The first", "What came of them.", "MADE-T1 A space", "A made-up document", "Nobody."):
            assert said in words
        assert "MADE-F9" not in found.words

    def test_an_illustration_needs_no_records(self, folder: Path) -> None:
        shown = {"kind": "rkhs-function"}
        alone = {"title": "A function", "chosen": "Its kernel.", "illustration": shown, "figure": shown, "quick": {}}
        folder = results(folder)
        (folder / "figures" / "MADE-F2.png").write_bytes(made.PIXEL)
        found = page(made.plan(experiments() | {"MADE-F2": alone}), folder)
        assert "MADE-F2 A function" in found.words
        assert "Its kernel." in found.words
        assert found.tags.count("img") == 3, "two figures, and the one that is shown in full width"

    def test_verdicts_come_first(self, folder: Path) -> None:
        claims = [claim_row(claim=f"K{i}", verdict=verdict) for i, verdict in enumerate(VERDICTS)]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        words = " ".join(found.words.split())
        for i, verdict in enumerate(VERDICTS):
            assert f"K{i} {LOOKS[verdict].shape} {brief(verdict)} It is better." in words
            assert f'class="cell label {slug(verdict)}" href="#run-K{i}"' in found.text
        assert words.index("K0 ") < words.index("MADE-F1 The first")

    def test_verdicts_have_the_colours_of_the_figures(self, folder: Path) -> None:
        assert verdict_styles() in page(made.plan(experiments()), results(folder, claims=[claim_row()])).text

    def test_seeds_are_those_of_all_parts(self, folder: Path) -> None:
        claims = [claim_row(seeds=50), claim_row(seeds=10), claim_row(seeds=3, role="secondary")]
        assert "10 to 50 seeds" in page(made.plan(experiments()), results(folder, claims=claims)).words

    def test_claims_are_in_the_order_in_which_one_counts_them(self, folder: Path) -> None:
        claims = [claim_row(claim="K10"), claim_row(claim="K2", low=-1.9)]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        assert found.ids.index("run-K2") < found.ids.index("run-K10")
        assert "Final regret: -1.23 (-1.9 to -0.5). 3 seeds" in " ".join(found.words.split())

    def test_a_column_that_says_nothing_is_left_out(self, folder: Path) -> None:
        claims = [claim_row(published=""), claim_row(role="secondary", stuck='[["plain", 3, 5]]')]
        text = page(made.plan(experiments()), results(folder, claims=claims)).text
        primary, secondary = text[text.index('aria-label="Primary test of K1"') :].split("1 secondary test")
        for heading in ("<th>published</th>", "<th>stuck</th>"):
            assert heading not in primary
            assert heading in secondary

    def test_experiments_that_a_claim_misses_are_named_without_a_link(self, folder: Path) -> None:
        claims = [claim_row(experiments="MADE-F1 MADE-F7", missing="MADE-F7")]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        assert "MADE-F1, MADE-F7 (not run)." in " ".join(found.words.split())
        assert "; MADE-F7 not run" in found.words
        assert "#run-MADE-F1" in found.references
        assert "#run-MADE-F7" not in found.references

    def test_files_beside_the_page_are_links(self, folder: Path) -> None:
        done = results(folder / "quick")
        (done / "figures" / "MADE-F1.svg").write_text("<svg></svg>")
        log = folder / "logs" / "quick" / "experiments" / "MADE-F1.log"
        log.parent.mkdir(parents=True)
        log.write_text("")
        output = done / "report.html"
        write_report(made.plan(experiments()).run, done, output, done / "claims.csv")
        found = Page(output.read_text(encoding="utf-8"))
        assert "Files: SVG, PNG, CSV, Parquet, log, spec" in " ".join(found.words.split())
        beside = [one for one in found.references if not one.startswith(("#", "data:"))]
        assert {(output.parent / one).resolve() for one in beside} == {
            *(done / kind / f"MADE-F1.{end}" for kind, end in KINDS),
            done / "tables" / "MADE-T1.csv",
            log,
        }

    def test_the_settings_of_an_experiment_can_be_saved(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        (first, _) = re.findall(r'href="data:text/yaml;base64,([^"]*)" download="MADE-[FT]1.yaml"', found.text)
        (settings,) = yaml.safe_load(base64.b64decode(first)).values()
        assert settings["title"] == "The first"
        assert settings["figure"]["kind"] == "curves"

    def test_what_experiments_took_is_said(self, folder: Path) -> None:
        rows = made.trial(), made.trial(seed=1)
        taken = sum({(row["seed"], row["iteration"]): row["round_seconds"] for one in rows for row in one}.values())
        done = results(folder, *rows)
        assert seconds_in(done / "records" / "MADE-F1.parquet") == pytest.approx(taken)
        assert f"6 trials, {duration(taken)}." in page(made.plan(experiments()), done).words

    def test_contradictions_are_not_hidden(self, folder: Path) -> None:
        claims = [claim_row(verdict="partly", outcome=outcome) for outcome in ("holds", "fails", "fails", "open")]
        claims += [claim_row(verdict="partly", role="secondary", outcome="open")]
        assert "1 holds, 2 fail, 1 open" in page(made.plan(experiments()), results(folder, claims=claims)).words

    def test_what_a_claim_says_and_how_often_few_seeds_look_so(self, folder: Path) -> None:
        first = claim_row(sentence="Ours outperforms theirs", pattern=0.314, stuck='[["plain", 3, 5]]')
        words = " ".join(page(made.plan(experiments()), results(folder, claims=[first])).words.split())
        assert "Ours outperforms theirs" in words
        assert "3 seeds (the paper's: 5); 8 evaluations; quick; synthetic" in words
        assert "31.4% of them look as claimed" in words
        assert "plain 3 of 5" in words

    def test_why_no_trial_can_decide_is_said(self, folder: Path) -> None:
        test = {"statistic": "value", "metric": "regret", "task": "forrester", "method": "plain", "direction": "less"}
        one = {"source": "p. 1", "statement": "S.", "experiments": ["MADE-F1"], "primary": test}
        beyond = {"verdict": "cannot fail", "because": "A share is at most 1."}
        done = results(folder, claims=[claim_row(verdict="cannot fail")])
        assert "A share is at most 1." in page(made.plan(experiments(), {"K1": one | {"beyond": beyond}}), done).words
        assert "A share is at most 1." not in page(made.plan(experiments(), {"K1": one}), done).words

    def test_without_a_pattern_there_is_no_line_of_it(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder, claims=[claim_row(paper_seeds=0)]))
        assert "look as claimed" not in found.words
        assert "the paper's" not in found.words

    def test_without_results_it_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no folder of results at"):
            page(made.plan(experiments()), folder / "nowhere")

    def test_what_is_not_run_is_said(self, folder: Path) -> None:
        stated = {"K9": {"source": "page 7", "statement": "Nobody tried."}}
        found = page(made.plan(experiments(), stated), results(folder))
        assert "K9" in found.ids
        assert "Nobody tried." in found.words
        assert "not-run" not in page(made.plan(experiments()), folder).ids

    def test_each_test_of_a_claim_is_there_with_its_interval(self, folder: Path) -> None:
        claims = [claim_row(), claim_row(metric="another", ours=float("nan"), low=float("nan"), high=float("nan"))]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        assert "-1.23" in found.words
        assert "-2 to -0.5" in found.words
        assert "another" in found.words
        assert "no interval" in found.words
        assert found.ids.count("run-K1") == 1

    def test_it_loads_no_other_file(self, folder: Path) -> None:
        """A script, a style sheet and figures are inside; what links lead to is read when readers ask for it."""
        found = page(made.plan(experiments()), results(folder))
        assert not {"link", "iframe", "object", "embed", "base"} & set(found.tags)
        assert "img" in found.tags
        assert not re.search(r"<script[^>]* src=|@import|url\(", found.text)
        assert all(one.startswith("data:") for one in re.findall(r'<img src="([^"]*)"', found.text))

    def test_its_links_lead_somewhere(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        for reference in found.references:
            if reference.startswith("#"):
                assert reference[1:] in found.ids

    def test_numbers_are_short_and_blanks_are_dashes(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert "0.1235" in found.words
        assert "0.123456789" not in found.words
        assert "calibration score" in found.words
        assert "nan" not in re.findall(r"\w+", found.words)

    def test_stand_ins_that_nothing_uses_are_not_listed(self, folder: Path) -> None:
        plan = made.plan(experiments())
        stand_ins = {"zinc250k": "generated-molecules"}
        run = replace(plan.run, stand_ins=stand_ins)
        output = results(folder) / "report.html"
        write_report(run, folder, output, folder / "claims.csv")
        assert "Stand-ins are in use" not in output.read_text(encoding="utf-8")

    def test_stand_ins_are_owned_up_to(self, folder: Path) -> None:
        grid = [{"tasks": ["qed"], "methods": ["plain"]}]
        found = page(made.plan(experiments(grid=grid)), results(folder))
        assert "Stand-ins are in use: generated-molecules for zinc250k" in found.words
        assert "generated-molecules (generated, stands in for zinc250k)" in found.words

    def test_without_claims_it_says_so(self, folder: Path) -> None:
        assert "No claim rests on" in page(made.plan(experiments()), results(folder, claims=[])).words

    def test_verdicts_of_record_count_as_one_counts(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        committed = folder / "committed"
        committed.mkdir()
        names = ("C10", "C2", "C1")
        pd.DataFrame([claim_row(claim=name) for name in names]).to_csv(committed / "claims.csv")
        monkeypatch.setattr(report, "reference_folder", lambda: committed)
        found = page(made.plan(experiments()), results(folder))
        assert [one for one in found.ids if re.fullmatch(r"C\d+", one)] == ["C1", "C2", "C10"]
        assert found.ids.index("C10") < found.ids.index("run-claims")
        assert "Reference verdicts" in found.words

    def test_a_verdict_in_words_is_shown_beside_that_of_record_alone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run of a preset may come to another verdict."""
        committed = folder / "committed"
        committed.mkdir()
        pd.DataFrame([claim_row()]).to_csv(committed / "claims.csv")
        monkeypatch.setattr(report, "reference_folder", lambda: committed)
        stated = {"source": "p. 1", "statement": "S."}
        words = {"holds": "It is **much** better where a < b.", "rest": "On c it is open."}
        plan, without = (made.plan(experiments(), {"K1": stated | more}) for more in ({"in_words": words}, {}))
        done = results(folder)
        found = page(plan, done)
        shown = [one.split("</details>")[0] for one in found.text.split('<details class="item claim" id="')[1:]]
        assert [one.partition('"')[0] for one in shown] == ["K1", "run-K1"]
        of_record, of_run = shown
        assert (
            "<p><b>What holds:</b> It is <strong>much</strong> better where a &lt; b.</p>"
            "<p><b>What does not hold, or is open:</b> On c it is open.</p>"
        ) in of_record
        assert "On c it is open" not in of_run
        assert found.words.count("On c it is open") == 1
        assert "What holds" not in page(without, done).words

    def test_a_table_without_rows_is_no_accident(self, folder: Path) -> None:
        done = results(folder)
        (folder / "tables" / "MADE-T1.csv").write_text("hyperparameter,low\n", encoding="utf-8")
        assert "MADE-T1" in page(made.plan(experiments()), done).words

    def test_written_twice_it_is_the_same_page(self, folder: Path) -> None:
        plan, done = made.plan(experiments()), results(folder)
        assert page(plan, done).text == page(plan, done).text


class TestFailures:
    def test_they_are_warned_of_above_and_named_below(self, folder: Path) -> None:
        done = results(folder, made.trial(), made.failure(seed=1, error="NotPSDError: a kernel"), made.failure(seed=2))
        found = page(made.plan(experiments()), done)
        assert "2 trials failed" in found.words
        assert found.words.index("2 trials failed") < found.words.index("MADE-F1")
        assert "2 trials failed:" in found.words
        assert "bowl plain seed 1: NotPSDError: a kernel" in found.words

    def test_without_any_there_is_no_warning(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert "failed" not in found.words
        assert 'class="warning"' not in found.text

    def test_those_of_a_file(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial(), made.failure(seed=4))
        assert failures_in(path) == ["bowl plain seed 4: NotPSDError: no"]


class TestAnswer:
    @pytest.fixture
    def folders(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
        """Reference results with the figure of the answer, and an atlas without an edition."""
        reference, atlas = folder / "reference", folder / "atlas"
        for path in (reference / "answer.svg", atlas / "interventions.svg"):
            path.parent.mkdir()
            path.write_text(f"<svg>{path.stem}</svg>")
        monkeypatch.setattr(report, "reference_folder", lambda: reference)
        monkeypatch.setattr(report, "atlas_folder", lambda: atlas)
        return reference, atlas

    def shown(self, folder: Path) -> str:
        atlas = AtlasNumbers(folder / "atlas", {})
        found = answer(pd.DataFrame([claim_row()]), folder / "quick" / "report.html", {}, atlas)
        assert found is not None
        return base64.b64decode(found.picture.split(",")[1]).decode()

    def test_it_is_the_figure_of_the_claims(self, folder: Path, folders: tuple[Path, Path]) -> None:
        assert self.shown(folder) == "<svg>answer</svg>"

    @pytest.mark.slow
    def test_that_of_the_atlas_takes_its_place_once_its_analyses_have_their_trials(
        self, folder: Path, folders: tuple[Path, Path]
    ) -> None:
        made_edition(folders[1])
        assert self.shown(folder) == "<svg>interventions</svg>"
        found = answer(pd.DataFrame([claim_row()]), folder / "quick" / "report.html", {}, AtlasNumbers(folders[1], {}))
        assert found is not None
        assert found.sentences[0].startswith("Calibration is improved by ")
        assert found.sentences[1].endswith("after correction for the nine primary analyses.")
        cells = folders[1] / "cells.csv"
        written = cells.read_text().splitlines(keepends=True)
        cells.write_text("".join(written[:-1]))
        assert self.shown(folder) == "<svg>answer</svg>", "a pair of task and method is still to be run"
        cells.write_text("".join(written))
        (folders[1] / "interventions.svg").unlink()
        assert self.shown(folder) == "<svg>answer</svg>"

    def test_without_a_figure_there_is_none(self, folder: Path, folders: tuple[Path, Path]) -> None:
        (folders[0] / "answer.svg").unlink()
        assert answer(pd.DataFrame([claim_row()]), folder / "report.html", {}) is None


class TestEscaping:
    def test_words_from_files_are_never_markup(self, folder: Path) -> None:
        claims = [claim_row(statement=NASTY, metric=NASTY, published=NASTY)]
        done = results(folder, made.trial(), made.failure(seed=1, error=NASTY), claims=claims)
        pd.DataFrame({NASTY: [NASTY]}).to_csv(folder / "tables" / "MADE-F1.csv", index=False)
        found = page(made.plan(experiments(caption=NASTY), title=NASTY, citation=NASTY), done)
        assert found.tags.count("script") == page(made.plan(experiments()), done).tags.count("script")
        assert "<script>alert" not in found.text
        assert found.words.count("<script>alert('x')</script> & <b>") >= 7


class TestParts:
    def test_numbers(self) -> None:
        assert [number(value) for value in (1.23456, 12345.678, 1e-7, float("nan"), 3, "a", -0.0)] == [
            "1.235",
            "12,350",
            "1e-07",
            "–",
            "3",
            "a",
            "0",
        ]

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (0.0, "0 s"),
            (0.123, "0.12 s"),
            (5.92, "5.9 s"),
            (61.4, "61 s"),
            (200, "3.33 min"),
            (7201, "2 h"),
            (4.44e6, "1,230 h"),
        ],
    )
    def test_times_are_in_units_that_people_use(self, seconds: float, words: str) -> None:
        assert duration(seconds) == words

    @pytest.mark.parametrize(("p", "words"), [(0.0421, ".042"), (1.0, "1"), (3e-5, "<.0001"), (float("nan"), "–")])
    def test_p_values_are_as_papers_print_them(self, p: float, words: str) -> None:
        assert p_value(p) == words
