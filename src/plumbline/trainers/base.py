"""What every trainer has in common: what it may depend on, what it returns, and the registry."""

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
    """What training may depend on besides options.

    Attributes:
        data: the folder of built features.
        generator: seeded.
        unfinished: a file that is the trainer's until it is done: what is there when it starts, it left when it was
            killed.
        device: where it may compute.
        jobs: processes that it may have; what is learned is the same for any number.
    """

    data: Path
    generator: Generator
    unfinished: Path
    device: torch.device = CPU
    jobs: int = 1


@dataclass(frozen=True)
class Trained:
    """A trained model: `write` puts it into a file together with what it was trained from."""

    write: Callable[[Path, dict[str, Any]], None]


def train(
    name: str,
    entries: Mapping[str, ModelEntry],
    data: Path,
    output: Path,
    device: torch.device = CPU,
    jobs: int = 1,
) -> None:
    """Train model `name` and write it to `output`; one that was killed is gone on with, where its trainer can.

    Raises:
        PlumblineError: an unknown model or trainer, wrong options, or an input that is not there.
    """
    if name not in entries:
        raise unknown("model", name, entries)
    entry = entries[name]
    trainer = trainers[entry.trainer]
    options = parse(trainer.options, entry.options, f"model {name!r}: trainer {entry.trainer!r}")
    stream = torch.Generator().manual_seed(stream_seed(f"model {name}", entry.seed, "model"))
    unfinished = output.with_name(f".{output.stem}.unfinished")
    trained: Trained = trainer.build(options, TrainingContext(data, stream, unfinished, device, jobs))
    # Not the title: the file's content is part of trials' keys.
    trained.write(output, entry.model_dump(mode="json", include={"trainer", "options", "seed"}))
