"""Safe reading of published weights from the pickle of a state dict: only tensors are read."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from plumbline.core.errors import PlumblineError

POINTER = b"version https://git-lfs"
"""First bytes of a pointer that Git LFS leaves in place of a file."""


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a file of `torch.save`, by name; no code in it is run.

    Raises:
        PlumblineError: the file is missing, a pointer, corrupt, or holds more than tensors; the message has the remedy.
    """
    try:
        with path.open("rb") as stream:
            beginning = stream.read(len(POINTER))
        if beginning == POINTER:
            raise PlumblineError(f"{path} is a pointer of Git LFS, not the weights: `git lfs pull` in its repository")
        held = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError as error:
        raise PlumblineError(f"no weights at {path}: `plumbline fetch` gets them, or put the file there") from error
    except pickle.UnpicklingError as error:
        raise _refused(path, str(error)) from error
    except PlumblineError:
        raise
    except Exception as error:  # torch may raise any error on a file that is not a pickle
        raise PlumblineError(f"{path} is corrupt ({' '.join(str(error).split())[:200]}): get it again") from error
    if not isinstance(held, dict) or not all(isinstance(value, Tensor) for value in held.values()):
        raise PlumblineError(f"{path} holds no state dict, that is names and tensors: save `model.state_dict()` alone")
    return held


def _refused(path: Path, reason: str) -> PlumblineError:
    """Return the error for a pickle with more than weights."""
    code = re.search(r"GLOBAL (\S+)", reason)
    if code:
        return PlumblineError(
            f"{path} has code in it ({code[1]}) and is not read: reading would run it; get the file from its source"
        )
    return PlumblineError(f"{path} is corrupt ({' '.join(reason.split())[:200]}): get it again")


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: Path) -> None:
    """Load weights into a model with exactly these names and shapes.

    Raises:
        PlumblineError: a name is missing or superfluous, or a shape differs; the message gives the first one.
    """
    wanted = model.state_dict()
    missing, strange = ([*(a.keys() - b.keys())] for a, b in ((wanted, weights), (weights, wanted)))
    for names, words in ((missing, "lacks"), (strange, "has, and the model has not,")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise PlumblineError(f"{source} {words} {min(names)}{more}: these are the weights of another model")
    for name, value in wanted.items():
        if weights[name].shape != value.shape:
            found, needed = (" x ".join(map(str, shape)) for shape in (weights[name].shape, value.shape))
            raise PlumblineError(f"{source}: {name} is {found}, not {needed}: these are the weights of another model")
    model.load_state_dict(dict(weights))
