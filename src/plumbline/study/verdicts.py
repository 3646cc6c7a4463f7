"""The names of verdicts on claims and of the outcomes of their parts, each with its meaning.

The only list of them: `plumbline.analysis.verdicts.verdict` has the rule, docs/results/verdict-rule.md its error rates.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

Outcome = Literal["holds", "fails", "too small", "open", "cannot show"]
"""What a part of a test comes to."""

Undecidable = Literal["cannot fail", "does not apply"]
"""Verdicts on claims that no trial can decide."""

Verdict = Literal[
    "reproduced",
    "partly",
    "mixed",
    "not reproduced",
    "smaller than published",
    "too small to matter",
    "inconclusive at this scale",
    "cannot fail",
    "does not apply",
]
"""What is said of a claim."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order of tables and legends."""

UNDECIDABLE: tuple[Undecidable, ...] = get_args(Undecidable)

OUTCOME_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "holds": "Such data are improbable if the part is false.",
        "fails": "Such data are improbable if the part is true.",
        "too small": "Its sign is open, and an effect that matters is excluded.",
        "open": "These data cannot tell.",
        "cannot show": "No data from these runs could show the part, or refute it.",
    }
)

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "reproduced": "Every part of the primary test holds.",
        "partly": "Some parts hold and none fails; or all that were run hold, and others were not run.",
        "mixed": "Some parts hold and others fail.",
        "not reproduced": "No part holds, and at least one fails.",
        "smaller than published": "No part fails, and an effect of the published size is excluded; a smaller one may be.",
        "too small to matter": "No part holds or fails, and in every part an effect that matters is excluded.",
        "inconclusive at this scale": "No part holds or fails, and no size is excluded: these data cannot tell.",
        "cannot fail": "The claim is true of any data, so no experiment can refute it.",
        "does not apply": "The claim is about something that this study does not run.",
    }
)
