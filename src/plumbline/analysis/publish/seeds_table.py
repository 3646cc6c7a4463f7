"""How many seeds a document has, how many it would have needed, and what the difference did, as a table."""

import math
from collections.abc import Iterable

import pandas as pd

from plumbline.analysis.publish.small_samples import in_percent
from plumbline.analysis.publish.verdict_tables import claims_of, seeds_of
from plumbline.statistics.inference import TAIL
from plumbline.statistics.telescope import p_of_telescope
from plumbline.study.experiments import Study

NONE = "–"


def seeds_table(studies: Iterable[Study], claims: pd.DataFrame) -> str:
    """Return a Markdown table, one row per claim that was judged.

    Args:
        studies: whose claims are shown.
        claims: a table of claims.
    """
    head = (
        "| claim | verdict | the paper's seeds | ours | needed | draws that look as claimed | by chance | telescope |"
    )
    lines = [head, "|---|---|--:|--:|--:|--:|--:|---|"]
    primary = claims[claims["role"] == "primary"]
    for name, claim in claims_of(studies):
        tests = primary[primary["claim"] == name]
        if len(tests):
            first = tests.iloc[0]
            rates = [_percent(first["pattern"]), _percent(first["chance"])]
            cells = [name, first["verdict"], str(claim.seeds or NONE), seeds_of(tests), needed(tests), *rates]
            lines.append(f"| {' | '.join([*cells, telescope(tests, claim.seeds)])} |")
    return "\n".join(lines)


def needed(tests: pd.DataFrame) -> str:
    """Return the seeds that the parts take, from the fewest to the most; a dash where nothing says which effect."""
    known = tests["needed"].dropna()
    if known.empty:
        return NONE
    least, most = (f"{end:,.0f}" if math.isfinite(end) else "many" for end in (known.min(), known.max()))
    return least if least == most else f"{least} to {most}"


def telescope(tests: pd.DataFrame, paper: int) -> str:
    """Return of how many parts an effect is excluded that the paper's seeds would have seen one time in three."""
    sided = tests[tests["above"].isna() | tests["below"].isna()]
    sides = sided["below"].isna().map({False: -1.0, True: 1.0})
    found = pd.DataFrame({"effect": sides * sided["effect"], "seeds": sided["seeds"]}).dropna()
    if paper < 2 or found.empty or not (tests["seeds"] > paper).all():
        return NONE
    pairs = zip(found["effect"], found["seeds"], strict=True)
    excluded = [p_of_telescope(float(effect), int(seeds), paper) <= TAIL for effect, seeds in pairs]
    return f"excluded in {sum(excluded)} of {len(excluded)} parts"


def _percent(share: float) -> str:
    return NONE if pd.isna(share) else in_percent(share)
