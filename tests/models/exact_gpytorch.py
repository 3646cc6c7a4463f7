"""An exact process as a model of BoTorch and GPyTorch: for whatever is written for those."""

from dataclasses import replace

from botorch.models import SingleTaskGP

from plumbline.models.gp.process import GP
from plumbline.models.gp.single_task import single_task_gp


def gpytorch_model(process: GP) -> SingleTaskGP:
    """Return the process as BoTorch's model, answered by GPyTorch, without the factor of a recalibrated deviation."""
    same = replace(process, deviation=1.0)
    return single_task_gp(same.U, same.y, same.standardisation, same.kernel, same.at)
