"""Pages of the site on a desk and on a phone, in headless Chromium: `pytest -m browser`.

Some pages of each kind are built: prose, claims, experiments with results and without, lists of both, figures, fields.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import headless
import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("_build", "replies", "templates", "api", "claims/[!Ci]*", "experiments/[!Bi]*", "**/*.ipynb")
"""What is not built: the pages of the package take most of the time."""

PAGES = (
    *("index", "genindex", "claims/index", "claims/C6", "experiments/index", "experiments/BOWH-2"),
    *("experiments/BOWH-8", "guide/figures", "guide/problems", "guide/extending", "methods/index", "methods/conformal"),
    *("results/index", "results/atlas", "repository/config"),
)

pytestmark = headless.marks()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, one_core: dict[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["-Q", "-b", "html", "-D", f"exclude_patterns={','.join(LEFT_OUT)}"]
    subprocess.run([sys.executable, "-m", "sphinx", *options, "docs", str(folder)], cwd=ROOT, env=one_core, check=True)
    return folder


@pytest.fixture(scope="module", params=headless.WIDTHS)
def chrome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    with headless.chromium(request.param, tmp_path_factory.mktemp("chromium")) as chrome:
        yield chrome


LOOK = """
const inside = '.table-wrapper *, pre *, .math *, .table-wrapper, pre, .math, nav *, aside *, :has(> img)';
const all = selector => [...document.querySelectorAll(selector)].filter(one => one.getBoundingClientRect().width > 0);
return {
  sideways: document.documentElement.scrollWidth > innerWidth,
  scrolling: all(`body :not(${inside})`).filter(one => one.scrollWidth > one.clientWidth + 1
    && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)).map(one => one.className),
  images: all('article img').filter(one => !one.naturalWidth || !one.alt || !one.getAttribute('height')
    || !one.closest('a') || one.closest('a').getBoundingClientRect().right > innerWidth).map(one => one.src),
  headings: all('article h1').length,
  broken: all('td code.name').filter(one => one.getClientRects().length > 1).map(one => one.textContent),
};
"""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_wide_as_the_screen(chrome: "Chrome", site: Path, page: str) -> None:
    """Tables, code, formulas and wide images scroll within themselves, images lead to their files, and names are in one
    piece."""
    chrome.get((site / f"{page}.html").as_uri())
    found = chrome.execute_script(LOOK)
    assert found == {"sideways": False, "scrolling": [], "images": [], "headings": 1, "broken": []}
    assert headless.complaints(chrome) == []


def test_cells_say_what_they_hold(site: Path) -> None:
    text = (site / "guide" / "problems.html").read_text(encoding="utf-8")
    assert '<code class="name docutils literal notranslate"><span class="pre">forrester</span>' in text
    assert '<td class="prose"><p>Forrester, Sobester' in text
    assert '<td class="words"><p>[-5, 10] x [0, 15]' in text
    assert '<td class="numbers"><p>3.8628, 3.3224' in text


def test_on_a_phone_tables_of_prose_are_cards_and_figures_keep_their_letters(chrome: "Chrome", site: Path) -> None:
    narrow = chrome.execute_script("return innerWidth") < 600
    chrome.get((site / "results" / "index.html").as_uri())
    looks = "return getComputedStyle(document.querySelector('{}')).display"
    assert chrome.execute_script(looks.format("table.cards td")) == ("block" if narrow else "table-cell")
    assert chrome.execute_script(looks.format(".head-of-cell")) == ("inline" if narrow else "none")
    chrome.get((site / "index.html").as_uri())
    width = chrome.execute_script("return document.querySelector('article img').getBoundingClientRect().width")
    assert width >= 600
