"""Pages of the site: cells, labels, files; and that each claim and experiment has its page in words."""

import re
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.attrs import attrs_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from plumbline.analysis.publish.api_pages import api_pages
from plumbline.analysis.publish.claim_pages import (
    NOT_RUN,
    STATES,
    STATISTICS,
    Titles,
    claim_page,
    limits,
    measured,
    parts,
    small_samples,
    verdict_of,
    write_claim_pages,
)
from plumbline.analysis.publish.experiment_pages import Status, in_words, titled, write_experiment_pages
from plumbline.analysis.publish.markdown import cell, escaped, sentence, table, with_bold
from plumbline.analysis.publish.pages import label, listed, write_pages
from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
from plumbline.analysis.publish.supported_values import supports
from plumbline.analysis.publish.verdict_tables import NOT_JUDGED, doubt_table, verdict_summary, verdict_table
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.statistics.over_seeds import STATISTICS as OVER_SEEDS
from plumbline.study.claims import Claim, ClaimTest
from plumbline.study.experiments import Study
from plumbline.study.plan import Plan, load_plan

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "results" / "reference"
ATLAS = ROOT / "results" / "atlas"


@pytest.fixture(scope="module")
def plan() -> Plan:
    studies = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml"))
    return load_plan({"preset": "paper", "data": "real", "studies": studies}, ROOT)


