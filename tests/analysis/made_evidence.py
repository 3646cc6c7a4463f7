"""Evidence with curves that are known beforehand, written and read as the pipeline does it.

Whoever adds a kind of figure or table adds an example of its options to `FIGURES` or `TABLES`; for a figure of an
illustration, an example of its table to `ILLUSTRATED`.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow

from plumbline.analysis.evidence.evidence import Evidence, evidence
from plumbline.analysis.verdicts.criterion import criterion
from plumbline.core.options import parse
from plumbline.data.datasets import Dataset
from plumbline.store import records
from plumbline.study.claims import ClaimTest
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import parse_methods_and_tasks
from plumbline.study.plan import Plan
from plumbline.study.settings import Config

Row = dict[str, Any]
Curve = Callable[[int, int], float]

ALPHAS = (0.5, 0.1)
ROUNDS, INITIAL, SEEDS = 6, 2, 3

METHODS = ("plain", "calibrated")
TASKS = ("bowl", "valley")
KNOB = {"bowl": {"knob": 1.0}, "valley": {"knob": 2.0}}
"""What the tasks of `usual` vary."""

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel, where any picture will do."""

FIGURES: dict[str, dict[str, Any]] = {
    "model-steps": {"task": "bowl", "methods": ["plain", "calibrated"], "minimise": True},
    "curves": {
        "rows": [
            {"metric": "cumulative_regret", "label": "regret"},
            {"metric": "query_coverage", "label": "coverage", "nominal": "mean_nominal_coverage", "limits": [0, 1.03]},
        ],
        "queries": True,
    },
    "sweep": {"metric": "regret", "label": "regret", "parameter": "knob"},
    "final-dots": {
        "metric": "regret",
        "label": "regret",
        "dots": {"plain, in a bowl": ["bowl", "plain"], "calibrated, in a valley": ["valley", "calibrated"]},
    },
    "run-ends": {
        "metric": "regret",
        "label": "regret",
        "panels": [{"task": "bowl", "first": 2, "title": "two seeds"}, {"task": "bowl"}, {"task": "valley"}],
        "stuck": 0.5,
    },
    "paired-effects": {"metrics": {"regret": "regret", "nll": "NLL"}, "baselines": {"plain": ["calibrated"]}},
    "mean-ranks": {"metrics": {"regret": "simple regret", "incumbent_regret": "best observation"}},
    "set-bands": {"task": "bowl"},
    "set-parts": {"task": "bowl"},
    "width-by-distance": {"reach": 0.2},
    "coverage-density": {"level": 0.5, "panels": [{"task": "bowl", "title": "A bowl"}]},
}
"""Options of each kind of figure that fit the evidence of `usual`."""

TEST: Row = {
    "statistic": "difference",
    "metric": "regret",
    "task": "bowl",
    "method": "calibrated",
    "baseline": "plain",
    "direction": "less",
}
"""A test of a claim that fits the evidence of `usual`, as YAML would have it."""

COLUMNS = ["panel", "series", "x", "x2", "value", "low", "high"]
LINE, SQUARE = [0.0, 0.5, 1.0], [(x, y) for x in (0.0, 0.5, 1.0) for y in (0.0, 0.5, 1.0)]
INF = float("inf")


def shown(panel: str, series: str, **columns: Any) -> pd.DataFrame:
    """Return rows of one series of an illustration."""
    frame = pd.DataFrame({"panel": panel, "series": series, **columns}, index=None if columns else [0])
    return frame.reindex(columns=COLUMNS)


def number(panel: str, series: str, value: float) -> pd.DataFrame:
    """Return the row of a number."""
    return shown(panel, series, value=[value])


def bands(panel: str, series: str, low: Sequence[float], high: Sequence[float]) -> pd.DataFrame:
    """Return an interval a point of the line."""
    return shown(panel, series, x=LINE, value=[0.0] * 3, low=low, high=high)


def surface(panel: str) -> pd.DataFrame:
    """Return the plane `x1 + x2` on the unit square."""
    return shown(
        panel, "surface", x=[x for x, _ in SQUARE], x2=[y for _, y in SQUARE], value=[x + y for x, y in SQUARE]
    )


