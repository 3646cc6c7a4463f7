"""Random streams derived by hashing, so that all methods meet the same draws.

The name of a stream is (problem, seed, stream, index), never the method: each method gets the same initial design,
and the same noise at its i-th evaluation. Streams are derived anew where they are needed. There is no generator state
to save, so a resumed trial equals an uninterrupted one.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

Stream = Literal["problem", "design", "noise", "holdout", "ends", "recommendation", "method", "model", "bootstrap"]


def identity(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of a problem in its streams: its registered name and options, whatever its label."""
    return json.dumps({"name": name, "options": options}, sort_keys=True, separators=(",", ":"))


def stream_seed(problem: str, seed: int, stream: Stream, index: int = 0) -> int:
    """Return a 63-bit integer seed for one stream of one (problem, seed) pair."""
    name = f"{problem}|{seed}|{stream}|{index}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> 1


def generator(problem: str, seed: int, stream: Stream, index: int = 0) -> "torch.Generator":
    """Return a CPU `torch.Generator` seeded for the stream."""
    import torch

    return torch.Generator().manual_seed(stream_seed(problem, seed, stream, index))


def draw_seed(generator: "torch.Generator") -> int:
    """Return an integer seed for a library with its own generators, drawn from `generator`."""
    import torch

    return int(torch.randint(2**31 - 1, (1,), generator=generator))
