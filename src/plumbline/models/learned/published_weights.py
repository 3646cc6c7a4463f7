"""Safe reading of published weights from the pickle of a state dict: only tensors are read."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from plumbline.core.errors import PlumblineError
from plumbline.core.files import raise_if_machine_failed

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
        raise_if_machine_failed(error, path)
        raise PlumblineError(f"{path} is corrupt ({' '.join(str(error).split())[:200]}): get it again") from error
    if not isinstance(held, dict) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in held.items()):
        raise PlumblineError(f"{path} holds no state dict, that is names and tensors: save `model.state_dict()` alone")
    return held


def _refused(path: Path, reason: str) -> PlumblineError:
    """Return the error for a pickle with more than weights."""
    # Of torch's text only this sentence is passed on; the rest advises to read the file unsafely.
    said = re.search(r"WeightsUnpickler error: ([^\n]*)", reason)
    why = " ".join((said[1] if said else reason).split())[:200]
    code = re.search(r"GLOBAL (\S+)", reason)
    if code or re.search(r"reduce|instantiate|class|build", why, re.IGNORECASE):
        what = code[1] if code else why
        return PlumblineError(
            f"{path} holds code ({what}) and was not read, since reading would run it: get the file from its source"
        )
    return PlumblineError(f"{path} is corrupt ({why}): get it again")


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: Path) -> None:
    """Load weights into a model with exactly these names and shapes.

    Raises:
        PlumblineError: a name is missing or superfluous, a shape differs, or a tensor is sparse or holds a number that
            is not finite; the message gives the first one.
    """
    wanted = model.state_dict()
    missing, strange = ([*(a.keys() - b.keys())] for a, b in ((wanted, weights), (weights, wanted)))
    for names, words in ((missing, "lacks"), (strange, "has, and the model has not,")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise PlumblineError(f"{source} {words} {min(names)}{more}: these are the weights of another model")
    for name, value in wanted.items():
        found = weights[name]
        if found.layout != torch.strided or found.is_nested or found.is_quantized or found.is_meta:
            kind = str(found.layout).removeprefix("torch.").replace("strided", "nested, quantised or without data")
            raise PlumblineError(
                f"{source}: {name} is no dense tensor ({kind}): save `model.state_dict()` of the model itself"
            )
        if found.shape != value.shape:
            shape, needed = (" x ".join(map(str, one)) for one in (found.shape, value.shape))
            raise PlumblineError(f"{source}: {name} is {shape}, not {needed}: these are the weights of another model")
        if found.is_floating_point() != value.is_floating_point():
            raise PlumblineError(f"{source}: {name} is {found.dtype}, not {value.dtype}: get the file from its source")
        lost = int((~found.to(value.dtype).isfinite()).sum())
        if lost:
            raise PlumblineError(
                f"{source}: {lost} of {found.numel()} numbers of {name} are NaN or infinite: get it from its source"
            )
    model.load_state_dict(dict(weights))
