"""The result pages: what templates may ask, what they are refused, and whether the committed pages are current."""

import re
from pathlib import Path
from typing import Any

import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from made_runs import claim_test

from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.estimates import Estimate, interval, percent, percent_interval, rounded, with_interval
from plumbline.analysis.publish.figure_kinds import FigureKinds
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.publish.result_pages import ReferenceNumbers, result_pages, write_result_pages
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.analysis.verdicts.rule import counts
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.statistics.means import Mean
from plumbline.study.claims import Claim
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config
from plumbline.study.verdicts import VERDICTS

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "docs" / "templates"

ROW = dict.fromkeys(COLUMNS, "") | {
    "claim": "K1",
    "role": "primary",
    "test": "final regret",
    **criterion(claim_test(method="a", baseline="b", metric="regret", task="bowl")),
    "ours": -1.234,
    "low": -2.0,
    "high": -0.5,
    "median": -1.0,
    "favourable": 0.84,
    "seeds": 50,
    "experiments": "E",
    "needed": 40,
    "size_p": 0.02,
    "outcome": "holds",
    "data": "synthetic",
    "verdict": "partly",
    "pattern": 0.853,
    "chance": 0.5,
}


RULE = Mean(np.array([-1.0, -2.0, -1.5, -1.2, -1.9]), "E   a b")
PAIRED = Estimate(RULE.value, *RULE.interval())
"""The differences of the runs below, with the interval by which claims are judged."""


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """Reference results of one claim and one experiment with five seeds of two methods."""
    claims = [
        ROW,
        ROW | {"tasks": "ridge", "outcome": "open", "seeds": 10},
        ROW | {"role": "secondary", "of": "mean", "ours": 7.0},
    ]
    (tmp_path / "E").mkdir()
    pd.DataFrame(claims).to_csv(tmp_path / "claims.csv", index=False)
    table = {
        "task": ["bowl"] * 2,
        "method": ["a", "b"],
        "seeds": [5, 5],
        "regret": [2.0, 3.5],
        "regret ±": [0.1, 0.2],
        "asked for": ["15/2.5/0", "7/7/7"],
    }
    pd.DataFrame(table).to_csv(tmp_path / "E" / "E-table.csv", index=False)
    runs = [
        {"task": "bowl", "method": method, "metric": "regret", "seed": seed, "last": last, "mean": 2 * last}
        for method, values in {"a": (1.0, 2.0, 3.0, 2.0, 2.0), "b": (2.0, 4.0, 4.5, 3.2, 3.9)}.items()
        for seed, last in enumerate(values)
    ]
    pd.DataFrame(runs).to_parquet(tmp_path / "E" / "E-runs.parquet")
    return tmp_path


def filled_in(reference: Path, template: str) -> str:
    """The page of a template, without the line that says where it is from."""
    folder = reference / "templates"
    folder.mkdir(exist_ok=True)
    (folder / "page.md").write_text(template)
    study = made.plan({}, {"K1": {"source": "p. 1", "statement": "S.", "seeds": 5}}).studies["made-up"]
    return result_pages(folder, ReferenceNumbers(reference, [study]))["page.md"].split("-->\n\n", 1)[1]


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ('test("K1", "on bowl:", "primary")|f(2)', "-1.23"),
        ('test("K1", "final", "bowl")|est(1)', "-1.2 (-2.0 to -.5)"),
        ('-test("K1", "final", "bowl")|est(2)', "1.23 (.50 to 2.00)"),
        ('test("K1", "mean regret")|f(0)', "7"),
        ('test("K1", "final", "bowl").share|pc', "84%"),
        ('parts("K1"), parts("K1", "holds")', "(2, 1)"),
        ('counted("K1")', "1 holds, 1 open"),
        ('size_p("K1", "bowl")|f(3)', ".020"),
        ('needed("K1")', "40"),
        ('pattern("K1")|pc', "85%"),
        ('seeds("K1")', "10 to 50"),
        ('verdict("K1")', "◐\u00a0partly"),
        ('mean("E", "b")|f(1)', "3.5"),
        ('error("E", "a", "bowl", "regret")|f(1)', ".1"),
        ('numbers("E", "asked for", method="a")[1:]|sum|f(1)', "2.5"),
        ('diff("E", "a", "b")|est(2)', f"-1.52 ({interval(PAIRED, 2)})"),
        ('diff("E", "a", "b", of="mean")|f(0)', "-3"),
        ('ahead("E", "b", "a")', "5"),
        ('above("E", "b", 3)', "4"),
        ('final_mean("E", "b", "regret")|f(1), final_median("E", "b", "regret")|f(1)', "('3.5', '3.9')"),
        ('over_rounds("E", "a", "regret")|f(0)', "4"),
    ],
)
def test_what_templates_ask(reference: Path, expression: str, written: str) -> None:
    assert filled_in(reference, f"It is {{{{ {expression} }}}}.{{# a comment #}}\n") == f"It is {written}.\n"


