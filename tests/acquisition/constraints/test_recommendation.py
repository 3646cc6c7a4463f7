"""Which point is recommended."""

import pytest
import torch
from outcome_cases import ROLES, made, somewhere
from torch.special import ndtr

from plumbline.acquisition.constraints.recommendation import recommended


def test_it_has_the_greatest_mean_of_those_that_are_feasible_with_confidence() -> None:
    processes, X = made(9, 2), somewhere(60, 2, seed=1)
    seen = [process.marginal_posterior(X) for process in processes]
    chance = ndtr(seen[1].mean / seen[1].sd)
    chance = chance * (ndtr((4.0 - seen[2].mean) / seen[2].sd) - ndtr((-4.0 - seen[2].mean) / seen[2].sd))
    for confidence in (0.05, 0.2, 0.3):
        sure = chance >= confidence
        assert 0 < sure.sum() < len(X)
        assert recommended(processes, ROLES, X, confidence, 4.0) == int(seen[0].mean.where(sure, -torch.inf).argmax())


def test_where_none_is_it_is_the_likeliest_to_be() -> None:
    processes, X = made(9, 2, shift=-40.0)[:2], somewhere(60, 2, seed=1)
    seen = processes[1].marginal_posterior(X)
    found = recommended(processes, ["objective", "at_least_zero"], X, 0.95, 0.01)
    assert found == int((seen.mean / seen.sd).argmax())
    assert ndtr(seen.mean / seen.sd)[found] < 0.95


@pytest.mark.parametrize("tolerance", [1e-3, 1.0])
def test_an_equality_holds_within_a_tolerance(tolerance: float) -> None:
    processes, X = [made(9, 2)[i] for i in (0, 2)], somewhere(30, 2, seed=1)
    seen = processes[1].marginal_posterior(X)
    found = recommended(processes, ["objective", "zero"], X, 0.999999, tolerance)
    likeliest = ndtr((tolerance - seen.mean) / seen.sd) - ndtr((-tolerance - seen.mean) / seen.sd)
    assert found == int(likeliest.argmax())
