"""An edition with known effects: recalibrated methods are better calibrated, conformal ones find more."""

from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.edition import Cell, add_cells
from plumbline.analysis.atlas.interventions import INTERVENTIONS, PLACEBOS
from plumbline.analysis.atlas.rounds import COLUMNS, LEVELS

METHODS = sorted({method for one in (*INTERVENTIONS, *PLACEBOS) for pair in one.pairs for method in pair})
ROUNDS = 20


def made_edition(folder: Path, tasks: int = 6, seeds: int = 3) -> Path:
    """Write an edition of some tasks, all methods of the analyses and a last one without trials; return its folder."""
    rng = np.random.default_rng(0)
    names = [f"task-{i}" for i in range(tasks)]
    cells = []
    for task in names:
        starts = np.exp(rng.normal(size=seeds))
        cells += [_cell(task, method, starts, rng) for method in METHODS]
        about = {"task": task, "method": "ax", "class": "ax", "seeds": 0, "failed": 0, "empty": "for other tasks"}
        cells.append(Cell(about, None, {}))
    table = pd.DataFrame({"task": names, "track": "made", "title": "A task", "initial": 4, "rounds": ROUNDS})
    add_cells(folder, cells, table, {})
    return folder


def _cell(task: str, method: str, starts: np.ndarray, rng: np.random.Generator) -> Cell:
    frames = []
    for seed, start in enumerate(starts):
        frame = pd.DataFrame({"seed": seed, "round": range(ROUNDS + 1)}).reindex(columns=list(COLUMNS))
        rate = 0.1 + 0.01 * rng.random() + 0.1 * (method in ("atlas-cei", "atlas-cucb"))
        frame["best"] = -start * np.exp(-rate * np.arange(ROUNDS + 1))
        frame["optimum"] = 0.0
        missed = 0.0 if "calibrated" in method else 0.3
        for name, alpha in LEVELS.items():
            hit = rng.random(ROUNDS + 1) < (1 - alpha) * (1 - missed)
            frame[name] = np.where(frame["round"] > 0, hit, np.nan)
        frames.append(frame)
    about = {"task": task, "method": method, "class": "ei", "seeds": len(starts), "failed": 0, "empty": ""}
    return Cell(about, pd.concat(frames), {"measure": "value", "inputs": 2})
