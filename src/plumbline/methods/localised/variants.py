"""Departures of LOCBO's two published scripts from its text, as options (docs/methods/text-against-code.md)."""

from collections.abc import Mapping
from typing import Literal, get_args

from plumbline.methods.variants import Json

OnlineDeparture = Literal[
    "judged-standardised",
    "judged-conditioned",
    "default-priors",
    "raw-inputs",
    "late-counting",
    "more-raw-samples",
    "refits-every-tenth-round",
    "ackley-forgetting",
]
"""Departures available to every method with online conformal prediction."""

PosteriorDeparture = Literal[
    "coded-tails",
    "coded-density",
    "zero-mean-labels",
    "redrawn-integral",
    "extreme-thresholds",
    "reflected-thresholds",
    "best-query",
]
"""Departures of LOCBO's posterior, and of the expected improvement under it."""

DEPARTURES: Mapping[str, Json] = {
    "judged-standardised": {"coverage_protocol": "standardised-with-it"},
    "judged-conditioned": {"coverage_protocol": "conditioned-on-it"},
    "default-priors": {"model": {"priors": "botorch-0.9", "ard": True}},
    "raw-inputs": {"model": {"inputs": "raw"}},
    "late-counting": {"online": {"counted_from": 2}},
    "more-raw-samples": {"search": {"raw_samples": 512}},
    "refits-every-tenth-round": {"refit_every": 10},
    "ackley-forgetting": {"online": {"forgetting": 4e-3}},
    "coded-tails": {"tails": "as-coded"},
    "coded-density": {"inside": "as-coded"},
    "zero-mean-labels": {"label_mean": "zero"},
    "redrawn-integral": {"integral": "redrawn"},
    "extreme-thresholds": {"extremes": "ackley-script"},
    "reflected-thresholds": {"extremes": "radio-script"},
    "best-query": {"incumbent": "queries"},
}
"""The options that each departure sets."""

ONLINE_DEPARTURES = {name: DEPARTURES[name] for name in get_args(OnlineDeparture)}

ONLINE_CODE: tuple[OnlineDeparture, ...] = (
    "judged-standardised",
    "default-priors",
    "raw-inputs",
    "late-counting",
    "more-raw-samples",
)
"""Departures of the script for Ackley's function, of every method."""

CODE: tuple[OnlineDeparture | PosteriorDeparture, ...] = (
    *ONLINE_CODE,
    "coded-tails",
    "zero-mean-labels",
    "redrawn-integral",
    "extreme-thresholds",
)
"""All departures of the script for Ackley's function."""
