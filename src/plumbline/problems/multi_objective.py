"""Multi-objective problems, with all objectives maximised; CBO, figure 12."""

import torch
from botorch.test_functions.multi_objective import BraninCurrin, MultiObjectiveTestProblem, Penicillin

from plumbline.problems.base import Context, problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ProblemOptions


@problems.register("branin-currin", ProblemOptions, "2-d, two outcomes that pull apart")
def branin_currin(options: ProblemOptions, _: Context) -> MultiObjectiveTestProblem:
    """Return minus the rescaled Branin function and minus the Currin function, with minus BoTorch's reference point."""
    return with_noise(BraninCurrin(negate=True), options)


class PenicillinOptions(ProblemOptions):
    """Options of the fermentation.

    Attributes:
        reference_point: reference point of minus the yield, CO2 and time, all minimised: BoTorch's of 2022, when CBO
            was published. BoTorch 0.14 changed it to (25.935, 57.612, 935.5), with volumes six times as great.
    """

    reference_point: tuple[float, float, float] = (1.85, 86.93, 514.70)


@problems.register("penicillin", PenicillinOptions, "7-d, three outcomes of a fermentation: yield, CO2 and time")
def penicillin(options: PenicillinOptions, _: Context) -> MultiObjectiveTestProblem:
    """Return the yield of penicillin, minus its CO2 and minus its time, in the units of BoTorch's simulator.

    BoTorch minimises minus the yield, CO2 and time, so that one change of sign suffices.
    """
    function = Penicillin(negate=True)
    function.ref_point = -torch.tensor(options.reference_point, dtype=function.ref_point.dtype)
    return with_noise(function, options)
