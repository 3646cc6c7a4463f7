"""The site: pages of docs/, and one a claim, an experiment and a folder of the package. `make docs` builds it."""

import builtins
import re
import sys
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import getLogger

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "src"))

import plumbline.tracking.live  # noqa: E402, F401 (autodoc imports with TYPE_CHECKING set, which FastAPI does not survive)
from plumbline.analysis.outputs.style import verdict_styles  # noqa: E402
from plumbline.analysis.publish.api_pages import write_api_pages  # noqa: E402
from plumbline.analysis.publish.claim_pages import write_claim_pages  # noqa: E402
from plumbline.analysis.publish.experiment_pages import write_experiment_pages  # noqa: E402
from plumbline.analysis.publish.pages import write_pages  # noqa: E402
from plumbline.core.files import write_text  # noqa: E402
from plumbline.study.plan import load_plan  # noqa: E402
from plumbline.study.settings import read_config  # noqa: E402

logger = getLogger(__name__)

project = "plumbline"
author = "the plumbline developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "replies", "templates"]
html_theme = "furo"
html_title = "plumbline"
html_static_path = ["_static"]
html_css_files = ["verdicts.css", "site.css"]
html_js_files = [("filter.js", {"defer": "defer"})]
html_math_renderer = "mathml"  # MathJax would come from a network
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4

add_module_names = False
default_role = "code"  # docstrings have single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none, and looking for them takes a tenth of the time
autodoc_default_options = {"members": True, "show-inheritance": True, "exclude-members": "model_config"}
napoleon_use_ivar = True
napoleon_use_rtype = False

REPOSITORY = {path: f"repository/{path.stem.lower()}" for path in ROOT.glob("*.md") if path.stem != "README"} | {
    path: f"repository/{path.parent.name}" for path in ROOT.glob("[!.]*/README.md") if path.parent != DOCS
}
"""Markdown files outside docs/, and their pages."""

WORDS, PROSE = 12, 40
"""Letters above which a cell of a table has several words, and is prose."""

NAME = re.compile(r"\S{1,24}")
"""Code that is a name, which is read in one piece."""

NUMBERS = re.compile(r"(?:[-–]?[\d.,]+(?:e[-+]?\d+)?%?|to|±|[()\s])+")
"""An estimate with its interval, which is too: `-.009 (-.017 to -.002)`."""

MENTION = re.compile(r"\b(?:[KCLAS]\d{1,2}|(?:CAL|CBO|LOCBO|AABO|BOWH|ATLAS)-[\w-]*\w)\b")
"""The name of a claim or of an experiment."""

WITH_MENTIONS = re.compile(r"index|(?:results|claims|experiments)/.*|repository/changelog")
"""Pages on which these names lead to the pages of what they name."""

UNLINKED = (nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.math, nodes.raw)
"""Where they do not."""

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def page_of(path: Path) -> str | None:
    """The page that stands for a file or folder of the repository, as a path from docs/; None where none does."""
    if path == ROOT / "README.md":
        return "index.md"
    if path in REPOSITORY:
        return f"{REPOSITORY[path]}.md"
    if path.is_relative_to(DOCS) or path.suffix in {".png", ".svg"}:
        return relpath(path, DOCS)
    if path.is_relative_to(ROOT / "src" / "plumbline"):
        folder = path if path.is_dir() else path.parent
        return f"api/{'.'.join(folder.relative_to(ROOT / 'src').parts)}.rst"
    if path == ROOT / "results" / "reference":
        return "experiments/index.md"
    if path.parent == ROOT / "results" / "reference" and path.is_dir():
        return f"experiments/{path.name}.md"
    return relpath(path, DOCS) if path.is_file() else None


def rewritten(text: str, source: Path, page: Path) -> str:
    """Markdown written at `source`, with links that work from `page`; those to folders without a page are dropped."""

    def target(link: re.Match[str]) -> str:
        before, to, anchor, after = link[1], link[2], link[3] or "", link[4]
        path = (source.parent / to).resolve()
        if ":" in to or not path.exists() or not path.is_relative_to(ROOT):
            return link[0]
        found = page_of(path)
        if found is None:
            return "]{.folder}"
        return f"{before}{relpath(DOCS / found, page.parent)}{anchor if found.endswith('.md') else ''}{after}"

    return LINK.sub(target, text)


