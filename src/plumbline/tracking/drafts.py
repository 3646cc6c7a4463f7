"""A finished run as data, before MLflow has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mlflow.entities import Dataset

MADE_OF = "plumbline.run"
"""The tag with the digest of all that an imported run is made of: who imports again finds the run by it."""


class Point(NamedTuple):
    """A metric at a step; its time is in milliseconds since 1970."""

    name: str
    value: float
    time: int
    step: int


@dataclass(frozen=True)
class Draft:
    """A finished run as data, before a store has it.

    Attributes:
        made_of: digest of all that it is made of.
        name: in the list of runs, where some twenty letters are seen.
        tags: besides `MADE_OF`.
        params: its parameters.
        points: its metrics.
        begin: in milliseconds since 1970.
        end: the same.
        status: FINISHED or FAILED.
        datasets: its inputs.
        files: its artifacts by their paths: the file that holds one, or its text.
    """

    made_of: str
    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    points: Sequence[Point]
    begin: int
    end: int
    status: str = "FINISHED"
    datasets: Sequence[Dataset] = ()
    files: Mapping[str, Path | str] = field(default_factory=dict)
