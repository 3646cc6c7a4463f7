"""Formulas that work on tensors and on arrays."""

import numpy as np
import pytest
import scipy.special
import torch

from plumbline.core.numbers import namespace_of, special_of


@pytest.mark.parametrize(
    ("x", "functions", "special"),
    [(torch.ones(2), torch, torch.special), (np.ones(2), np, scipy.special), (np.float64(1), np, scipy.special)],
)
def test_functions_belong_to_the_numbers(x: object, functions: object, special: object) -> None:
    assert namespace_of(x) is functions
    assert special_of(x) is special
