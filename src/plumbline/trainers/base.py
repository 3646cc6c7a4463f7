"""What every trainer has in common: its entry in `config/models.yaml`, what it may depend on, and the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Generator

from plumbline.errors import PlumblineError, unknown
from plumbline.options import Options, parse
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


class ModelEntry(Options):
    """One model of `config/models.yaml`; its file is `models/<name>` in the data folder, with the trainer's ending.

    Attributes:
        title: what it is.
        trainer: a registered trainer, with its options.
        seed: of the training.
        stands_in_for: the model that it replaces in runs on generated data.
    """

    title: str
    trainer: str
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0)
    stands_in_for: str | None = None


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
    trained.write(output, {"model": name, **entry.model_dump(mode="json")})


def check_stand_ins(entries: Mapping[str, ModelEntry], source: str) -> None:
    """Raise PlumblineError where a model stands in for one that there is not."""
    for name, entry in entries.items():
        if entry.stands_in_for is not None and entry.stands_in_for not in entries:
            raise PlumblineError(f"{source}: {name}: stands_in_for: {unknown('model', entry.stands_in_for, entries)}")
