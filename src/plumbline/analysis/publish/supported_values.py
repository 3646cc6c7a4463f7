"""The values of an estimate that support a claim, in words."""

from collections.abc import Mapping

import pandas as pd

from plumbline.analysis.verdicts.part_results import describe
from plumbline.study.claims import Claim, ClaimTest


def supports(test: ClaimTest) -> str:
    """The values of a statistic that support the claim."""
    if test.range is not None:
        return f"{test.range[0]:g} to {test.range[1]:g}"
    return f"{'above' if test.direction == 'greater' else 'below'} {test.threshold:g}"


def supported_by(claim: Claim) -> dict[str, str]:
    """The values that support a claim, by the words that the table of claims has for each test."""
    return {describe(test): supports(test) for test in claim.tests}


def supports_if(tests: pd.DataFrame, supported: Mapping[str, str]) -> str:
    """Return which values of an estimate support the claim, from rows of the table of claims.

    Args:
        tests: rows of parts that measure the same quantity.
        supported: the values of each test; of one that is not there, as its study has it no longer, nothing is said.
    """
    values = dict.fromkeys(supported[one] for one in tests["statistic"] if one in supported)
    words = [one if one.startswith(("above", "below")) else f"within {one}" for one in values]
    return f"supports if {' or '.join(words)}" if words else ""