@pytest.mark.parametrize(
    ("baseline", "own", "cause"), [("b", "-1.425", "search"), ("c", "-2", "utility")], ids=["in both", "in the other"]
)
def test_two_searches_on_the_seeds_of_both(reference: Path, baseline: str, own: str, cause: str) -> None:
    """Of five seeds the other experiment has four; a baseline that the first lacks is the other's."""
    values = {
        "a-informed": (1.0, 2.1, 3.0, 2.1),
        "b-informed": (1.1, 2.0, 3.1, 2.0),
        "c-informed": (3.0, 4.0, 5.1, 4.0),
        "c": (3.0, 4.1, 5.0, 3.9),
        "a-longer": (2.0, 2.0, 2.0, 2.0),
        "b-longer": (0.5, 1.5, 0.5, 1.5),
        "c-longer": (0.5, 1.5, 0.5, 1.5),
    }
    runs = [
        {"task": "bowl", "method": method, "metric": "regret", "seed": seed, "last": last, "mean": last}
        for method, of_seeds in values.items()
        for seed, last in enumerate(of_seeds)
    ]
    (reference / "S").mkdir()
    pd.DataFrame(runs).to_parquet(reference / "S" / "S-runs.parquet")
    asked = f'two_searches("E", "S", "a", "{baseline}")'
    written = f"{{{{ {asked}.own.value }}}} {{{{ {asked}.own.seeds }}}} {{{{ {asked}.cause }}}}\n"
    value, seeds, named = filled_in(reference, written).split()
    assert (round(float(value), 3), seeds, named) == (float(own), "4", cause)
    longer = f'{{{{ two_searches("E", "S", "a", "{baseline}", suffix="-longer").shared.value }}}}\n'
    assert float(filled_in(reference, longer)) == 1.0


def test_a_verdict_in_doubt_says_so(reference: Path) -> None:
    doubts = pd.DataFrame({"claims": ["C1 K1"], "doubt": ["D."], "repair": ["R."]})
    doubts.to_csv(reference / "doubts.csv", index=False)
    assert filled_in(reference, '{{ verdict("K1") }}\n') == "◐\u00a0partly, in doubt\n"
    assert "| **◐ partly**, in doubt |" in filled_in(reference, "{{ verdicts() }}\n")
    assert "| C1, K1 | D. | R. |" in filled_in(reference, "{{ doubts() }}\n")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ('test("K2")', "unknown claim 'K2'"),
        ('test("K1", "final")', "2 tests of K1"),
        ('test("K1", "on hill")', "0 tests of K1"),
        ('mean("F", "a")', "unknown experiment 'F'"),
        ('mean("E", "c")', "unknown method 'c'"),
        ('mean("E", "a", metric="score")', "unknown column 'score'"),
        ('median("E", "a")', "unknown column 'regret median'"),
        ('diff("E", "a", "c")', "unknown method 'c'"),
        ('diff("E", "a", "b", metric="score")', "unknown metric 'score'"),
        ('final_mean("E", "c", "regret")', "unknown method 'c'"),
        ('final_median("E", "c", "regret")', "unknown method 'c'"),
        ('over_rounds("E", "c", "regret")', "unknown method 'c'"),
        ('ahead("E", "a", "c")', "unknown method 'c'"),
        ('above("E", "c", 0.5)', "unknown method 'c'"),
        ('two_searches("E", "E", "a", "b")', "unknown method 'a-informed'"),
        ('figure("E", "shows")', "no file E.png"),
        ("nobody", "'nobody' is undefined"),
        ('test("K1", "mean").colour', "no attribute 'colour'"),
        ('pattern("K1")|rounded', "No filter named 'rounded'"),
        ('pattern("K1"', "unexpected"),
    ],
)
def test_what_cannot_be_filled_in_is_an_error_with_its_line(reference: Path, expression: str, words: str) -> None:
    with pytest.raises(PlumblineError, match=r"page\.md:3: ") as error:
        filled_in(reference, f"# Title\n\nIt is {{{{ {expression} }}}}.\n")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.046, 2, ".05"), (-0.34, 2, "-.34"), (-0.001, 2, ".00"), (10.5, 1, "10.5"), (176324, 0, "176,324")],
)
def test_numbers_as_they_are_written(value: float, digits: int, text: str) -> None:
    assert rounded(value, digits) == text