ILLUSTRATED: dict[str, list[pd.DataFrame]] = {
    "branin-surfaces": [
        *map(surface, ("f", "ucb", "cucb", "ratio", "weight")),
        *(shown(panel, "query", x=[0.2], x2=[0.4]) for panel in ("ucb", "cucb")),
        shown("all", "data", x=[0.8, 0.9], x2=[0.7, 0.9]),
        number("all", "alpha", 0.35),
    ],
    "conformal-steps": [
        shown("scores", "better", x=[0.0, 2.0], value=[1.0, 2.0]),
        shown("scores", "kept", x=[1.0], value=[-1.0]),
        shown("scores", "guess", x=[3.0], value=[0.5]),
        shown("weights", "better", x=[0.0, 2.0], value=[0.1, 0.2]),
        shown("weights", "kept", x=[1.0], value=[0.4]),
        shown("weights", "guess", x=[3.0], value=[0.3]),
        shown("sums", "sum", x=[0.0, 1.0, 2.0, 3.0], value=[0.0, 0.4, 0.4, 0.7]),
        shown("set", "accepted", x=[-0.5, 0.0, 0.5], value=[0.7, 1.0, 0.7]),
        shown("set", "rejected", x=[-1.0, 1.0], value=[0.3, 0.3]),
        shown("set", "set", x=[0.2], low=[-0.7], high=[0.7]),
        shown("set", "guess", x=[0.5]),
        *(number(panel, "alpha", 0.35) for panel in ("sums", "set")),
    ],
    "conformal-bands": [
        bands("credible", "credible", [-1.0] * 3, [1.0] * 3),
        shown("candidates", "label", x=LINE, value=[0.1, -0.2, 0.3]),
        bands("conformal", "set", [-1.0, -INF, -9.0], [1.0, INF, 1.0]),
        shown("all", "truth", x=LINE, value=LINE),
        shown("all", "data", x=[0.1, 0.2], value=[0.0, 0.3]),
    ],
    "conformal-density": [
        *(shown("density", name, x=LINE, value=[0.2, 1.0, 0.2]) for name in ("plain", "conformal")),
        shown("density", "set", x=[0.0, 0.0], low=[-INF, 0.4], high=[0.1, 0.6]),
        shown("density", "credible", x=[0.0], low=[0.3], high=[0.7]),
        number("density", "alpha", 0.19),
    ],
    "improvement-map": [
        shown(
            "improvement", "surface", x=[x for x, _ in SQUARE], x2=[y for _, y in SQUARE], value=[x for x, _ in SQUARE]
        )
    ],
    "acquisitions-on-a-line": [
        bands("posterior", "credible", [-1.0] * 3, [1.0] * 3),
        *(shown("posterior", name, x=LINE, value=LINE) for name in ("truth", "draw 1", "draw 2")),
        *(shown("posterior", name, x=[0.1, 0.2], value=[0.0, 0.3]) for name in ("data", "optimum")),
        *(
            part
            for name in ("ei", "kg", "ucb", "ts", "jes")
            for part in (shown(name, "acquisition", x=LINE, value=[0.0, 0.2, 1.0]), shown(name, "query", x=[1.0]))
        ),
    ],
    "approximation-fits": [
        shown("all", "truth", x=LINE, value=LINE),
        shown("all", "data", x=[0.1, 0.2], value=[0.0, 0.3]),
        *(
            part
            for panel, at in (("exact", 0.8), ("ELBO", 1.0), ("EULBO", 0.9))
            for part in (
                bands(panel, "mean", [-1.0] * 3, [1.0] * 3),
                shown(panel, "improvement", x=LINE, value=[0.0, 0.2, 1.0]),
                shown(panel, "query", x=[at]),
                shown(panel, "inducing", x=[0.2, 0.6], value=[0.1, 0.2]),
            )
        ),
        shown("distance", "EULBO", x=[0.2, 0.3, 0.1, 0.0], value=[0.1, 0.0, 0.2, 0.0]),
        shown("distance", "query alone", x=[0.2, 0.3, 0.1, 0.0], value=[0.2, 0.1, 0.1, 0.1]),
    ],
    "radio-layout": [
        shown("map", "antenna", x=[0.0, -0.9, 0.9], x2=[1.0, -0.5, -0.5], value=[90.0, 210.0, 330.0]),
        shown("map", "ring", low=[10.0], high=[120.0]),
        shown("map", "ground user", x=[0.0, 50.0, -50.0], x2=[80.0, -40.0, -30.0], value=[0.0, 2.0, 1.0]),
        shown("map", "uav", x=[-100.0, 0.0, 100.0], x2=[150.0, 155.0, 160.0], value=[0.0] * 3),
        shown("map", "corridor", x=[-100.0, 100.0, 100.0, -100.0], x2=[150.0, 150.0, 160.0, 160.0], value=[0.0] * 4),
        *(
            shown("gain", "gain", x=[-90.0, tilt, 90.0], x2=[tilt] * 3, value=[-30.0, 8.0, -30.0])
            for tilt in (-30.0, 40.0)
        ),
        shown("gain", "ground user", x=[-20.0, -40.0]),
        shown("gain", "uav", x=[30.0, 45.0]),
    ],
    "rkhs-function": [
        *(shown("prior", f"draw {i}", x=LINE, value=[i, 0.0, 1.0]) for i in range(2)),
        shown("function", "truth", x=LINE, value=LINE),
        shown("function", "labels", x=[0.1, 0.9], value=[0.0, 1.0]),
        number("function", "norm", 2.0934),
    ],
    "well-specified-bands": [
        shown("all", "truth", x=LINE, value=LINE),
        *(
            part
            for panel in ("t = 2", "t = 4")
            for part in (
                bands(panel, "credible", [-1.0] * 3, [1.0] * 3),
                bands(panel, "set", [-1.0, -INF, -9.0], [1.0, INF, 1.0]),
                shown(panel, "data", x=[0.1], value=[0.2]),
                shown(panel, "query", x=[0.7]),
                number(panel, "alpha", 0.2),
            )
        ),
    ],
}
"""An example of the illustration that each kind of figure without trials is drawn from."""


