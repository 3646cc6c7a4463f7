"""Designs in a part of the box, or outside of it."""

import pytest
import torch
from design_cases import generator
from pydantic import ValidationError

from plumbline.core.errors import PlumblineError
from plumbline.designs.part import PartOptions, part_of


@pytest.mark.parametrize("outside", [False, True])
def test_a_part_of_the_box_or_what_is_outside_of_it(outside: bool) -> None:
    bounds = torch.tensor([[-10.0, -4.0], [10.0, 8.0]], dtype=torch.float64)
    options = PartOptions(low=-3.0, high=3.0, outside=outside)
    X = part_of(bounds, 200, generator(3), options)
    assert X.shape == (200, 2)
    assert ((bounds[0] <= X) & (bounds[1] >= X)).all()
    assert ((X.abs() <= 3).all(dim=-1) != outside).all()
    assert X.amax() > (7 if outside else 2.9)
    assert torch.equal(X, part_of(bounds, 200, generator(3), options))


@pytest.mark.parametrize("options", [{"low": -4.5, "high": 3.0}, {"low": -5.0, "high": 3.0, "outside": True}])
def test_a_part_that_is_not_in_the_box_is_refused(options: dict[str, float]) -> None:
    bounds = torch.tensor([[-4.0, -4.0], [8.0, 8.0]], dtype=torch.float64)
    with pytest.raises(PlumblineError, match="must lie inside the box"):
        part_of(bounds, 5, generator(3), PartOptions(**options))


@pytest.mark.parametrize("least", [1e-6, 0.0009])
def test_outside_of_nearly_all_of_the_box_is_refused(least: float) -> None:
    bounds = torch.tensor([[0.0] * 5, [1.0] * 5], dtype=torch.float64)
    with pytest.raises(PlumblineError, match="less than 1% of the box"):
        part_of(bounds, 5, generator(3), PartOptions(low=least, high=1.0, outside=True))
    assert len(part_of(bounds, 5, generator(3), PartOptions(low=0.1, high=1.0, outside=True))) == 5


def test_a_part_has_its_ends_in_order() -> None:
    with pytest.raises(ValidationError, match="`low` must be less than `high`"):
        PartOptions(low=1.0, high=1.0)
