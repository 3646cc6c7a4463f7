"""Options with which every registered method is tested; those of a method registered later are found."""

from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from situations import QUICK, QUICK_ASCENT, QUICK_CONFORMAL

from plumbline.methods.base import methods

CALIBRATED = [
    {"base": "ei"},
    {"base": "logei", "splits": "time-series", "recalibrator": "isotonic"},
    {"base": "pi", "recalibrator": "none"},
    {"base": "nei", "splits": "time-series", "refit": False},
    {"base": "ucb", "recalibrator": "isotonic", "refit": False},
    {"base": "ts", "refit": False},
    {"base": "kg", "refit": False},
    {"base": "jes", "refit": False},
]
"""Every base, every way to split and to forecast, and every recalibrator at least once."""

SCRIPTS = [
    {"coverage_protocol": "standardised-with-it", "extremes": "ackley-script", "label_mean": "zero"},
    {"coverage_protocol": "conditioned-on-it", "extremes": "radio-script", "inside": "as-coded", "tails": "as-coded"},
]
"""What LOCBO's published scripts do otherwise, but for a utility that is another one at each call."""

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "locbo": [
        QUICK,
        {**QUICK, **SCRIPTS[0], "model": {"priors": "botorch-0.9", "inputs": "raw"}},
        {**QUICK, **SCRIPTS[1], "model": {"priors": "botorch-0.9"}, "incumbent": "queries", "refit_every": 2},
    ],
    "calibrated": [{**options, "base": {"name": options["base"], "options": QUICK}} for options in CALIBRATED],
    "trust-region": [
        {"base": {"name": "ucb", "options": QUICK}},
        {"base": {"name": "cucb", "options": QUICK_CONFORMAL}},
        {"base": {"name": "locbo", "options": QUICK}},
        {"base": {"name": "kg-sgd", "options": QUICK_ASCENT}},
        {"base": {"name": "mes", "options": QUICK}},
        {"base": {"name": "calibrated", "options": {"base": {"name": "ei", "options": QUICK}}}},
    ],
    "informed-search": [
        {"base": {"name": "logei", "options": QUICK}},
        {"base": {"name": "trust-region", "options": {"base": {"name": "ucb", "options": QUICK}}}},
    ],
    "audited-search": [
        {"base": {"name": "ei", "options": QUICK}, "audit": {"name": "logei", "options": QUICK}},
        {
            "base": {"name": "trust-region", "options": {"base": {"name": "ucb", "options": QUICK}}},
            "audit": {"name": "informed-search", "options": {"base": {"name": "ucb", "options": QUICK}}},
        },
    ],
    "exploit": [
        {"base": {"name": "jes", "options": QUICK}},
        {"base": {"name": "ei", "options": QUICK}, "gamma": 1.0},
        {"base": {"name": "ocbo", "options": QUICK}, "gamma": 1.0},
        {"base": {"name": "calibrated", "options": {"base": {"name": "ucb", "options": QUICK}}}, "gamma": 1.0},
    ],
    "kernel-selection": [
        {"base": {"name": "ucb", "options": QUICK}},
        {"base": {"name": "ts", "options": QUICK}, "criterion": "random", "kernels": ["matern12", "matern32"]},
        {"base": {"name": "cucb", "options": QUICK_CONFORMAL}, "criterion": "bic"},
        {"base": {"name": "locbo", "options": QUICK}, "criterion": "leave-one-out"},
        {"base": {"name": "hedge", "options": {**QUICK, "members": ["ei", "ucb"]}}},
    ],
    "shrinking-lengthscales": [
        {"base": {"name": "ucb", "options": QUICK}, "norm": {}},
        {"base": {"name": "ei", "options": QUICK}, "power": 0.5},
        {"base": {"name": "cei", "options": QUICK_CONFORMAL}},
        {"base": {"name": "kernel-selection", "options": {"base": {"name": "nei", "options": QUICK}}}},
        {"base": {"name": "relay", "options": {**QUICK, "members": ["pi", "kg"]}}},
    ],
    "kg-sgd": [QUICK_ASCENT],
    "hedge": [{**QUICK, "members": ["ei", "ucb", "ts"]}, {**QUICK, "members": ["mes", "kg-sgd", "ei"]}],
    "relay": [{**QUICK, "members": ["nei", "ucb"], "patience": 2}],
    "roulette": [{**QUICK, "members": ["ts", "ucb", "pi"], "factor": 3.0}],
    "cjes": [
        {"search": QUICK["search"], "optima": 3},
        {"search": QUICK["search"], "optima": 3, "decoupled": True, "costs": [1.0, 10.0]},
    ],
    "botorch-acquisition": [
        QUICK,
        {**QUICK, "acquisition": "botorch.acquisition:qUpperConfidenceBound", "arguments": {"beta": 2.0}},
        {**QUICK, "acquisition": "botorch.acquisition.logei.qLogNoisyExpectedImprovement"},
    ],
    "ask-tell": [{"optimiser": "ask_tell_cases:Steps"}, {"optimiser": "ask_tell_cases:Batch", "minimise": True}],
    "botorch-loop": [{"num_restarts": 2, "raw_samples": 16}],
    "optuna": [{"sampler": "tpe"}, {"sampler": "gp"}],
    "skopt": [{"acquisition": "gp_hedge"}, {"acquisition": "EI"}],
    "offline": [{}, {"sets": "credible"}, {"density_ratio": "classifier", "ratio": QUICK_CONFORMAL["ratio"]}],
}
"""Options of the methods that cannot be built from none, or that are several methods in one."""

WITHOUT_MODEL = {"random", "sobol", "optuna", "cma-es", "skopt", "ax", "bayesian-optimization", "smac", "ask-tell"}
"""Methods that predict nothing."""

OF_TWO_OUTCOMES = {"ehvi", "nehvi", "cehvi", "cnehvi"}
"""Methods that need several outcomes and a reference point."""

CONSTRAINED = {"eic", "epbo", "cjes"}
"""Methods for one objective under constraints."""


Case = tuple[str, dict[str, Any] | None]
"""The name of a method, and its options."""


def outcomes_for(name: str) -> dict[str, Any]:
    """Return what a situation is told of the outcomes that a method can make use of."""
    if name in CONSTRAINED:
        return {"outcomes": 2, "second": "at_least_zero"}
    return {"outcomes": 2 if name in OF_TWO_OUTCOMES else 1}


def examples_of(name: str) -> list[dict[str, Any] | None]:
    if name in EXAMPLES:
        return list(EXAMPLES[name])
    options = methods[name].options
    for values in (QUICK, QUICK_CONFORMAL):
        quick = {field: value for field, value in values.items() if field in options.model_fields}
        with suppress(ValidationError):
            options.model_validate(quick)
            return [quick]
    return [None]


CASES: list[Case] = [(name, options) for name in methods.entries() for options in examples_of(name)]