def rewrite_page(app: Sphinx, name: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md":
        content[0] = rewritten(content[0], page, page)


def rewrite_included(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    content[0] = rewritten(content[0], (DOCS / path).resolve(), Path(app.env.doc2path(app.env.docname)))


def escape_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Asterisks, bars and last underscores mean themselves, except between backticks and in formulas."""
    parts = re.split(r"(`[^`]*`|\.\. math::.*(?:\n+ +.*)*)", "\n".join(lines))
    parts[::2] = [re.sub(r"(?<!^)(?<!\n)[*|]|_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")
    if what == "class":  # napoleon takes the first of `low, high: both ends` for the type of the second
        lines[:] = [
            re.sub(r"^ +\w+(?:, \w+)+(?=: )", lambda names: names[0].replace(", ", ","), line) for line in lines
        ]
    if what in {"attribute", "data", "property"}:
        lines.insert(0, "\\ ")  # shows nothing; napoleon takes what precedes a colon in the first line for a type


def skip_field(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Fields of a named tuple stand among its attributes; by themselves Python calls them aliases of numbers."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def unlink_builtins(app: Sphinx, doctree: nodes.document) -> None:
    """The type `range` of an annotation is Python's, not an attribute of that name."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") == "py" and hasattr(builtins, node["reftarget"]):
            node.replace_self(node.children)


class CachedPythonDomain(PythonDomain):
    """Python's domain, which looks through all names of the package once for each short name, not for each mention."""

    name = "py"

    def __init__(self, env: BuildEnvironment) -> None:
        super().__init__(env)
        self._searched: dict[tuple[object, ...], list[tuple[str, ObjectEntry]]] = {}

    def find_obj(
        self, env: BuildEnvironment, modname: str, classname: str, name: str, type: str | None, searchmode: int = 0
    ) -> list[tuple[str, ObjectEntry]]:
        asked = modname, classname, name, type, searchmode, len(self.objects)
        if asked not in self._searched:
            self._searched[asked] = super().find_obj(env, modname, classname, name, type, searchmode)
        return self._searched[asked]


def mark_cells(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Cells of several words get a class, by which they stay wide enough to be read; numbers and names get others."""
    for entry in doctree.findall(nodes.entry):
        text = entry.astext()
        if NUMBERS.fullmatch(text):
            entry["classes"].append("numbers")
        elif len(text) > WORDS and " " in text:
            entry["classes"].append("prose" if len(text) > PROSE else "words")
        for code in entry.findall(nodes.literal):
            if NAME.fullmatch(code.astext()):
                code["classes"].append("name")


def stack_tables(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Tables with two columns of prose become cards on a phone, where each cell begins with the head of its column."""
    for table in doctree.findall(nodes.table):
        heads = [cell.astext() for head in table.findall(nodes.thead) for cell in head.findall(nodes.entry)]
        rows = [
            list(row.findall(nodes.entry)) for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)
        ]
        prose = {place for row in rows for place, cell in enumerate(row) if "prose" in cell["classes"]}
        if len(prose) < 2 or not heads:
            continue
        table["classes"].append("cards")
        for row in rows:
            for head, cell in list(zip(heads, row, strict=True))[1:]:
                if head and cell.astext():
                    cell[0].insert(0, nodes.inline("", f"{head}: ", classes=["head-of-cell"]))


def link_mentions(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Names of claims and experiments lead to their pages, except in headings, code and what is a link already."""
    if not WITH_MENTIONS.fullmatch(name):
        return
    for text in list(doctree.findall(nodes.Text)):
        if text.parent is None or any(isinstance(node, UNLINKED) for node in _above(text)):
            continue
        parts, end, words = [], 0, text.astext()
        for found in MENTION.finditer(words):
            pages = (f"claims/{found[0]}", f"experiments/{found[0]}")
            page = next((one for one in pages if one in app.env.found_docs), "")
            if page in ("", name):
                continue
            to = app.builder.get_relative_uri(name, page)
            link = nodes.reference("", found[0], refuri=to, internal=True, classes=["mention"])
            parts += [nodes.Text(words[end : found.start()]), link]
            end = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(words[end:])])


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def link_images(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Images lead to their files, where a phone enlarges them, and say how large they are, before they are loaded.

    Sphinx does both for those that have a scale.
    """
    for image in doctree.findall(nodes.image):
        image["scale"] = 100


def write_mathml(translator: nodes.NodeVisitor, node: nodes.Element) -> None:
    block = isinstance(node, nodes.math_block)
    formula = node.astext().replace(r"\arg", r"\operatorname{arg}").replace("{aligned}", "{split}")  # unknown to it
    mathml = convert(formula, display="block" if block else "inline")
    if unknown := re.search(r"\\[A-Za-z]+|<mi>&</mi>", mathml):  # a tab stop that stands for itself
        logger.warning("unknown command %s in the formula %s", unknown[0], formula, location=node)
    translator.body.append(f'<div class="math">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


def generate(app: Sphinx) -> None:
    """Write the pages of claims, experiments, the package and the Markdown files of the repository."""
    first = read_config(ROOT / "config" / "config.yaml").studies
    others = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml") if path.stem not in first)
    plan = load_plan({"preset": "paper", "data": "real", "studies": [*first, *others]}, ROOT)
    reference = ROOT / "results" / "reference"
    studies = list(plan.studies.values())
    write_claim_pages(studies, plan.library, reference, DOCS / "claims", DOCS / "replies")
    write_experiment_pages(studies, plan.library, reference, ROOT / "results" / "atlas", DOCS / "experiments")
    write_api_pages(ROOT / "src" / "plumbline", DOCS / "api")
    included = {
        f"{Path(page).name}.md": f"```{{include}} ../../{path.relative_to(ROOT)}\n```\n"
        for path, page in REPOSITORY.items()
    }
    write_pages(included, DOCS / "repository")
    write_text(DOCS / "_static" / "verdicts.css", verdict_styles())


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_domain(CachedPythonDomain, override=True)
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
    app.connect("builder-inited", generate)
    app.connect("source-read", rewrite_page)
    app.connect("include-read", rewrite_included)
    app.connect("doctree-read", unlink_builtins)
    app.connect("doctree-resolved", mark_cells)
    app.connect("doctree-resolved", stack_tables)
    app.connect("doctree-resolved", link_mentions)
    app.connect("doctree-resolved", link_images)
    app.connect("autodoc-skip-member", skip_field)
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
    return {"parallel_read_safe": True}
