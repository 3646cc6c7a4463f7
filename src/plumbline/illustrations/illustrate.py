"""Computation and storage of an experiment's illustration."""

import json
from pathlib import Path

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.core.seeding import generator
from plumbline.illustrations.base import illustrations
from plumbline.store import records
from plumbline.store.provenance import METADATA_KEY, provenance
from plumbline.study.plan import Plan


def illustrate(plan: Plan, name: str) -> pd.DataFrame:
    """Return the illustration of experiment `name`, always the same table.

    Raises:
        PlumblineError: the experiment has no illustration, or its options are wrong.
    """
    output = plan.experiment(name).illustration
    if output is None:
        raise PlumblineError(f"{name} has no illustration")
    entry = illustrations[output.kind]
    options = parse(entry.options, output.options, f"illustration of {name}")
    return entry.build(options, generator(name, 0, "problem"))


def write(path: Path, frame: pd.DataFrame) -> None:
    """Write an illustration to Parquet with its provenance."""
    about = json.dumps(provenance(), sort_keys=True)
    records.write_frame(path, frame, {METADATA_KEY: about})