def test_ratios_and_shares() -> None:
    ratio = Estimate(1.08, 1.01, 1.17)
    assert f"{percent(ratio - 1)} ({percent_interval(ratio - 1)})" == "8% (1% to 17%)"
    assert with_interval(-ratio, 2) == "-1.08 (-1.17 to -1.01)"


def test_pages_that_are_current_are_left_alone(tmp_path: Path) -> None:
    pages = {"some/a.md": "A\n", "b.md": "B\n"}
    assert write_result_pages(pages, tmp_path) == [tmp_path / "some" / "a.md", tmp_path / "b.md"]
    (tmp_path / "b.md").write_text("by hand\n")
    assert write_result_pages(pages, tmp_path) == [tmp_path / "b.md"]
    assert (tmp_path / "b.md").read_text() == "B\n"


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    plan = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT)
    reference, studies = ROOT / "results" / "reference", list(plan.studies.values())
    atlas = AtlasNumbers(ROOT / "results" / "atlas", plan.library.labels())
    return result_pages(TEMPLATES, ReferenceNumbers(reference, studies), atlas, FigureKinds(reference, studies))


def test_the_committed_pages_are_current(committed: dict[str, str]) -> None:
    """`plumbline pages` writes them anew."""
    stale = [name for name, text in committed.items() if (ROOT / "docs" / name).read_text("utf-8") != text]
    assert stale == []


VERDICT_IN_WORDS = re.compile(rf"\(([A-Z]\d+),(?: [\w-]+,)? ({'|'.join(VERDICTS).replace(' at this scale', '')})\b")
"""A claim with its verdict, as prose has it: (C4, partly: one part of four holds)."""


def test_verdicts_in_prose_are_those_of_the_reference(committed: dict[str, str]) -> None:
    claims = dict(read_claims(ROOT / "results/reference/claims.csv")[["claim", "verdict"]].to_numpy())
    said = [one for page in committed.values() for one in VERDICT_IN_WORDS.findall(page)]
    assert len(said) > 25
    assert [(name, words) for name, words in said if not claims[name].startswith(words)] == []


def test_the_index_says_what_holds_of_each_claim_and_what_does_not(committed: dict[str, str]) -> None:
    """A claim with parts that hold has words for them, and one with others for those; the parts are counted."""
    claims = read_claims(ROOT / "results/reference/claims.csv")
    primary = claims[claims["role"] == "primary"].groupby("claim")["outcome"]
    outcomes = {name: set(found) for name, found in primary}
    section = committed["results/index.md"].partition("## In words")[2].partition("## Verdicts in doubt")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    said = {row[0]: row for row in rows if row[0] in outcomes}
    assert said.keys() == outcomes.keys()
    for name, (_, verdict, parts, holds, other) in said.items():
        assert parts == counts(primary.get_group(name)), name
        if not verdict.startswith(("cannot fail", "does not apply")):
            assert bool(holds) == ("holds" in outcomes[name]), name
            assert bool(other) == bool(outcomes[name] - {"holds"}), name


@pytest.fixture(scope="module")
def stated() -> dict[str, Claim]:
    """The claims of all studies."""
    studies = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT).studies.values()
    return {name: claim for study in studies for name, claim in study.claims.items()}


@pytest.fixture(scope="module")
def reference_parts() -> dict[str, pd.DataFrame]:
    """The parts of the primary test of each claim that was judged."""
    table = read_claims(ROOT / "results/reference/claims.csv")
    return {str(name): rows for name, rows in table[table["role"] == "primary"].groupby("claim")}


def words_of(claim: Claim) -> str:
    """What is said of a claim, without its marks."""
    return " ".join(claim.in_words.said.values()).replace("**", "") if claim.in_words else ""


def test_every_verdict_on_file_is_said_in_words(
    stated: dict[str, Claim], reference_parts: dict[str, pd.DataFrame]
) -> None:
    unjudged = {name for name, claim in stated.items() if claim.beyond and claim.beyond.verdict == "does not apply"}
    assert {name for name, claim in stated.items() if claim.in_words} == reference_parts.keys() - unjudged
    reproduced = [name for name, rows in reference_parts.items() if rows["verdict"].iloc[0] == "reproduced"]
    assert len(reproduced) > 5
    for name in reproduced:
        said = stated[name].in_words
        assert said is not None
        assert not re.search(r"\bfails?\b", said.rest), name


SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER = rf"(?<![\w-])(\d+|{'|'.join(SMALL)})"
NOUN = r"(?: other)?(?: comparisons?| parts?| pairs [^.,;:]*?)?"
COUNTED = re.compile(rf"{NUMBER}{NOUN} (?:(?:is|are) )?(open|fails?|holds?|cannot show)\b", re.IGNORECASE)
"""A number of parts with their outcome: `9 fail`, `Eleven other comparisons are open`."""

