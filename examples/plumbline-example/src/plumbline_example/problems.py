"""A problem of its own."""

from botorch.test_functions import SyntheticTestFunction

from plumbline.problems.base import problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ProblemOptions


class Himmelblau(SyntheticTestFunction):
    """`(a^2 + b - 11)^2 + (a + b^2 - 7)^2` on [-5, 5]^2, with four minima of zero: Himmelblau (1972)."""

    dim = 2
    continuous_inds = [0, 1]
    _bounds = [(-5.0, 5.0), (-5.0, 5.0)]
    _optimal_value = 0.0
    _optimizers = [(3.0, 2.0)]

    def _evaluate_true(self, X):
        a, b = X.unbind(-1)
        return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2


@problems.register("example-himmelblau", ProblemOptions)
def himmelblau(options, context):
    """2-d, four equal minima."""
    return with_noise(Himmelblau(negate=True), options)
