"""What a trial's numbers depend on in the process is put back, and is what it usually is where that is asked for."""

import numpy as np
import pytest
import torch

from plumbline.core.ambient import kept_defaults

USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""What NumPy does of itself about floating-point errors."""


def state() -> tuple[torch.dtype, bool, dict[str, str]]:
    return torch.get_default_dtype(), torch.is_grad_enabled(), dict(np.geterr())


@pytest.mark.parametrize("usual", [True, False])
def test_all_is_put_back(usual: bool) -> None:
    before = state()
    assert before == (torch.float32, True, USUAL)

    def change() -> None:
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        np.seterr(all="raise")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), kept_defaults(usual):
        change()
    assert state() == before


def test_what_somebody_has_changed_is_usual_only_where_that_is_asked_for() -> None:
    with kept_defaults(usual=False):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        np.seterr(all="raise")
        changed = state()
        with kept_defaults(usual=True):
            assert state() == (torch.float32, True, USUAL)
        assert state() == changed
        with kept_defaults(usual=False):
            assert state() == changed
