import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_evidence as made
import pandas as pd
import pytest

from plumbline.analysis.outputs.style import VERDICT_COLOURS, verdict_colour
from plumbline.analysis.publish.report import check_svg, data_uri, failures_in, hours_in, number, write_report
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.core.places import REFERENCE
from plumbline.study.plan import Plan
from plumbline.study.verdicts import VERDICTS

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
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
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.references += [value for name, value in attrs if name in ("src", "href", "srcset", "data") and value]

    def handle_data(self, data: str) -> None:
        self.words += data


def claim_row(**changes: Any) -> dict[str, Any]:
    row = dict.fromkeys(COLUMNS, "") | {
        "claim": "K1",
        "experiments": "MADE-F1",
        "source": "section 5",
        "statement": "It is better.",
        "role": "primary",
        "test": "final regret",
        "statistic": "difference of final regret",
        "published": "better",
        "ours": -1.23456789,
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
    """Away from the reference results, which would be on the page."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(places, "shipped", lambda: folder)


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
    (folder / "figures" / "MADE-F1.png").write_bytes(PIXEL)
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
        assert {"MADE-F1", "MADE-T1", "claims", "provenance", "made-up"} <= set(found.ids)
        for words in ("MADE-F1: The first", "What came of them.", "MADE-T1: A space", "A made-up document", "Nobody."):
            assert words in found.words
        assert "MADE-F9" not in found.words

    def test_an_illustration_needs_no_records(self, folder: Path) -> None:
        shown = {"kind": "rkhs-function"}
        alone = {"title": "A function", "chosen": "Its kernel.", "illustration": shown, "figure": shown, "quick": {}}
        folder = results(folder)
        (folder / "figures" / "MADE-F2.png").write_bytes(PIXEL)
        found = page(made.plan(experiments() | {"MADE-F2": alone}), folder)
        assert "MADE-F2: A function" in found.words
        assert "Its kernel." in found.words
        assert found.tags.count("img") == 2

    def test_verdicts_come_first(self, folder: Path) -> None:
        claims = [claim_row(claim=f"K{i}", verdict=verdict) for i, verdict in enumerate(VERDICTS)]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        for i, verdict in enumerate(VERDICTS):
            assert re.search(rf"K{i}\s+{verdict}", found.words)
            assert f'class="verdict {verdict.replace(" ", "-")}"' in found.text
            assert f".{verdict.replace(' ', '-')} {{" in found.text
        assert found.words.index("K0") < found.words.index("MADE-F1: The first")

    def test_verdicts_have_the_colours_of_the_figures(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder, claims=[claim_row()]))
        for verdict in VERDICT_COLOURS:
            assert f".{verdict.replace(' ', '-')} {{ background: {verdict_colour(verdict)};" in found.text

    def test_seeds_are_those_of_all_parts(self, folder: Path) -> None:
        claims = [claim_row(seeds=50), claim_row(seeds=10), claim_row(seeds=3, role="secondary")]
        assert "10 to 50 seeds" in page(made.plan(experiments()), results(folder, claims=claims)).words

    def test_claims_are_seen_at_a_glance_by_document(self, folder: Path) -> None:
        claims = [claim_row(claim="K10"), claim_row(claim="K2", low=-1.9)]
        words = " ".join(page(made.plan(experiments()), results(folder, claims=claims)).words.split())
        glance = words[words.index("At a glance A made-up document") : words.index("Claims One test decides")]
        assert glance.index("K2 reproduced It is better. final regret: -1.23 (-1.9 to -0.5); 3 seeds") < glance.index(
            "K10"
        )

    def test_a_column_that_says_nothing_is_left_out(self, folder: Path) -> None:
        claims = [claim_row(published=""), claim_row(role="secondary", stuck="plain 3 of 5")]
        words = page(made.plan(experiments()), results(folder, claims=claims)).words
        primary, secondary = words[words.index("The secondary tests are shown") :].split("1 secondary test")
        assert "published" not in primary
        assert "stuck" not in primary
        assert "published" in secondary
        assert "stuck" in secondary

    def test_experiments_that_a_claim_misses_are_named_without_a_link(self, folder: Path) -> None:
        claims = [claim_row(experiments="MADE-F1 MADE-F7", missing="MADE-F7")]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        assert "MADE-F1, MADE-F7 (not run);" in " ".join(found.words.split())
        assert "; MADE-F7 not run" in found.words
        assert "#MADE-F7" not in found.references

    def test_contents_name_every_experiment_and_where_its_files_are(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert {"#MADE-F1", "#MADE-T1"} <= set(found.references)
        words = " ".join(found.words.split())
        assert "2 experiments MADE-F1 The first MADE-T1 A space" in words
        assert "Files: figures/MADE-F1.png, tables/MADE-F1.csv, records/MADE-F1.parquet." in words

    def test_what_experiments_took_is_said(self, folder: Path) -> None:
        rows = made.trial(), made.trial(seed=1)
        hours = sum({(row["seed"], row["iteration"]): row["round_seconds"] for one in rows for row in one}.values())
        done = results(folder, *rows)
        assert hours_in(done / "records" / "MADE-F1.parquet") == pytest.approx(hours / 3600)
        assert f"6 trials, {number(hours / 3600)} hours." in page(made.plan(experiments()), done).words

    def test_contradictions_are_not_hidden(self, folder: Path) -> None:
        claims = [claim_row(verdict="partly", outcome=outcome) for outcome in ("holds", "fails", "fails", "open")]
        claims += [claim_row(verdict="partly", role="secondary", outcome="open")]
        assert "1 holds, 2 fail, 1 open" in page(made.plan(experiments()), results(folder, claims=claims)).words

    def test_what_a_claim_says_and_how_often_few_seeds_look_so(self, folder: Path) -> None:
        first = claim_row(sentence="Ours outperforms theirs", pattern=0.314, stuck="plain 3 of 5")
        words = " ".join(page(made.plan(experiments()), results(folder, claims=[first])).words.split())
        assert "Ours outperforms theirs" in words
        assert "3 seeds (the paper's: 5), synthetic" in words
        assert "31 of 100 draws of as many seeds as the paper has" in words
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
        assert "of 100 draws" not in found.words
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
        claims = [claim_row(), claim_row(statistic="another", ours=float("nan"), low=float("nan"), high=float("nan"))]
        found = page(made.plan(experiments()), results(folder, claims=claims))
        assert "-1.235" in found.words
        assert "[-2, -0.5]" in found.words
        assert "another" in found.words
        assert "[–, –]" in found.words
        assert found.ids.count("K1") == 1

    def test_it_is_one_file_that_asks_for_no_other(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert not {"script", "link", "iframe", "object", "embed", "base"} & set(found.tags)
        assert "img" in found.tags
        for reference in found.references:
            assert reference.startswith(("#", "data:image/png;base64,")), reference
        assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org)", found.text)

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

    def test_stand_ins_are_owned_up_to(self, folder: Path) -> None:
        grid = [{"tasks": ["qed"], "methods": ["plain"]}]
        found = page(made.plan(experiments(grid=grid)), results(folder))
        assert "Stand-ins are in use: generated-molecules for zinc250k" in found.words
        assert "generated-molecules (generated, stands in for zinc250k)" in found.words

    def test_without_claims_it_says_so(self, folder: Path) -> None:
        assert "No claim rests on" in page(made.plan(experiments()), results(folder, claims=[])).words

    def test_verdicts_of_record_count_as_one_counts(self, folder: Path) -> None:
        committed = folder / REFERENCE / "claims.csv"
        committed.parent.mkdir(parents=True)
        names = ("C10", "C2", "C1")
        pd.DataFrame([claim_row(claim=name, statement=f"It is {name}.") for name in names]).to_csv(committed)
        words = page(made.plan(experiments()), results(folder)).words
        order = [words.index(f"It is {name}.") for name in ("C1", "C2", "C10")]
        assert order == sorted(order)

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
        assert found.words.index("2 trials failed") < found.words.index("One test decides")
        assert "2 of 6 trials failed:" in found.words
        assert "bowl plain seed 1: NotPSDError: a kernel" in found.words

    def test_without_any_there_is_no_warning(self, folder: Path) -> None:
        found = page(made.plan(experiments()), results(folder))
        assert "failed" not in found.words
        assert 'class="warning"' not in found.text

    def test_those_of_a_file(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial(), made.failure(seed=4))
        assert failures_in(path) == ["bowl plain seed 4: NotPSDError: no"]


class TestEscaping:
    def test_words_from_files_are_never_markup(self, folder: Path) -> None:
        claims = [claim_row(statement=NASTY, statistic=NASTY, published=NASTY)]
        done = results(folder, made.trial(), made.failure(seed=1, error=NASTY), claims=claims)
        pd.DataFrame({NASTY: [NASTY]}).to_csv(folder / "tables" / "MADE-F1.csv", index=False)
        found = page(made.plan(experiments(caption=NASTY), title=NASTY, citation=NASTY), done)
        assert "script" not in found.tags
        assert "<script" not in found.text
        assert found.words.count("<script>alert('x')</script> & <b>") >= 7


class TestParts:
    def test_numbers(self) -> None:
        assert [number(value) for value in (1.23456, 12345.678, 1e-7, float("nan"), 3, "a", -0.0)] == [
            "1.235",
            "1.235e+04",
            "1e-07",
            "–",
            "3",
            "a",
            "-0",
        ]

    def test_a_picture_is_part_of_the_page(self, folder: Path) -> None:
        path = folder / "pixel.png"
        path.write_bytes(PIXEL)
        uri = data_uri(path)
        assert base64.b64decode(uri.removeprefix("data:image/png;base64,")) == PIXEL

    @pytest.mark.parametrize("content", [b"", PIXEL[:20], PIXEL[:60], b"<svg></svg>", b"\xff" * 99])
    def test_one_that_cannot_be_shown_is_refused(self, folder: Path, content: bytes) -> None:
        path = folder / "cut.png"
        path.write_bytes(content)
        with pytest.raises(PlumblineError, match=r"cut\.png is empty, cut off or no PNG: delete it, and run"):
            data_uri(path)

    def test_one_that_is_not_there_is_refused(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match=r"no figure .*none\.png: draw it first"):
            data_uri(folder / "none.png")

    @pytest.mark.parametrize("content", ["", "<svg><text>cut of"])
    def test_a_drawing_that_is_cut_off_is_refused(self, folder: Path, content: str) -> None:
        path = folder / "cut.svg"
        path.write_text(content)
        with pytest.raises(PlumblineError, match=r"cut\.svg is empty, cut off or no SVG"):
            check_svg(path)
