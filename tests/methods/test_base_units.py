"""What a method proposes does not depend on the units of inputs and observations, a property of every method."""

from typing import Any

import pytest
import torch
from method_cases import CASES, SCRIPTS, Case, outcomes_for
from situations import ask
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.libraries import absent
from plumbline.core.outcomes import Outcome, Role
from plumbline.methods.base import Domain, build_method, methods
from plumbline.spaces.box import Box

DIM, DATA = 3, 9

FOREIGN = {"ax", "bayesian-optimization", "botorch-acquisition", "botorch-loop", "skopt", "smac"}
"""Methods whose models or searches are those of other libraries, with tolerances of their own."""


def history(outcomes: int) -> tuple[Tensor, Tensor]:
    """Return points of the unit cube, and outcomes of standard deviation one."""
    X = torch.rand(DATA, DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    waves = [torch.sin(3 * X + k).sum(-1) for k in range(outcomes)]
    return X, torch.stack([wave / wave.std() for wave in waves], -1)


def outcomes_of(unit: float, outcomes: int = 1, second: Role = "objective") -> tuple[Outcome, ...]:
    """Return outcomes in a unit; several objectives have a reference point."""
    if second != "objective":
        return Outcome("objective"), Outcome("constraint", second)
    return tuple(Outcome(f"objective-{i}", reference=-1.5 * unit if outcomes > 1 else None) for i in range(outcomes))


def proposed(case: Case, inputs: int, observations: int, q: int) -> Tensor:
    """Return the proposal where inputs and observations are measured in powers of two, in the unit cube."""
    name, options = case
    for library in absent(getattr(methods[name].build, "libraries", ())):
        pytest.skip(f"{library} is not installed")
    width, unit = 2.0**inputs, 2.0**observations
    if name == "risk-averse-ucb":  # its price of a variance is in units of the objective
        options = {**(options or {}), "coefficient": 1 / unit}
    told = outcomes_for(name)
    X, Y = history(told.get("outcomes", 1))
    bounds = torch.stack([torch.zeros(DIM), torch.full((DIM,), width)]).double()
    method = build_method(name, options, Domain(Box(bounds), outcomes_of(unit, **told)))
    return ask(method, History(X * width, Y * unit, DATA), q).X / width


def scripted(options: dict[str, Any] | None) -> bool:
    """Whether these are LOCBO's published script for Ackley's function, which takes labels in units of its own."""
    return options is not None and SCRIPTS[0].items() <= options.items()


FREE = [case for case in CASES if case[0] not in FOREIGN and not scripted(case[1])]


OTHERS = [(-9, 12, 1), (-9, 12, 3), (40, -40, 1), (40, -40, 3), (-40, 40, 1)]
"""Further powers of two, of inputs and of observations, and sizes of batches."""


def assert_units_make_no_difference(case: Case, inputs: int, observations: int, q: int) -> None:
    torch.testing.assert_close(proposed(case, inputs, observations, q), proposed(case, 0, 0, q), rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", FREE, ids=str)
def test_units_make_no_difference(case: Case) -> None:
    assert_units_make_no_difference(case, 13, -13, 1)


@pytest.mark.slow
@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("case", FREE, ids=str)
def test_nor_do_others_and_batches(case: Case, units: tuple[int, int, int]) -> None:
    assert_units_make_no_difference(case, *units)