HELD = re.compile(rf"{NUMBER} of {NUMBER} parts", re.IGNORECASE)
"""How many parts hold: `8 of 32 parts`."""


def counted_in(words: str) -> list[tuple[int, str]]:
    """The numbers of parts in words, each with the outcome; of all parts it is empty."""
    found = [(number, outcome.lower()) for number, outcome in COUNTED.findall(words)]
    found += [pair for few, of in HELD.findall(words) for pair in ((few, "holds"), (of, ""))]
    outcomes = {"fail": "fails", "hold": "holds"}
    return [
        (int(number) if number.isdigit() else SMALL.index(number.lower()), outcomes.get(outcome, outcome))
        for number, outcome in found
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("8 of 32 parts: a beats b. 9 fail: c.", [(9, "fails"), (8, "holds"), (32, "")]),
        ("4 pairs of a's families on b cannot show anything. 11 parts are open.", [(4, "cannot show"), (11, "open")]),
        ("Eleven other comparisons are open, four of them with c. One part holds.", [(11, "open"), (1, "holds")]),
        ("On CIFAR-10 is open, with four it is open, and three of four hold.", [(4, "holds")]),
    ],
)
def test_numbers_of_parts_in_words(words: str, found: list[tuple[int, str]]) -> None:
    assert counted_in(words) == found


def test_numbers_of_parts_in_words_are_those_of_the_reference(
    stated: dict[str, Claim], reference_parts: dict[str, pd.DataFrame]
) -> None:
    said = [(name, *one) for name, claim in stated.items() for one in counted_in(words_of(claim))]
    assert len(said) >= 9
    outcomes = {name: list(rows["outcome"]) for name, rows in reference_parts.items()}
    wrong = [
        (name, number, outcome)
        for name, number, outcome in said
        if number != (outcomes[name].count(outcome) if outcome else len(outcomes[name]))
    ]
    assert wrong == []


def test_small_numbers_in_words_are_those_of_the_tests(stated: dict[str, Claim]) -> None:
    """A range, a threshold or a level; a number that is measured would have to be filled in."""
    numbers = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)")
    said = [(name, claim, one) for name, claim in stated.items() for one in numbers.findall(words_of(claim))]
    assert len(said) >= 4
    for name, claim, one in said:
        tests = claim.model_dump_json(include={"primary", "secondary"})
        assert float(one) in {float(found) for found in re.findall(r"\d*\.\d+", tests)}, (name, one)


@pytest.mark.parametrize("paper", ["approximation", "calibrated", "conformal", "localised", "practice"])
def test_a_page_ends_with_what_its_authors_might_answer(committed: dict[str, str], paper: str) -> None:
    title, _, answers = committed[f"results/{paper}.md"].rpartition("\n## ")[1:][-1].partition("\n")
    assert title == "What its authors might answer"
    assert len([line for line in answers.splitlines() if line.startswith("| ")]) >= 4


FIGURE = re.compile(r"^!\[(.*?)\]\(\S*/([\w-]+)\.png\)\n\n(\*Experiment .*?)$", re.MULTILINE)
"""Of an experiment: its text, its name and its caption."""


def test_no_caption_says_median_where_the_figure_can_show_means_only(committed: dict[str, str]) -> None:
    """Curves have medians and quantiles where single runs by round are kept; others are drawn from means."""
    studies = load_plan(read_config(ROOT / "config" / "config.yaml"), ROOT).studies.values()
    kinds = {name: one.figure.kind for study in studies for name, one in study.experiments.items() if one.figure}
    found = [one for page in committed.values() for one in FIGURE.findall(page)]
    of_means = [
        (name, words, caption)
        for words, name, caption in found
        if kinds.get(name) == "curves" and not (ROOT / f"results/reference/{name}/{name}-rounds.parquet").is_file()
    ]
    assert len(of_means) > 20
    wrong = [name for name, *words in of_means if re.search("median|quantile", " ".join(words), re.IGNORECASE)]
    assert wrong == []


BLOCK = re.compile(r"\n\s*\n|\n(?=\* )")
"""Between paragraphs, tables and points of a list."""

DECIMAL = re.compile(r"(?<![\w.\-])-?\d*\.\d+(?![\w.])")


@pytest.mark.parametrize("template", sorted(TEMPLATES.rglob("*.md")), ids=lambda one: one.stem)
def test_numbers_that_are_not_filled_in_say_where_they_are_from(template: Path) -> None:
    unexplained = [
        (found, block)
        for block in BLOCK.split(template.read_text(encoding="utf-8"))
        if "{#" not in block
        for found in DECIMAL.findall(re.sub(r"\{\{.*?\}\}", "", block, flags=re.DOTALL))
    ]
    assert unexplained == []
