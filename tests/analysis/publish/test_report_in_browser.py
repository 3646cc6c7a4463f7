"""The report as readers meet it, in headless Chromium: `pytest -m browser`.

The page has all reference verdicts, and a run of 700 trials. PLUMBLINE_AXE names `axe.min.js` of axe-core (npm);
without it the test of accessibility is skipped.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import headless
import made_evidence as made
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import plumbline as pb
from plumbline.analysis.comparisons.ranks import ranked
from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.publish.report import write_report
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.metrics.registry import by_round, columns_of
from plumbline.study.plan import load_plan
from plumbline.study.settings import read_config
from plumbline.study.verdicts import slug

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[3]
CLAIMS = read_claims(ROOT / "results/reference/claims.csv")
VERDICTS = CLAIMS.drop_duplicates("claim").set_index("claim")["verdict"]

METHODS = {f"method-{i}": 1.0 + 0.3 * i for i in range(7)}
"""Those of the run, with the factors of their regrets."""

TASKS = [f"task-{i}" for i in range(5)]
SEEDS = 20

pytestmark = headless.marks()


@pytest.fixture(scope="module")
def run() -> list[list[made.Row]]:
    """The rows of 700 trials."""

    def regret(factor: float, place: int) -> made.Curve:
        return lambda seed, n: factor * (3 + (seed * (place + 1)) % 7) / (1 + n * (1 + (seed + place) % 3))

    return [
        made.trial(task, method, seed, regret=regret(factor, place), rounds=12)
        for place, task in enumerate(TASKS)
        for method, factor in METHODS.items()
        for seed in range(SEEDS)
    ]


@pytest.fixture(scope="module")
def page(run: list[list[made.Row]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all reference verdicts and of the run."""
    results = tmp_path_factory.mktemp("results")
    (results / "reference").symlink_to(ROOT / "results/reference")
    folder = results / "quick"
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True)
    Image.new("RGB", (600, 400), "white").save(folder / "figures" / "MADE-F1.png")
    rows = [
        {"task": task, "method": method, "regret": 1 / (1 + i)} for i, task in enumerate(TASKS) for method in METHODS
    ]
    pd.DataFrame(rows).to_csv(folder / "tables" / "MADE-F1.csv", index=False)
    made.write(folder / "records" / "MADE-F1.parquet", *run)
    pd.DataFrame(columns=COLUMNS).to_csv(folder / "claims.csv", index=False)
    figure = {"kind": "curves", "options": {"rows": [{"metric": "regret", "label": "regret"}]}}
    own = made.plan(
        {"MADE-F1": made.experiment(figure=figure, table={"kind": "final-values"}, title="Seven made-up methods")}
    ).run
    plan = load_plan(read_config(ROOT / "config/config.yaml"), ROOT)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(results.parent)
        patched.setattr("plumbline.analysis.publish.report.reference_folder", lambda: results / "reference")
        whole = replace(own, studies={**plan.studies, **own.studies}, entries=plan.library)
        write_report(whole, folder, folder / "report.html", folder / "claims.csv")
    return folder / "report.html"


class Reader:
    """A browser that has a page open, and what a reader does with it."""

    def __init__(self, chrome: "Chrome", page: Path) -> None:
        self.chrome, self.page = chrome, page

    def open(self, anchor: str = "") -> "Reader":
        self.chrome.get("about:blank")
        self.chrome.get(f"{self.page.as_uri()}{anchor}")
        return self

    def js(self, code: str, *arguments: Any) -> Any:
        return self.chrome.execute_script(code, *arguments)

    def click(self, selector: str) -> None:
        self.js("const one = document.querySelector(arguments[0]); one.scrollIntoView({block: 'center'});", selector)
        self.chrome.find_element("css selector", selector).click()

    def unfold(self, claim: str) -> None:
        """Show the parts of a claim in the forest plot, which a phone folds."""
        if self.js("return innerWidth") < 600:
            self.click(f"tbody[data-of={claim}] .fold")

    def type(self, words: str) -> None:
        box = self.chrome.find_element("name", "words")
        box.clear()
        box.send_keys(words)

    def choose(self, name: str, value: str) -> None:
        self.js(
            "const form = document.querySelector('#filters'); form[arguments[0]].value = arguments[1];"
            "form[arguments[0]].dispatchEvent(new Event('input', {bubbles: true}));",
            name,
            value,
        )

    def shown(self, kind: str) -> list[str]:
        """The claims or experiments that are not hidden."""
        return list(
            self.js(f"return [...document.querySelectorAll('.{kind}')].filter(one => !one.hidden).map(one => one.id)")
        )

    def wait(self, condition: str) -> Any:
        """The first true value of `condition`, which is not true either while an element that it reads is missing."""
        until = time.monotonic() + 60
        code = f"try {{ return {condition}; }} catch (error) {{ if (!(error instanceof TypeError)) throw error; }}"
        while not (found := self.js(code)):
            assert time.monotonic() < until, condition
            time.sleep(0.05)
        return found

    def errors(self) -> list[str]:
        return headless.complaints(self.chrome)