@pytest.fixture(scope="module")
def claims(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of all claims, with a reply to K1."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "replies").mkdir()
    (folder / "replies" / "K1.md").write_text("The reply of K1's authors.")
    write_claim_pages(list(plan.studies.values()), plan.library, REFERENCE, folder / "claims", folder / "replies")
    return folder / "claims"


@pytest.fixture(scope="module")
def experiments(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of all experiments."""
    folder = tmp_path_factory.mktemp("docs") / "experiments"
    write_experiment_pages(list(plan.studies.values()), plan.library, REFERENCE, ATLAS, folder)
    return folder


def figures_of(page: Path) -> list[Path]:
    """The figures of a page, from the root of the file system."""
    return [(page.parent / path).resolve() for path in re.findall(r"!\[[^]]*\]\(([^)]*)\)", page.read_text())]


class TestCells:
    def test_a_cell_is_one_line_without_bars(self) -> None:
        assert [cell("a | b\nc"), cell(1.23456), cell(float("nan"))] == ["a \\| b c", "1.235", "–"]

    def test_bold_is_the_only_markup_of_a_cell_with_bold(self) -> None:
        assert with_bold("**10 seeds** of\n a|b, *not* <b>") == "**10 seeds** of a\\|b, \\*not\\* \\<b\\>"

    def test_a_label_says_its_words_and_names_its_style(self) -> None:
        assert label("not reproduced") == "[■\u00a0not reproduced]{.label .not-reproduced}"
        assert label("partly", mark="†") == "[◐\u00a0partly\u00a0†]{.label .partly}"
        assert label("not run yet") == "[not run yet]{.label .not-run-yet}"

    def test_sentences_end_once(self) -> None:
        assert [sentence("one\n two"), sentence("Two."), sentence("Three?")] == ["One two.", "Two.", "Three?"]

    def test_numbers_are_aligned_to_the_right(self) -> None:
        assert table(pd.DataFrame({"a": ["x"], "b": [0.5]})).splitlines()[1] == "| --- | --: |"

    def test_words_are_listed(self) -> None:
        assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a and b", "a, b and c"]


class TestWritePages:
    def test_stale_pages_go_and_equal_ones_stay(self, tmp_path: Path) -> None:
        write_pages({"a.md": "a", "b.md": "b"}, tmp_path)
        (tmp_path / "folder").mkdir()
        before = (tmp_path / "a.md").stat().st_mtime_ns
        write_pages({"a.md": "a", "c.md": "c"}, tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "c.md", "folder"]
        assert (tmp_path / "a.md").stat().st_mtime_ns == before


class TestTestsInWords:
    def made(self, **changes: object) -> ClaimTest:
        fields = {"statistic": "difference", "metric": "regret", "direction": "less", "task": "t", "method": "a"}
        return ClaimTest.model_validate({**fields, "baseline": "b", **changes})

    def test_every_statistic_has_words(self) -> None:
        assert STATISTICS.keys() == OVER_SEEDS.keys()

    def test_a_difference_of_medians_after_half_of_the_rounds(self) -> None:
        words = measured(self.made(location="median", after=0.5), "EI", "UCB")
        assert words == "the median over seeds of final `regret` (of EI: after 50% of its rounds), EI minus UCB"

    def test_a_ratio_is_of_means_or_a_median_of_ratios(self) -> None:
        assert measured(self.made(statistic="ratio"), "EI", "UCB").startswith("the ratio of mean final `regret`")
        assert "median over seeds of the ratio" in measured(
            self.made(statistic="ratio", location="median"), "EI", "UCB"
        )

    def test_what_supports_a_claim(self) -> None:
        alike = self.made(direction="within", range=(0.8, 1.25))
        assert [supports(criterion(one)) for one in (self.made(), alike)] == ["below 0", "0.8 to 1.25"]


class TestClaimPages:
    @pytest.mark.slow
    def test_parts_of_a_claim_can_be_told_from_each_other(self, plan: Plan) -> None:
        claims, titles = read_claims(REFERENCE / "claims.csv"), Titles(plan.library)
        for study in plan.studies.values():
            for name, claim in study.claims.items():
                for role in ("primary", "secondary"):
                    rows = claims[(claims["claim"] == name) & (claims["role"] == role)]
                    shown = [(one.compared, one.tasks, one.measured) for one in parts(claim, rows, titles)]
                    assert len(set(shown)) == len(shown), name

    def test_the_title_of_a_claim_is_its_whole_statement(self, claims: Path) -> None:
        title = (claims / "S1.md").read_text().partition("# Claim S1: ")[2].partition("\n")[0]
        assert title.startswith("Exact penalty optimisation ends with a lower penalised regret than")

    def test_every_claim_has_a_page_that_begins_with_its_verdict(self, plan: Plan, claims: Path) -> None:
        table = read_claims(REFERENCE / "claims.csv")
        names = {name: claim for study in plan.studies.values() for name, claim in study.claims.items()}
        doubted = {name for words in read_doubts(REFERENCE / "claims.csv")["claims"] for name in words.split()}
        assert {path.stem for path in claims.iterdir()} == {*names, "index"}
        for name, claim in names.items():
            verdict = verdict_of(claim, table[table["claim"] == name])
            page = (claims / f"{name}.md").read_text()
            head = page[: page.index("## The claim")]
            assert f"\n\n{label(verdict)}" in head, name
            assert (", [in doubt](#doubts) " in head) == (name in doubted), name
            assert STATES[verdict] in page, name

    def test_every_test_on_file_is_shown_with_its_outcome(self, claims: Path) -> None:
        for name, rows in read_claims(REFERENCE / "claims.csv").groupby("claim"):
            page = (claims / f"{name}.md").read_text()
            for outcome, number in rows["outcome"].value_counts().items():
                assert page.count(f"| {label(str(outcome))} |") == number, name

    def test_figures_are_there(self, claims: Path) -> None:
        shown = [figure for page in claims.glob("*.md") for figure in figures_of(page)]
        assert len(shown) >= 30
        # The pages were written elsewhere, from where the reference results are as far as their address says.
        assert [figure for figure in shown if not figure.is_file()] == []

    def test_methods_and_tasks_are_called_by_their_titles(self, claims: Path) -> None:
        page = (claims / "K1.md").read_text()
        assert "calibrated UCB minus UCB" in page
        assert "calibrated-ucb" not in page

    def test_a_reply_is_shown_where_there_is_one(self, claims: Path) -> None:
        assert "The reply of K1's authors." in (claims / "K1.md").read_text()
        assert "There is no reply yet" in (claims / "K2.md").read_text()

    def test_doubts_are_shown_in_full(self, claims: Path) -> None:
        for names, doubt in pd.read_csv(REFERENCE / "doubts.csv")[["claims", "doubt"]].itertuples(index=False):
            for name in names.split():
                assert " ".join(doubt.split()) in (claims / f"{name}.md").read_text()

    def test_a_verdict_that_changed_says_from_what_and_why(self, plan: Plan, claims: Path) -> None:
        verdicts = read_claims(REFERENCE / "claims.csv").drop_duplicates("claim").set_index("claim")["verdict"]
        changed = {
            name: claim.former
            for one in plan.run.studies.values()
            for name, claim in one.claims.items()
            if claim.former
        }
        assert len(changed) == 16
        for name, former in changed.items():
            assert former.verdict != verdicts[name]
            page = (claims / f"{name}.md").read_text()
            assert f"Our verdict was *{former.verdict}* before. {former.why}" in page
        assert "Our verdict was" not in (claims / "K1.md").read_text()

    def test_a_verdict_is_said_in_words(self, plan: Plan, claims: Path) -> None:
        for name, claim in (one for study in plan.studies.values() for one in study.claims.items()):
            page = (claims / f"{name}.md").read_text()
            for about, words in claim.in_words.said.items() if claim.in_words else ():
                assert f"* *{about.capitalize()}:* {with_bold(words)}\n" in page[: page.index("## The claim")], name
        assert "What does not hold" not in (claims / "K1.md").read_text()

    def test_a_claim_without_words_or_results_has_no_line_of_them(self, plan: Plan) -> None:
        study = plan.studies["calibrated"]
        of_k1 = read_claims(REFERENCE / "claims.csv").query("claim == 'K1'")
        bare = study.model_copy(update={"claims": {"K1": study.claims["K1"].model_copy(update={"in_words": None})}})
        for one, rows, said in ((study, of_k1, True), (study, of_k1.iloc[:0], False), (bare, of_k1, False)):
            doubts = pd.DataFrame(columns=["claims", "doubt", "repair"])
            assert ("What holds" in claim_page(plan.library, one, "K1", rows, doubts, "", set(), "")) == said

    def test_a_claim_without_results_says_so(self) -> None:
        claim = Claim(source="section 1", statement="a beats b")
        assert verdict_of(claim, pd.DataFrame()) == NOT_RUN
        assert verdict_of(claim.model_copy(update={"experiments": ("E",)}), pd.DataFrame()) == NOT_JUDGED

    def test_rates_of_small_samples_in_words(self) -> None:
        first = pd.Series({"pattern": 0.853, "chance": 0.498, "paper_seeds": 5, "seeds": 50})
        words = small_samples(first)
        assert "5 seeds and ours on 50" in words
        assert "85.3%" in words
        assert "49.8% would" in words
        assert "would" not in small_samples(first.replace(0.498, float("nan")))
        assert small_samples(first.replace(0.853, float("nan"))) == ""

    def test_limits_name_scale_and_data(self) -> None:
        claim = Claim(source="section 1", statement="a beats b", seeds=20)
        ours = pd.Series({"missing": "E2", "seeds": 5, "preset": "desk", "data": "x (stands in for y)"})
        assert len(limits(ours, claim)) == 4
        assert limits(pd.Series({"missing": "", "seeds": 20, "preset": "paper", "data": "x"}), claim) == []


class TestExperimentPages:
    @pytest.mark.slow
    def test_every_experiment_has_a_page_that_says_whether_it_was_run(self, plan: Plan, experiments: Path) -> None:
        assert {path.stem for path in experiments.iterdir()} == {*plan.names(), "index"}
        for name in plan.names():
            page = (experiments / f"{name}.md").read_text()
            if any((REFERENCE / name).glob("*provenance.json")):
                status = "reference results"
            else:
                status = "in the atlas" if name.startswith("ATLAS-") else "not run yet"
            assert [one for one in get_args(Status) if label(one) in page] == [status], name
            assert ("plumbline reference" in page) == (status == "not run yet"), name
            assert f" -- {name}\n" in page

    def test_figures_are_there(self, experiments: Path) -> None:
        shown = [figure for page in experiments.glob("*.md") for figure in figures_of(page)]
        assert len(shown) == sum(path.stem == path.parent.name for path in REFERENCE.glob("*/*.png"))
        assert [figure for figure in shown if not figure.is_file()] == []

    def test_claims_are_named_with_their_verdicts(self, plan: Plan, experiments: Path) -> None:
        for study in plan.studies.values():
            for name, claim in study.claims.items():
                for one in claim.experiments:
                    assert f"[{name}](../claims/{name}.md)" in (experiments / f"{one}.md").read_text()

    def test_results_of_former_definitions_are_marked(self, experiments: Path) -> None:
        words = "These results are of former definitions"
        marked = {path.stem for path in experiments.glob("*.md") if words in path.read_text()}
        assert {"AABO-F4", "AABO-T3"} <= marked
        assert marked.isdisjoint({"AABO-X1-rover", "AABO-F2-hartmann", "AABO-F2-rover", "AABO-F3"})
        page = (experiments / "AABO-T3.md").read_text()
        assert "EULBO KG) ran with the departures shrunk-twice-update, sampled-maximisers." in page

    def test_tables_are_shown_in_whole(self, experiments: Path) -> None:
        rows = len(pd.read_csv(REFERENCE / "CAL-X1" / "CAL-X1-table.csv"))
        page = (experiments / "CAL-X1.md").read_text()
        assert f"<summary>{rows} rows</summary>" in page
        assert len(re.findall(r"^\| .* \| calibrated", page, re.MULTILINE)) > rows / 2

    def test_names_of_a_table_become_titles(self, plan: Plan) -> None:
        made = pd.DataFrame({"task": ["lda"], "method": ["ei-ml"], "best_f": [1.0]})
        shown = titled(made, Titles(plan.library))
        assert [*shown.columns, *shown.iloc[0]] == ["task", "method", "best f", "online-lda: perplexity", "EI", 1.0]

    def test_values_of_provenance_in_words(self) -> None:
        assert [in_words(value) for value in ([False, None], {"torch": "2"}, [1, 1])] == ["no", "torch 2", "1"]


class TestApiPages:
    def test_a_page_a_folder_with_all_modules(self) -> None:
        package = ROOT / "src" / "plumbline"
        pages = api_pages(package, "plumbline")
        folders = {path.parent for path in package.rglob("__init__.py")}
        assert pages.keys() == {f"{'.'.join(path.relative_to(package.parent).parts)}.rst" for path in folders}
        modules = [path for path in package.rglob("*.py") if not path.stem.startswith("__")]
        text = "".join(pages.values())
        assert all(
            f"automodule:: {'.'.join(path.relative_to(package.parent).with_suffix('').parts)}\n" in text
            for path in modules
        )


ODD = st.text("ab $_%\\*[]()<>&|`~{}#-+=.!:'\"\n\t1é😀", max_size=30)
"""Words of users, in which much is markup to Markdown, HTML or formulas."""


def shown(text: str) -> tuple[str, list[str]]:
    """What a reader of Markdown sees of a text, by the parser of the site, and the kinds of its marks."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).use(dollarmath_plugin).use(attrs_plugin)
    tokens = [token for token in parser.parse(text) if token.type != "inline"]
    inline = [part for token in parser.parse(text) for part in token.children or ()]
    return "".join(part.content for part in inline), [token.type for token in (*tokens, *inline)]


@given(ODD)
def test_words_show_in_markdown_as_they_are(text: str) -> None:
    words, kinds = shown(escaped(text))
    assert words == " ".join(text.split())
    assert set(kinds) <= {"paragraph_open", "paragraph_close", "text", "text_special"}


@given(ODD)
def test_words_leave_a_heading_whole(text: str) -> None:
    words, kinds = shown(f"# Title: {escaped(text)}")
    assert words.removeprefix("Title:").strip() == " ".join(text.split())
    assert set(kinds) <= {"heading_open", "heading_close", "text", "text_special"}


@given(st.lists(st.tuples(ODD, ODD), min_size=1, max_size=3), ODD)
def test_a_table_keeps_its_columns_whatever_its_words(rows: list[tuple[str, str]], name: str) -> None:
    frame = pd.DataFrame(rows, columns=[f"a{name}", f"b{name}"])
    words, kinds = shown(table(frame))
    assert kinds.count("th_open") == 2
    assert kinds.count("td_open") == 2 * len(rows)
    assert words == "".join(" ".join(cell.split()) for row in (list(frame), *rows) for cell in row)
    assert {kind for kind in kinds if not kind.startswith(("t", "paragraph"))} == set()


@pytest.mark.slow
@given(ODD)
def test_tables_of_verdicts_keep_their_columns(text: str) -> None:
    claim = Claim.model_validate({"source": "p. 1", "statement": text or "none", "seeds": 0, "experiments": []})
    study = Study.model_construct(study="own", title=text, citation="", experiments={}, claims={"Q1": claim})
    doubts = pd.DataFrame([{"claims": "Q1", "doubt": text, "repair": text}])
    none = read_claims(REFERENCE / "claims.csv").iloc[:0]
    for page, columns in (
        (verdict_table([study], none, doubts), 7),
        (verdict_summary([study], none), 3),
        (doubt_table(doubts), 3),
    ):
        _, kinds = shown(page)
        assert kinds.count("th_open") == columns
        assert kinds.count("td_open") % columns == 0


@pytest.mark.parametrize("name", ["K4", "K5"])
def test_a_claim_whose_parts_differ_in_seeds_names_the_fewest_and_the_most(claims: Path, name: str) -> None:
    text = (claims / f"{name}.md").read_text()
    assert "| our runs | 10 to 50 seeds; " in text
    assert "and ours on 10. " in text
