"""Problems with several outcomes, all of them maximised; CBO, figure 12."""

from botorch.test_functions.multi_objective import BraninCurrin, MultiObjectiveTestProblem, Penicillin

from plumbline.problems.base import Context, problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ProblemOptions


@problems.register("branin-currin", ProblemOptions, "2-d, two outcomes that pull apart")
def branin_currin(options: ProblemOptions, _: Context) -> MultiObjectiveTestProblem:
    """Return minus the rescaled Branin function and minus the Currin function, with minus BoTorch's reference point."""
    return with_noise(BraninCurrin(negate=True), options)


@problems.register("penicillin", ProblemOptions, "7-d, three outcomes of a fermentation: yield, CO2 and time")
def penicillin(options: ProblemOptions, _: Context) -> MultiObjectiveTestProblem:
    """Return the yield of penicillin, minus the CO2 and minus the time it takes, in the units of BoTorch's simulator.

    BoTorch states all three for minimisation, the yield as minus the yield, so that one sign turns them all.
    """
    return with_noise(Penicillin(negate=True), options)
