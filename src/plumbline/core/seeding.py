"""Random streams derived by hashing, so that methods are compared on the same draws.

A stream is named by (problem, seed, stream, index) and never by the method: each method sees the same initial
design, and the same noise at its i-th evaluation. Streams are derived anew where they are needed; there is no
generator state to save, which is what makes a resumed trial equal to an uninterrupted one.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

Stream = Literal["problem", "design", "noise", "holdout", "ends", "recommendation", "method", "model", "bootstrap"]


def identity(name: str, options: Mapping[str, Any]) -> str:
    """Return what the streams of a problem are named by: its name and options, whatever it is labelled."""
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
    """Return an integer seed for a library that wants one, drawn from `generator`."""
    import torch

    return int(torch.randint(2**31 - 1, (1,), generator=generator))
