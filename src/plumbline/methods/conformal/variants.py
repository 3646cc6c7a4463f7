"""Departures of CBO's published code from its text, as options (docs/methods/text-against-code.md)."""

from collections.abc import Mapping
from typing import Literal

from plumbline.methods.variants import Json

ConformalDeparture = Literal[
    "damped-walk",
    "best-state",
    "maximum-outside",
    "constant-labels",
    "randomised-sets",
    "stale-model",
    "chance-where-masked",
    "published-class-weights",
]
"""Departures available to every conformal method."""

IncumbentDeparture = Literal["incumbent-of-three-quarters"]
"""The departure of methods that improve on an incumbent; of the later version of the code."""

DEPARTURES: Mapping[str, Json] = {
    "damped-walk": {
        "search": {
            "steps": 99,
            "burn_in": 31,
            "half_period": 25,
            "friction": 0.1,
            "cooled": True,
            "bounds": "walls",
            "raw_samples": 128,
        }
    },
    "best-state": {"search": {"burn_in": 31, "asks_for": "best"}},
    "maximum-outside": {"posterior": {"maximum": "outside"}},
    "constant-labels": {"posterior": {"labels_in_gradient": "constant"}},
    "randomised-sets": {"randomised": True},
    "stale-model": {"stale": True, "ratio": {"ema": 0.0}},
    "chance-where-masked": {"worthless": "chance"},
    "published-class-weights": {"ratio": {"classes": "published"}},
    "incumbent-of-three-quarters": {"incumbent_share": 0.75},
}
"""The options that each departure sets."""

CODE: tuple[ConformalDeparture, ...] = ("damped-walk", "best-state", "maximum-outside", "constant-labels")
"""Departures of the published search."""
