"""Comparisons as a LaTeX table."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import pandas as pd

from plumbline.analysis.comparisons.numbers import WHY_OPEN, is_open, probability

OPEN = "[--]"
"""In the place of an interval with an open end."""


def latex_table(frame: pd.DataFrame, location: str = "mean") -> str:
    """Return comparisons as a floating table with a caption, for the package booktabs.

    The best method of each metric and task is bold, and so are those that are not significantly different from it.

    Args:
        frame: as `plumbline.api.compare` returns it.
        location: `mean` or `median`: what its numbers are.
    """
    headers = ["method", "seeds", f"{location}, 95\\% interval", "difference, 95\\% interval", "$p$", "Holm"]
    blocks = {}
    for (metric, task), rows in frame.groupby(["metric", "task"], sort=False):
        better = rows["better"].iloc[0]
        blocks[f"{metric} on {task}{f' ({better} is better)' if better else ''}"] = rows
    return floating_table(headers, blocks, caption(frame, location))


def floating_table(headers: Sequence[str], blocks: Mapping[str, pd.DataFrame], words: str) -> str:
    """Return a floating table: under each heading one row per method.

    Args:
        headers: of the six columns.
        blocks: rows by their heading, with the columns `method`, `seeds`, `value`, `low`, `high`, `difference`,
            `difference_low`, `difference_high`, `p`, `p_corrected`, and `among_best`, whose methods are bold.
        words: the caption, in LaTeX; of open intervals it says why they are.
    """
    lines = ["\\begin{table}", "\\centering", "\\begin{tabular}{lrrrrr}", "\\toprule", f"{' & '.join(headers)} \\\\"]
    for heading, rows in blocks.items():
        lines += ["\\midrule", f"\\multicolumn{{6}}{{l}}{{{escaped(heading)}}} \\\\"]
        lines += [f"{' & '.join(_cells(row))} \\\\" for row in rows.to_dict("records")]
    if any(is_open(*ends) for rows in blocks.values() for ends in ends_of(rows)):
        words += f" {OPEN}: {WHY_OPEN}."
    lines += ["\\bottomrule", "\\end{tabular}", f"\\caption{{{words}}}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def ends_of(rows: pd.DataFrame) -> Iterator[tuple[float, float]]:
    """Yield the ends of the intervals of rows, as `floating_table` takes them: of values, then of differences."""
    yield from zip(rows["low"], rows["high"], strict=True)
    yield from zip(rows["difference_low"], rows["difference_high"], strict=True)


def caption(frame: pd.DataFrame, location: str) -> str:
    """Return what the reader has to know of the numbers."""
    baselines = ", ".join(escaped(name) for name in dict.fromkeys(frame["baseline"]) if name)
    return (
        f"{location.capitalize()} over seeds, and {location} difference from {baselines}, paired by seed. "
        "$p$: two-sided, of one comparison; Holm: corrected for all comparisons of the table. "
        "Bold: the best of each metric and task, and the methods that do not differ significantly from it "
        "(level .05, paired test, Holm's correction for all comparisons with the best)."
    )


def escaped(text: str) -> str:
    """Return text in which no character has a meaning to LaTeX."""
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(special.get(one, f"\\{one}" if one in "&%$#_{}" else one) for one in text)


def _cells(row: dict[Hashable, Any]) -> list[str]:
    named = escaped(str(row["method"]))
    if row["among_best"]:
        named = f"\\textbf{{{named}}}"
    value = _estimate(row["value"], row["low"], row["high"], bool(row["among_best"]))
    apart = _estimate(row["difference"], row["difference_low"], row["difference_high"])
    return [named, f"{row['seeds']}", value, apart, _probability(row["p"]), _probability(row["p_corrected"])]


def _estimate(value: float, low: float, high: float, bold: bool = False) -> str:
    if isnan(value):
        return "--"
    number = f"\\mathbf{{{_number(value, 4)}}}" if bold else _number(value, 4)
    if isnan(low):
        return f"${number}$"
    return f"${number}$ {OPEN}" if is_open(low, high) else f"${number}$ $[{_number(low)}, {_number(high)}]$"


def _number(value: float, digits: int = 3) -> str:
    text = f"{value:.{digits}g}".replace("inf", "\\infty")  # of a value: its interval has none
    mantissa, _, power = text.partition("e")
    return f"{mantissa} \\cdot 10^{{{int(power)}}}" if power else text


def _probability(p: float) -> str:
    return "--" if isnan(p) else probability(p).replace("<", "$<$")