def illustrated(kind: str) -> Evidence:
    """Return evidence of an experiment that has no trials."""
    return Evidence(illustration=pd.concat(ILLUSTRATED[kind], ignore_index=True))


TABLES: dict[str, dict[str, Any]] = {
    "at-equal-cost": {
        "comparisons": [{"task": "bowl", "methods": ["plain", "calibrated"], "costs": [2.0]}],
        "metrics": ["regret"],
    },
    "final-values": {"metrics": ["regret", "nll", "calibration_score"]},
    "paired-effects": {"metrics": {"regret": "regret"}, "baselines": {"plain": ["calibrated"]}},
    "ranking": {"averages": ["nll"]},
    "search-space": {"space": "kitchen"},
    "settings": {
        "settings": [
            {"name": "jitter", "published": "0.01", "method": "calibrated", "path": "jitter"},
            {"name": "restarts", "published": "10", "method": "calibrated", "path": "search.restarts"},
            {"name": "rounds", "published": "30", "task": "forrester", "path": "rounds"},
        ]
    },
    "wall-clock": {"baseline": "plain", "published": {"plain": 10.0, "calibrated": 14.5}},
}
"""Options of each kind of table that fit the evidence of `usual`."""

SPACES = {
    "kitchen": [
        {"name": "oven", "low": 1e-4, "high": 0.1, "scale": "log"},
        {"name": "eggs", "low": 1, "high": 12, "step": 1, "integer": True},
    ]
}


def key_of(task: str, method: str, seed: int) -> str:
    return hashlib.sha256(f"{task}|{method}|{seed}".encode()).hexdigest()[:16]


def falling(seed: int, evaluation: int) -> float:
    """Regret that falls with every evaluation, a little differently for each seed."""
    return (4.0 + 0.1 * seed) / (1 + evaluation)


