"""The names of verdicts on claims and of the outcomes of their parts, each with its meaning and its looks.

The only list of them: `plumbline.analysis.verdicts.verdict` has the rule, docs/results/verdict-rule.md its error rates.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

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
        "smaller than published": "No part fails; effects as large as published are excluded, but not all smaller.",
        "too small to matter": "No part holds or fails, and in every part an effect that matters is excluded.",
        "inconclusive at this scale": "None of the above: these data cannot tell.",
        "cannot fail": "The claim is true of any data, so no experiment can refute it.",
        "does not apply": "The claim is about something that this study does not run.",
    }
)


class Look(NamedTuple):
    """How a verdict or an outcome looks in figures, tables and pages.

    Attributes:
        shape: a sign that most fonts have.
        colour: its name in the palette of figures; empty for white.
        brief: what it is called where there is little room; empty for its name.
    """

    shape: str
    colour: str = ""
    brief: str = ""


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "reproduced": Look("◆", "blue"),
        "partly": Look("◐", "yellow"),
        "mixed": Look("◧", "purple"),
        "not reproduced": Look("■", "red"),
        "smaller than published": Look("▼", "orange"),
        "too small to matter": Look("●", "pink", "too small"),
        "inconclusive at this scale": Look("○", "grey", "inconclusive"),
        "cannot fail": Look("△"),
        "does not apply": Look("□"),
        "holds": Look("◆", "blue"),
        "fails": Look("■", "red"),
        "too small": Look("●", "pink"),
        "open": Look("○", "grey"),
        "cannot show": Look("△"),
    }
)
"""Of verdicts and outcomes; shape and colour go together."""


def with_shape(word: str) -> str:
    """A verdict or an outcome with its shape before it; other words as they are."""
    return f"{LOOKS[word].shape} {word}" if word in LOOKS else word


def unbroken(word: str) -> str:
    """The same on a line of its own: shape and word are not parted where a page is narrow."""
    return with_shape(word).replace(" ", "\u00a0", 1) if word in LOOKS else word


def brief(word: str) -> str:
    """What a verdict or an outcome is called where there is little room."""
    return LOOKS[word].brief or word


def slug(words: str) -> str:
    """The name of the style of some words: `not-reproduced`."""
    return words.replace(" ", "-")
