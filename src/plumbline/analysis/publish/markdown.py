"""Text in Markdown that shows as it was written: cells of tables, sentences, titles."""

import re
from typing import Any

import pandas as pd

from plumbline.analysis.comparisons.numbers import significant

MARKUP = re.compile(r"[\\`*<>\[\]{}|~$&]|(?<![^\W_])_|_(?![^\W_])")
"""What means something else than itself inside of a line; an underscore inside of a word means itself."""

BLOCK = re.compile(r"^(?:(\d+)(?=[.)](?:\s|$))|(?=[-+#=:]))")
"""What would begin a list, a heading or a directive at the start of a line."""


def number(value: Any) -> str:
    """A cell of a table: four significant digits for numbers, a dash for what is not there."""
    return significant(value, 4) if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return a time in the unit that people would name it in: `5.9 s`, `12 min`, `3.4 h`."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{significant(seconds / size, 3)} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def escaped(text: str) -> str:
    """Text in one line, in which no character is markup: of Markdown, of HTML or of a formula."""
    return BLOCK.sub(r"\1\\", cell(text))


def cell(value: Any) -> str:
    """A cell of a Markdown table: text as `escaped` makes it, but for what means something at the start of a line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(number(value).split()))


def with_bold(text: str) -> str:
    """A cell of a Markdown table in which `**bold**` is the only markup."""
    return cell(text).replace(r"\*\*", "**")


def sentence(text: str) -> str:
    """Text that begins with a capital and ends with a full stop."""
    text = " ".join(text.split())
    return escaped(text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else "."))


def table(frame: pd.DataFrame) -> str:
    """A Markdown table, numbers aligned to the right."""
    numeric = [pd.api.types.is_numeric_dtype(column) for _, column in frame.items()]
    rows = [[cell(name) for name in frame], ["--:" if one else "---" for one in numeric]]
    rows += [[cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
