"""Test functions of the literature, negated to be maximised: BoTorch's own classes where they exist.

BoTorch prints optima to six digits, so that regrets at the optimum would be off by a millionth, to either side. Here
they are polished in double precision, and rounded to where no value of the function as it is computed lies beyond.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, Self

import torch
from botorch.test_functions import Ackley, Levy, Rosenbrock, SyntheticTestFunction, synthetic
from pydantic import Field, model_validator
from torch import Tensor

from plumbline.problems.base import Context, problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import MOST_DIMENSIONS, ProblemOptions, ScalableOptions


class Forrester(SyntheticTestFunction):
    """Forrester, Sobester & Keane (2008): `(6x - 2)^2 sin(12x - 4)` on [0, 1], one local and one global minimum."""

    dim = 1
    continuous_inds = [0]  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [(0.0, 1.0)]  # noqa: RUF012
    _optimal_value = -6.0207400557671
    _optimizers = [(0.757248757841856,)]  # noqa: RUF012

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x = X.squeeze(-1)
        return (6 * x - 2) ** 2 * torch.sin(12 * x - 4)


class Branin(synthetic.Branin):
    """BoTorch's Branin function, with its minimum, `5 / (4 pi)`, and its minimisers to full precision."""

    _optimal_value = 0.3978873577297
    _optimizers = [(-math.pi, 12.275), (math.pi, 2.275), (3 * math.pi, 2.475)]  # noqa: RUF012


class SixHumpCamel(synthetic.SixHumpCamel):
    """BoTorch's six-hump camel function, with its minimum and its minimisers to full precision."""

    _optimal_value = -1.0316284534899
    _optimizers = [(0.08984201310031806, -0.7126564030207396), (-0.08984201310031806, 0.7126564030207396)]  # noqa: RUF012


class Hartmann(synthetic.Hartmann):
    """BoTorch's Hartmann functions, with their minima and minimisers to full precision.

    They are those of the function as BoTorch computes it: single precision of its coefficients moves the
    minimum by up to 1e-7.
    """

    OPTIMA: ClassVar[dict[int, tuple[float, tuple[float, ...]]]] = {
        3: (-3.8627798609744, (0.1145888780216636, 0.5556488938847998, 0.8525469841069018)),
        6: (
            -3.3223680044403,
            (
                0.20168951147428166,
                0.15001069180927995,
                0.4768739718958708,
                0.2753324307506445,
                0.3116516166482795,
                0.6573005342632461,
            ),
        ),
    }

    def __init__(self, dim: int, negate: bool = False, bounds: list[tuple[float, float]] | None = None) -> None:
        super().__init__(dim=dim, negate=negate, bounds=bounds)
        self._optimal_value, minimiser = self.OPTIMA[dim]
        self.optimizers.copy_(torch.tensor([minimiser], dtype=self.bounds.dtype))


class StyblinskiTang(synthetic.StyblinskiTang):
    """BoTorch's Styblinski-Tang function, with its minimum and its minimiser to full precision."""

    def __init__(self, dim: int, negate: bool = False) -> None:
        super().__init__(dim=dim, negate=negate)
        self._optimal_value = -39.166165703772 * dim
        self.optimizers.fill_(-2.903534027771177)


class Alpine(SyntheticTestFunction):
    """Alpine function number 1: `sum_i |x_i sin x_i + x_i / 10|` on [-10, 10]^d, minimum 0 at the origin."""

    _optimal_value = 0.0
    _check_grad_at_opt = False  # a kink

    def __init__(self, dim: int, noise_std: float | None = None, negate: bool = False) -> None:
        self.dim = dim
        self.continuous_inds = list(range(dim))
        self._bounds = [(-10.0, 10.0)] * dim
        self._optimizers = [(0.0,) * dim]
        super().__init__(noise_std=noise_std, negate=negate)

    def _evaluate_true(self, X: Tensor) -> Tensor:
        return (X * torch.sin(X) + 0.1 * X).abs().sum(dim=-1)


class RosenbrockOptions(ScalableOptions):
    """Options of Rosenbrock's function, a sum over pairs of neighbouring coordinates, hence of at least two inputs.

    Attributes:
        interval: interval of every input; another customary one is [-2.048, 2.048] (De Jong, 1975).
    """

    dim: int = Field(ge=2, le=MOST_DIMENSIONS)
    interval: tuple[float, float] = (-5.0, 10.0)

    @model_validator(mode="after")
    def _optimum_is_inside(self) -> Self:
        low, high = self.interval
        if not low < 1 < high:
            raise ValueError("interval: it must contain the optimum, which is at 1 in every input")
        return self


class HartmannOptions(ProblemOptions):
    """Options of the Hartmann functions."""

    dim: Literal[3, 6]


def _fixed(build: Callable[..., SyntheticTestFunction], options: ProblemOptions, _: Context) -> SyntheticTestFunction:
    return with_noise(build(negate=True), options)


def _scalable(
    build: Callable[..., SyntheticTestFunction], options: ScalableOptions, _: Context
) -> SyntheticTestFunction:
    return with_noise(build(dim=options.dim, negate=True), options)


def _register(
    build: Callable[..., SyntheticTestFunction], name: str, summary: str, options: type[ProblemOptions]
) -> None:
    maker = _scalable if "dim" in options.model_fields else _fixed
    enter = partial(maker, build)
    enter.__module__ = __name__
    problems.register(name, options, summary)(enter)


_register(Forrester, "forrester", "1-d, a local minimum that traps and a narrow global one", ProblemOptions)
_register(Branin, "branin", "2-d, three global minima", ProblemOptions)
_register(SixHumpCamel, "six-hump-camel", "2-d, six local minima, two of them global", ProblemOptions)
_register(Hartmann, "hartmann", "3-d or 6-d, four or six local minima (hartmann-3, hartmann-6)", HartmannOptions)
_register(Ackley, "ackley", "any d, nearly flat with a deep hole at the origin (ackley-2)", ScalableOptions)
_register(Alpine, "alpine", "any d, many kinked local minima (alpine-2)", ScalableOptions)
_register(Levy, "levy", "any d, rugged along every axis (levy-5)", ScalableOptions)
_register(StyblinskiTang, "styblinski-tang", "any d, 2^d local minima (styblinski-tang-6)", ScalableOptions)


@problems.register("rosenbrock", RosenbrockOptions)
def rosenbrock(options: RosenbrockOptions, context: Context) -> SyntheticTestFunction:
    """any d > 1, a curved narrow valley (rosenbrock-6)"""
    return with_noise(Rosenbrock(dim=options.dim, bounds=[options.interval] * options.dim, negate=True), options)
