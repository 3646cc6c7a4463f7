"""Pages of the site as Markdown: templates, cells of tables, and files that are rewritten only where they differ."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from plumbline.analysis.publish.report import number
from plumbline.core.files import write_text


def cell(value: Any) -> str:
    """A cell of a Markdown table: one line, its bars escaped."""
    return " ".join(number(value).split()).replace("|", "\\|")


def slug(words: str) -> str:
    """The name of a style: `not-reproduced`."""
    return words.replace(" ", "-")


def label(words: str) -> str:
    """A label whose colour goes with its words: of a verdict, the outcome of a test, or the state of an experiment."""
    return f"[{words}]{{.label .{slug(words)}}}"


def sentence(text: str) -> str:
    """Text that begins with a capital and ends with a full stop."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def table(frame: pd.DataFrame) -> str:
    """A Markdown table, numbers aligned to the right."""
    rules = ["--:" if pd.api.types.is_numeric_dtype(frame[name]) else "---" for name in frame]
    rows = [[cell(name) for name in frame], rules]
    rows += [[cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


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
    found.filters.update(number=number, cell=cell, label=label, sentence=sentence, table=table)
    return found


def render(template: str, **content: Any) -> str:
    """A page made of a template of the package."""
    return environment().get_template(template).render(**content)


def write_pages(pages: Mapping[str, str], folder: Path) -> None:
    """Write `pages` by file name into `folder`, which holds no others afterwards; a page that is the same stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)


def listed(words: Iterable[str]) -> str:
    """Words in a sentence: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