@pytest.fixture(scope="module", params=headless.WIDTHS)
def chrome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    with headless.chromium(request.param, tmp_path_factory.mktemp("chromium")) as chrome:
        chrome.execute_cdp_cmd("Performance.enable", {})
        yield chrome


@pytest.fixture
def reader(chrome: "Chrome", page: Path) -> Iterator[Reader]:
    """A reader who has just opened the page, and who has seen no error in the end."""
    found = Reader(chrome, page).open()
    yield found
    assert found.errors() == []


@pytest.fixture
def explorer(reader: Reader) -> Reader:
    """A reader who has opened the curves of the run."""
    reader.open("#run-MADE-F1")
    reader.click("#run-MADE-F1 .explorer > summary")
    reader.wait("!!document.querySelector('#run-MADE-F1 .plot-area').view")
    return reader


class TestPage:
    def test_it_opens_within_two_seconds(self, reader: Reader) -> None:
        """In seconds of the clock, or of the processor where others keep it busy."""
        assert reader.js("return document.querySelectorAll('.item').length") > 100
        taken = []
        for _ in range(3):
            reader.open()
            taken.append(reader.wait("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
            metrics = reader.chrome.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            taken += [one["value"] for one in metrics if one["name"] == "ProcessTime"]
        assert len(taken) == 6
        assert min(taken) < 2

    def test_it_is_eight_screens_long_at_most(self, reader: Reader) -> None:
        width, height = reader.js("return [innerWidth, document.documentElement.scrollHeight]")
        assert width in headless.WIDTHS
        assert height <= (8 * 900 if width == 1400 else 16 * 900)

    def test_it_scrolls_in_one_direction(self, reader: Reader) -> None:
        reader.open("#C5")
        assert reader.js("return document.documentElement.scrollWidth <= innerWidth")

    def test_answer_verdicts_search_and_filters_are_on_the_first_screen(self, reader: Reader) -> None:
        if reader.js("return innerWidth") < 600:
            pytest.skip("a phone shows them one below the other")
        for selector in ("#question", ".said img", ".matrix tr:last-child .cell", "[name=words]", "[name=scale]"):
            assert (
                reader.js("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector) < 900
            )

    def test_the_menu_stays(self, reader: Reader) -> None:
        reader.js("scrollTo(0, 3000)")
        assert reader.js("return document.querySelector('header').getBoundingClientRect().top") == 0

    def test_links_resolve(self, reader: Reader) -> None:
        links = reader.js("return [...document.querySelectorAll('a[href]')].map(one => one.href)")
        assert any(link.startswith("data:text/yaml") for link in links)
        links = [link for link in links if not link.startswith("data:")]
        files = {Path(unquote(urlparse(link).path)) for link in links}
        assert {path.suffix for path in files} >= {".html", ".svg", ".png", ".csv", ".parquet", ".json"}
        assert [path for path in files if not path.is_file()] == []
        places = {urlparse(link).fragment for link in links if Path(unquote(urlparse(link).path)) == reader.page}
        known = set(reader.js("return [...document.querySelectorAll('[id]')].map(one => one.id)"))
        assert {unquote(place) for place in places} - known <= {""}


class TestSearch:
    def test_words_find_a_claim(self, reader: Reader) -> None:
        reader.type("forrester STUCK local minimum")
        assert reader.shown("claim") == ["K1"]
        assert reader.js("return document.querySelector('.cell[data-of=K2]').classList.contains('out')")
        assert not reader.js("return document.querySelector('.cell[data-of=K1]').classList.contains('out')")
        assert "1 claims" in reader.js("return document.querySelector('output').textContent")

    def test_words_find_an_experiment_in_a_closed_group(self, reader: Reader) -> None:
        reader.type("seven made-up methods")
        assert reader.shown("experiment") == ["run-MADE-F1"]

    def test_each_verdict(self, reader: Reader) -> None:
        for verdict in set(VERDICTS):
            reader.choose("verdict", slug(verdict))
            assert set(reader.shown("claim")) == set(VERDICTS.index[verdict == VERDICTS])
        reader.js("document.querySelector('#filters').reset()")
        reader.wait(f"document.querySelectorAll('.claim:not([hidden])').length === {len(VERDICTS)}")

    def test_a_verdict_by_its_label(self, reader: Reader) -> None:
        labels = reader.js("return [...document.querySelectorAll('[data-choose]')].map((one) => one.dataset.choose)")
        assert sorted(labels) == sorted(slug(verdict) for verdict in VERDICTS.unique())
        for verdict in VERDICTS.unique():
            reader.click(f"[data-choose={slug(verdict)}]")
            assert set(reader.shown("claim")) == set(VERDICTS.index[verdict == VERDICTS])
            reader.click(f"[data-choose={slug(verdict)}]")
            assert len(reader.shown("claim")) == len(VERDICTS)

    def test_paper_method_and_scale(self, reader: Reader) -> None:
        reader.choose("paper", "localised")
        assert {name[0] for name in reader.shown("claim")} == {"L"}
        reader.choose("method", "OCBO-L")  # not in the experiments of all claims, which LOCBO is
        assert 0 < len(reader.shown("claim")) < 9
        reader.choose("paper", "")
        reader.choose("method", "")
        reader.choose("scale", "desk")
        presets = CLAIMS.drop_duplicates("claim").set_index("claim")["preset"]
        assert set(reader.shown("claim")) == {name for name, preset in presets.items() if "desk" in preset.split(", ")}

    def test_a_link_to_what_is_hidden_shows_it(self, reader: Reader) -> None:
        reader.type("forrester stuck")
        reader.js("location.hash = '#L3'")
        reader.wait("document.querySelector('#L3').open && !document.querySelector('#L3').hidden")


class TestClaims:
    def test_a_cell_of_the_matrix_opens_its_claim(self, reader: Reader) -> None:
        reader.click(".cell[data-of=C5]")
        reader.wait("document.querySelector('#C5').open")
        top = reader.js("return document.querySelector('#C5').getBoundingClientRect().top")
        assert reader.js("return document.querySelector('header').getBoundingClientRect().bottom") <= top < 300

    def test_a_line_of_the_forest_plot_opens_its_claim(self, reader: Reader) -> None:
        reader.unfold("K2")
        reader.click("[data-opens='#K2'] td:nth-child(3)")
        reader.wait("document.querySelector('#K2').open")

    def test_the_forest_plot_has_every_part_with_its_mark(self, reader: Reader) -> None:
        assert (
            reader.js("return document.querySelectorAll('.forest [data-opens] use').length")
            == (CLAIMS["role"] == "primary").sum()
        )

    def test_the_forest_plot_of_a_phone_is_no_scroller(self, reader: Reader) -> None:
        """It shows a line a claim, whose button shows its parts with the numbers of their axis."""
        plot = "document.querySelector('.forest')"
        if reader.js("return innerWidth") > 600:
            assert reader.js(f"return getComputedStyle({plot}.querySelector('.fold')).display") == "none"
            return
        assert reader.js(
            f"return [{plot}.scrollHeight - {plot}.clientHeight, {plot}.scrollWidth - {plot}.clientWidth]"
        ) == [0, 0]
        line = f"{plot}.querySelector('[data-opens=\"#K2\"]')"
        assert reader.js(f"return {line}.offsetHeight") == 0
        reader.unfold("K2")
        assert reader.js(f"return {line}.offsetHeight") > 0
        ticks, button = (f"{plot}.querySelector('[data-of=K2] {one}')" for one in (".ticks", ".fold"))
        assert reader.js(f"return [{ticks}.innerText.split(/\\s+/), {button}.ariaExpanded]") == [
            ["−3", "0", "3"],
            "true",
        ]

    def test_names_of_rows_stay_while_their_numbers_scroll(self, reader: Reader) -> None:
        reader.open("#CBO-F13")
        reader.wait("document.querySelector('#CBO-F13').open")
        cells = "[...document.querySelectorAll('#CBO-F13 table.data tbody tr:first-child td')]"
        reader.js("document.querySelector('#CBO-F13 .scroll').scrollLeft = 150")
        edge = reader.js("return document.querySelector('#CBO-F13 .scroll').getBoundingClientRect().left")
        left = reader.js(f"return {cells}.slice(0, 3).map(one => one.getBoundingClientRect().left)")
        assert left[0] == pytest.approx(edge, abs=1)
        assert left[1] > edge
        assert left[2] < left[1], "the third column went below the second"

    def test_the_keyboard_gets_the_words_that_hovering_shows(self, reader: Reader) -> None:
        reader.unfold("K2")
        reader.js("document.querySelector('[data-opens=\"#K2\"] a').focus()")
        words = reader.js("const tip = document.querySelector('#tip'); return tip.hidden ? '' : tip.textContent")
        assert "calibrated EI minus EI, on Ackley" in words
        assert "p = " in words

    def test_tests_sort_by_p_and_filter(self, reader: Reader) -> None:
        reader.open("#C6")
        heading = "[...document.querySelectorAll('#C6 table.data th button')].find(one => one.textContent === 'p')"
        for up in (True, False):
            reader.js(f"{heading}.click()")
            shown = reader.js(
                "return [...document.querySelectorAll('#C6 table.data')[0].tBodies[0].rows]"
                ".map(row => Number(row.querySelector('[data-value]').dataset.value))"
            )
            assert shown == sorted(shown, reverse=not up)
        assert len(shown) == ((CLAIMS["claim"] == "C6") & (CLAIMS["role"] == "primary")).sum()
        reader.js("document.querySelector('#C6 input').value = 'noisy'")
        reader.js("document.querySelector('#C6 input').dispatchEvent(new Event('input'))")
        some = reader.js("return [...document.querySelector('#C6 tbody').rows].filter(row => !row.hidden).length")
        assert 0 < some < len(shown)


class TestMethodsOfTheAtlas:
    ROWS = "return [...document.querySelectorAll('#standings tbody tr')].map(row => row.cells[0].title)"

    def test_tracks_and_costs_order_them_anew(self, reader: Reader) -> None:
        ranks = pb.atlas("ranks")
        first = reader.js(self.ROWS)
        ranks = ranks[ranks["tasks"] >= ranks.groupby(["track", "cost"])["tasks"].transform("max") / 2]
        every = ranks[ranks["cost"] == ""]
        assert first == every[every["track"] == "all"]["method"].head(len(first)).tolist()
        reader.js("const one = document.querySelector('#standings select'); one.value = 'noisy';")
        reader.js("document.querySelector('#standings select').dispatchEvent(new Event('change'))")
        assert reader.js(self.ROWS)[0] == every[every["track"] == "noisy"]["method"].iloc[0]
        reader.js("const one = document.querySelector('#standings input'); one.value = 1;")
        reader.js("document.querySelector('#standings input').dispatchEvent(new Event('input'))")
        assert reader.js(self.ROWS)[0] == ranks[ranks["cost"] == "1 second"]["method"].iloc[0]
        assert reader.js("return document.querySelector('#standings output').textContent") == "1 second"
        reader.click("#standings > button")
        assert len(reader.js(self.ROWS)) == (ranks["cost"] == "1 second").sum()


class TestFigures:
    @pytest.mark.parametrize("anchor", ["", "#run-MADE-F1", "#CBO-F7"])
    def test_they_open_in_full_width(self, reader: Reader, anchor: str) -> None:
        reader.open(anchor)
        button = f"{anchor or '.said'} button.enlarge"
        reader.wait(f"document.querySelector('{button} img').naturalWidth")
        reader.click(button)
        width = reader.js("return document.querySelector('#lightbox[open] img').getBoundingClientRect().width")
        assert width >= 0.95 * reader.js("return innerWidth")
        reader.click("#lightbox button")
        assert not reader.js("return document.querySelector('#lightbox').open")


def expected(run: list[list[made.Row]], tmp_path: Path) -> Evidence:
    return evidence(made.write(tmp_path / "records.parquet", *run), columns_of(["regret"]))


class TestCurves:
    PLOT = "document.querySelector('#run-MADE-F1 .plot-area')"

    def lines(self, reader: Reader, label: str = "method-3") -> pd.DataFrame:
        points = pd.DataFrame(reader.js(f"return {self.PLOT}.view.data('lines')"))
        return points[points["label"] == label].sort_values("x", kind="stable")

    def set(self, reader: Reader, words: str, value: Any) -> None:
        """Change a control of the curves by its words, and wait until they are drawn anew."""
        reader.js(
            """
            const [words, value] = arguments, at = document.querySelector('#run-MADE-F1 .explorer');
            const label = [...at.querySelectorAll('label')].find(one => one.textContent.trim().startsWith(words));
            const field = label.querySelector('input, select');
            if (field.type === 'checkbox') field.checked = value; else field.value = value;
            at.querySelector('.plot-area').view = null;
            field.dispatchEvent(new Event(field.type === 'range' ? 'input' : 'change', {bubbles: true}));
            """,
            words,
            value,
        )
        reader.wait(f"!!{self.PLOT}.view")

    def test_they_are_means_with_standard_errors(
        self, explorer: Reader, run: list[list[made.Row]], tmp_path: Path
    ) -> None:
        self.set(explorer, "bands", True)
        shown = self.lines(explorer)
        table = by_round(expected(run, tmp_path).trials("task-0", "method-3"), "regret")
        assert shown["middle"].to_numpy() == pytest.approx(table.mean().to_numpy(), rel=1e-3)
        error = (shown["high"] - shown["middle"]).to_numpy()
        assert error == pytest.approx(table.sem().to_numpy(), rel=1e-2)
        assert shown["x"].tolist() == [made.INITIAL + i for i in range(13)]
        assert explorer.js(f"return {self.PLOT}.querySelectorAll('path').length") > len(METHODS)

    def test_a_legend_hides_its_line(self, explorer: Reader) -> None:
        self.set(explorer, "method-3", False)
        assert self.lines(explorer).empty
        assert not self.lines(explorer, "method-2").empty

    def test_time_counts_what_an_evaluation_costs(self, explorer: Reader) -> None:
        self.set(explorer, "against time", True)
        of_method = sum(0.25 + 0.05 * i for i in range(1, 13))
        assert self.lines(explorer)["x"].max() == pytest.approx(of_method, rel=1e-2)
        self.set(explorer, "an evaluation costs", 4)
        assert self.lines(explorer)["x"].max() == pytest.approx((of_method + 10 * (made.INITIAL + 12)) / 60, rel=1e-2)

    def test_axes_and_single_seeds(self, explorer: Reader) -> None:
        for words in ("log values", "log horizontal axis", "single seeds"):
            self.set(explorer, words, True)
        seeds = explorer.js(f"return {self.PLOT}.view.data('seeds').length")
        assert seeds == len(METHODS) * SEEDS * 13
        assert explorer.js(f"return {self.PLOT}.view.scale('y').type") == "log"

    def test_ranks_are_those_of_the_analysis(self, explorer: Reader, run: list[list[made.Row]], tmp_path: Path) -> None:
        self.set(explorer, "show", "ranks")
        found = ranked(expected(run, tmp_path), ("regret",))
        for method in METHODS:
            assert self.lines(explorer, method)["middle"].iloc[-1] == pytest.approx(found.overall("regret", method)[0])

    def test_profiles_count_what_came_near_to_the_best(
        self, explorer: Reader, run: list[list[made.Row]], tmp_path: Path
    ) -> None:
        self.set(explorer, "show", "profile")
        self.set(explorer, "as near to the best as", 3)
        evidence = expected(run, tmp_path)
        near = []
        for task in TASKS:
            regrets = {method: by_round(evidence.trials(task, method), "regret") for method in METHODS}
            start = np.max([table.iloc[:, 0] for table in regrets.values()], axis=0)
            best = np.min([table.min(axis=1) for table in regrets.values()], axis=0)
            near.append((regrets["method-2"].min(axis=1) <= best + 0.03 * (start - best)).mean())
        assert 0 < np.mean(near) < 1
        assert self.lines(explorer, "method-2")["middle"].iloc[-1] == pytest.approx(np.mean(near), abs=0.011)

    def test_means_on_file(self, reader: Reader) -> None:
        reader.open("#CBO-X1")
        reader.click("#CBO-X1 .explorer > summary")
        points = pd.DataFrame(reader.wait("document.querySelector('#CBO-X1 .plot-area').view.data('lines')"))
        curves = pd.read_parquet(ROOT / "results/reference/CBO-X1/CBO-X1-curves.parquet")
        first = curves[(curves["task"] == curves["task"][0]) & (curves["metric"] == curves["metric"][0])]
        last = first.groupby("method", sort=False, observed=True)["mean"].last()
        drawn = points.sort_values("x").groupby("label", sort=False)["middle"].last()
        assert sorted(drawn) == pytest.approx(sorted(last), rel=1e-3)


class TestRoulette:
    def test_draws_have_the_rates_on_file(self, reader: Reader) -> None:
        patterns = CLAIMS.dropna(subset="pattern").drop_duplicates("claim").set_index("claim")["pattern"]
        claims = reader.js("return [...document.querySelectorAll('#roulette option')].map(one => one.value)")
        assert set(claims) == set(patterns.index)
        for claim in claims:
            said = reader.js(
                """
                const place = document.querySelector('#roulette'), choice = place.querySelector('select');
                choice.value = arguments[0];
                choice.dispatchEvent(new Event('change'));
                const often = [...place.querySelectorAll('button')].find(one => one.textContent.includes('1,000'));
                often.click(); often.click();
                return place.querySelector('progress').value;
                """,
                claim,
            )
            assert said == pytest.approx(patterns[claim], abs=0.06), claim

    def test_one_draw_says_what_it_would_have_said(self, reader: Reader) -> None:
        reader.click("#roulette button")
        words = reader.js("return document.querySelector('.said-by-few').textContent")
        assert "as claimed" in words
        assert reader.js("return document.querySelectorAll('#roulette circle.drawn').length") == 5

    def test_a_claim_leads_to_its_draws(self, reader: Reader) -> None:
        reader.open("#L3")
        reader.click("#L3 [data-wheel]")
        assert reader.wait("document.querySelector('#roulette select').value === 'L3'")


AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => `${one.impact}: ${one.id}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' | ')}`)));
"""


@pytest.mark.skipif(not os.environ.get("PLUMBLINE_AXE"), reason="PLUMBLINE_AXE does not name axe.min.js of axe-core")
@pytest.mark.parametrize("state", ["closed", "open"])
def test_axe_finds_nothing_serious(explorer: Reader, state: str) -> None:
    if state == "closed":
        explorer.open()
    else:
        for anchor in ("#C5", "#CBO-F7"):
            explorer.js("location.hash = arguments[0]", anchor)
            explorer.wait(f"document.querySelector('{anchor}').open")
        explorer.js("document.querySelectorAll('#C5 details').forEach(one => { one.open = true; })")
    explorer.js(Path(os.environ["PLUMBLINE_AXE"]).read_text(encoding="utf-8"))
    explorer.chrome.set_script_timeout(60)
    assert explorer.chrome.execute_async_script(AXE) == []


def test_the_keyboard_reaches_everything(reader: Reader) -> None:
    """From the top: the link past the menu, the menu, the search; and Enter opens a claim."""
    from selenium.webdriver.common.keys import Keys

    active: Callable[[], Any] = lambda: reader.chrome.switch_to.active_element  # noqa: E731
    seen = []
    for _ in range(12):
        active().send_keys(Keys.TAB)
        seen.append(active().get_attribute("name") or active().get_attribute("class") or active().get_attribute("href"))
    assert seen[:2] == ["skip", "brand"]
    assert "words" in seen
    reader.js("document.querySelector('.cell[data-of=K4]').focus()")
    active().send_keys(Keys.ENTER)
    reader.wait("document.querySelector('#K4').open")
    assert active().tag_name == "summary"
