"""What every trainer has in common: what it may depend on, what it returns, and the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from plumbline.data.models import ModelEntry
from plumbline.errors import unknown
from plumbline.options import parse
from plumbline.registry import Registry
from plumbline.seeding import stream_seed

trainers = Registry("trainer", "plumbline.trainers")
"""Functions of (options, context) that return a trained model as `Trained`."""


@dataclass(frozen=True)
class TrainingContext:
    """What training may depend on besides options: the folder of built features, and a seeded generator."""

    data: Path
    generator: Generator


@dataclass(frozen=True)
class Trained:
    """A trained model: `write` puts it into a file together with what it was trained from."""

    write: Callable[[Path, dict[str, Any]], None]


def train(name: str, entries: Mapping[str, ModelEntry], data: Path, output: Path) -> None:
    """Train model `name` and write it to `output`.

    Raises:
        PlumblineError: an unknown model or trainer, wrong options, or an input that is not there.
    """
    if name not in entries:
        raise unknown("model", name, entries)
    entry = entries[name]
    trainer = trainers[entry.trainer]
    options = parse(trainer.options, entry.options, f"model {name!r}: trainer {entry.trainer!r}")
    stream = torch.Generator().manual_seed(stream_seed(f"model {name}", entry.seed, "model"))
    trained: Trained = trainer.build(options, TrainingContext(data, stream))
    # Not the title: the file's content is part of trials' keys.
    trained.write(output, entry.model_dump(mode="json", include={"trainer", "options", "seed"}))
