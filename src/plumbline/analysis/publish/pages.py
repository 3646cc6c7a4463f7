"""Pages of the site as Markdown: templates, and files that are rewritten only where they differ."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from plumbline.analysis.comparisons.numbers import ends_in_words
from plumbline.analysis.publish.markdown import cell, duration, escaped, number, sentence, table, with_bold
from plumbline.core.files import write_text
from plumbline.study.verdicts import slug, unbroken


def label(words: str, mark: str = "") -> str:
    """A label whose colour goes with its words: of a verdict, the outcome of a test, or the state of an experiment.

    A `mark` stands after the words.
    """
    return f"[{unbroken(words)}{mark and chr(0xA0) + mark}]{{.label .{slug(words)}}}"


def template_text(name: str) -> str:
    """The text of a template of the package."""
    return package_files("plumbline.analysis").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """Templates of Markdown pages, with the filters of this module."""
    found = Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters.update(
        number=number,
        duration=duration,
        ends=lambda ends: ends_in_words(ends[0], ends[1], number),
        escaped=escaped,
        cell=cell,
        bold=with_bold,
        label=label,
        sentence=sentence,
        table=table,
    )
    return found


def html_environment() -> Environment:
    """Templates of HTML pages: what is filled in is text, and no markup."""
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **content: Any) -> str:
    """A page made of a template of the package."""
    return environment().get_template(template).render(**content)


def write_pages(pages: Mapping[str, str], folder: Path) -> None:
    """Write `pages` by file name into `folder`, which has no other files afterwards; a page that is the same stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.is_file() and old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)


def listed(words: Iterable[str]) -> str:
    """Words in a sentence: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
