"""The interface of trainers: the context, the result, and the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from plumbline.core.errors import unknown
from plumbline.core.options import parse
from plumbline.core.seeding import stream_seed
from plumbline.data.models import ModelEntry
from plumbline.registry.registry import Registry

trainers = Registry("trainer", "plumbline.trainers")
"""Functions of (options, context) that return a trained model as `Trained`."""

CPU = torch.device("cpu")


@dataclass(frozen=True)
class TrainingContext:
    """Inputs of a training besides its options.

    Attributes:
        data: the folder of built features.
        generator: seeded generator.
        unfinished: a file for the trainer's own use until it is done; after a kill it holds the saved progress.
        device: device for the computations.
        jobs: greatest number of processes; the model is the same for any number.
    """

    data: Path
    generator: Generator
    unfinished: Path
    device: torch.device = CPU
    jobs: int = 1


@dataclass(frozen=True)
class Trained:
    """A trained model; `write` writes it to a file together with its provenance."""

    write: Callable[[Path, dict[str, Any]], None]


def train(
    name: str,
    entries: Mapping[str, ModelEntry],
    data: Path,
    output: Path,
    device: torch.device = CPU,
    jobs: int = 1,
) -> None:
    """Train model `name` and write it to `output`; a killed training is resumed if its trainer can.

    Raises:
        PlumblineError: the model or trainer is unknown, options are wrong, or an input is missing.
    """
    if name not in entries:
        raise unknown("model", name, entries)
    entry = entries[name]
    trainer = trainers[entry.trainer]
    options = parse(trainer.options, entry.options, f"model {name!r}: trainer {entry.trainer!r}")
    stream = torch.Generator().manual_seed(stream_seed(f"model {name}", entry.seed, "model"))
    unfinished = output.with_name(f".{output.stem}.unfinished")
    trained: Trained = trainer.build(options, TrainingContext(data, stream, unfinished, device, jobs))
    trained.write(output, entry.origin(name))
