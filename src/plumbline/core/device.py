"""The device that methods and trainers may compute on."""

import torch

from plumbline.core.errors import PlumblineError, shown


def device_called(name: str) -> torch.device:
    """Return the device called `auto` (a GPU where there is one), `cpu` or `cuda`.

    Raises:
        PlumblineError: another name, or no GPU where one is asked for.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise PlumblineError(f"unknown device {shown(name)}: auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise PlumblineError("no GPU that torch can use: take --device auto or cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
