"""An exact process as a model of BoTorch and GPyTorch: for whatever is written for those."""

from dataclasses import replace

from botorch.models import SingleTaskGP

from plumbline.models.gp.process import GP


def gpytorch_model(process: GP) -> SingleTaskGP:
    """Return the process as BoTorch's model, without the factor of a recalibrated deviation."""
    return replace(process, deviation=1.0).as_botorch()