def trial(
    task: str = "bowl",
    method: str = "plain",
    seed: int = 0,
    *,
    regret: Curve = falling,
    rounds: int = ROUNDS,
    q: int = 1,
    initial: int = INITIAL,
    optimum: float = 0.0,
    model: bool = True,
    key: str | None = None,
) -> list[Row]:
    """Return the rows of one trial whose instantaneous regrets are given by (seed, evaluation)."""
    rng = np.random.default_rng([seed, rounds, q])
    rows: list[Row] = []
    iterations = [0] * initial + [1 + i // q for i in range(rounds * q)]
    for evaluation, iteration in enumerate(iterations):
        f = optimum - regret(seed, evaluation)
        row: Row = {
            "key": key or key_of(task, method, seed),
            "task": task,
            "method": method,
            "seed": seed,
            "iteration": iteration,
            "evaluation": evaluation,
            "x": [evaluation / 100],
            "y": [f],
            "f": [f],
            "optimum": optimum,
            "roles": ["objective"],
            "events": [],
            "notes": {"jitter": 1e-6, "bound_y": 0.7, "bound_f": 0.8},
            "status": "ok",
            "fit_seconds": 0.2,
            "acquire_seconds": 0.1,
            "evaluate_seconds": 0.0,
            "round_seconds": 0.25 + 0.05 * iteration,
        }
        if model and iteration > 0:
            row |= {
                "predicted_mean": f + 0.1,
                "predicted_sd": 0.5,
                "pit": float(rng.uniform()),
                "nll": float(rng.normal()),
                "crps": float(rng.uniform()),
                "alpha": list(ALPHAS),
                "covered": [float(rng.random() > alpha) for alpha in ALPHAS],
                "f_covered": [float(rng.random() > alpha) for alpha in ALPHAS],
                "width": [1.0 / iteration, 2.0 / iteration],
                "holdout_width": [3.0 / iteration, 4.0 / iteration],
                "optimum_width": [5.0 / iteration, 6.0 / iteration],
                "near_width": [0.9 + 0.1 * iteration, 1.0],
                "far_width": [2.0 + 0.1 * iteration, 3.0],
                "holdout_coverage": [0.4 + 0.01 * iteration, 0.9],
                "end_coverage": [0.6 - 0.01 * iteration, 0.8],
            }
        rows.append(row)
    return rows


def failure(task: str = "bowl", method: str = "plain", seed: int = 0, error: str = "NotPSDError: no") -> list[Row]:
    """Return what a trial leaves that fails in its second round."""
    rows = trial(task, method, seed, rounds=1)
    last = dict.fromkeys(rows[0], None) | {
        "key": rows[0]["key"],
        "task": task,
        "method": method,
        "seed": seed,
        "iteration": 2,
        "evaluation": len(rows),
        **{name: [] for name in ("x", "y", "f", "events")},
        "status": "error",
        "error": error,
    }
    return [*rows, last]


def table(rows: Iterable[Row]) -> arrow.Table:
    """Return rows under the schema of records joined with their timings."""
    schema = records.RECORD
    for name in records.SECONDS:
        schema = schema.append(arrow.field(name, arrow.float64()))
    return arrow.Table.from_pylist(list(rows), schema=schema)


def write(path: Path, *trials: Sequence[Row]) -> Path:
    """Write the rows of trials as the pipeline does."""
    records.write_table(path, table(row for rows in trials for row in rows))
    return path


ALL = (*(name for name in records.RECORD.names if name not in ("status", "error")), *records.SECONDS)
"""Every column."""


def read(folder: Path, *trials: Sequence[Row]) -> Evidence:
    """Return evidence of trials, written and read with all columns."""
    return evidence(write(folder / "read.parquet", *trials), ALL)


def pictures(rows: Sequence[Row], steps: Sequence[int] = (1, 4)) -> list[Row]:
    """Return snapshots of a trial's model before some of its rounds."""
    grid = np.linspace(0.0, 1.0, 11)
    return [
        {
            "key": rows[0]["key"],
            "iteration": step,
            "x": float(x),
            "f": float(-((x - 0.3) ** 2)),
            "mean": float(-((x - 0.35) ** 2)),
            "sd": 0.1 / step,
            "width": 0.3 / step,
            "acquisition": float(x * (1 - x)),
            "threshold": 0.2 + 0.1 * float(x),
        }
        for step in steps
        for x in grid
    ]


def usual(folder: Path, failed: int = 0) -> Evidence:
    """Return evidence of two methods on two tasks with three seeds, and `failed` trials more."""
    trials = [
        trial(task, method, seed, regret=falling if method == "calibrated" else lambda s, i: 2 * falling(s, i))
        for task in TASKS
        for method in METHODS
        for seed in range(SEEDS)
    ]
    broken = [failure("bowl", "plain", SEEDS + i) for i in range(failed)]
    path = write(folder / "usual.parquet", *trials, *broken)
    snapshots = folder / "usual-snapshots.parquet"
    taken = [picture for rows in trials if rows[0]["task"] == "bowl" for picture in pictures(rows)]
    records.write_table(snapshots, arrow.Table.from_pylist(taken))
    spaces = plan({}).studies["made-up"].spaces
    found = replace(evidence(path, ALL, snapshots), task_parameters=KNOB, spaces=spaces)
    return replace(found, methods_in_use=IN_USE, budgets={"forrester": BUDGET})


IN_USE: dict[str, tuple[str, Row]] = {"calibrated": ("ei", {"jitter": 0.01, "search": {"maxiter": 5}})}
"""What a method of `usual` is given."""

BUDGET = {"initial": {"design": "uniform", "size": INITIAL}, "rounds": ROUNDS}


def _molecules(dataset: str, target: str) -> dict[str, Any]:
    return {"problem": "molecules", "options": {"dataset": dataset, "target": target}, **BUDGET}


LIBRARY = parse_methods_and_tasks(
    {"plain": {"name": "ucb"}, "calibrated": {"name": "ei"}},
    {
        "forrester": {"problem": "forrester", **BUDGET},
        "qed": _molecules("zinc250k", "qed"),
        "logp": _molecules("zinc250k", "penalized_logp"),
        "made-qed": _molecules("generated-molecules", "qed"),
    },
)
"""Methods and tasks of the plans of `plan`."""


def experiment(**changes: Any) -> dict[str, Any]:
    """Return an experiment as YAML would have it: a task, two methods, three seeds."""
    return {
        "title": "Two methods",
        "caption": "What came of them.",
        "grid": [{"tasks": ["forrester"], "methods": list(METHODS)}],
        "seeds": SEEDS,
        "quick": {},
        **changes,
    }


def plan(
    experiments: dict[str, Any], claims: dict[str, Any] | None = None, data: str = "generated", **changes: Any
) -> Plan:
    """Return the plan of one study with these experiments."""
    study = parse(
        Study,
        {
            "study": "made-up",
            "title": "A made-up document",
            "citation": "Nobody. Nowhere.",
            "spaces": SPACES,
            "experiments": experiments,
            "claims": claims or {},
            **changes,
        },
        "made-up.yaml",
    )
    about = {"licence": "none", "citation": "none"}
    datasets = {
        "zinc250k": Dataset(name="zinc250k", title="real", file="zinc", **about),
        "generated-molecules": Dataset(name="generated-molecules", title="made", stands_in_for="zinc250k", **about),
    }
    config = parse(Config, {"preset": "quick", "data": data, "studies": ["made-up"]}, "config")
    return Plan(config, {"made-up": study}, LIBRARY, datasets)


CLAIM = {"source": "section 5", "statement": "S.", "experiments": ["E"], "seeds": 5, "primary": TEST}
"""Of a study: all but its name."""

PART = {
    "claim": "K1",
    "role": "primary",
    "test": "final regret",
    **criterion(ClaimTest.model_validate(TEST)),
    "verdict": "partly",
    "because": "",
    "ours": -1.234,
    "low": -2.0,
    "high": 0.05,
    "seeds": 20,
    "experiments": "E",
    "data": "synthetic",
    "missing": "",
    "published": "",
    "size_p": np.nan,
    "needed": np.nan,
}
"""Of a table of claims: the row of a test's part."""


def planned(*names: str, **changes: Any) -> Plan:
    """Return a plan of these claims, about one experiment."""
    one = experiment(grid=[{"tasks": ["bowl"], "methods": list(METHODS)}], seeds=6)
    return plan({"E": one}, dict.fromkeys(names, CLAIM | changes))
