"""Computation and storage of an experiment's illustration."""

import json
from pathlib import Path

import pandas as pd
from botorch.utils.sampling import manual_seed

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.core.seeding import generator
from plumbline.illustrations.base import illustrations
from plumbline.store import records
from plumbline.store.provenance import METADATA_KEY, provenance
from plumbline.study.resolved import ResolvedExperiment


def illustrate(resolved: ResolvedExperiment) -> pd.DataFrame:
    """Return the illustration of an experiment: always the same table.

    Raises:
        PlumblineError: the experiment has no illustration, or its options are wrong.
    """
    output = resolved.experiment.illustration
    if output is None:
        raise PlumblineError(f"{resolved.name} has no illustration")
    entry = illustrations[output.kind]
    options = parse(entry.options, output.options, f"illustration of {resolved.name}")
    stream = generator(resolved.name, 0, "problem")
    with manual_seed(stream.initial_seed()):  # some of BoTorch draws from the global stream
        return entry.build(options, stream)


def write(path: Path, frame: pd.DataFrame, experiment: str) -> None:
    """Write the illustration of an experiment to Parquet with its provenance."""
    about = json.dumps({"experiment": experiment, **provenance()}, sort_keys=True)
    records.write_frame(path, frame, {METADATA_KEY: about})
