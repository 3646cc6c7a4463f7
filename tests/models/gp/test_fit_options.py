"""Options of exact processes."""

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.models.gp.fit import ModelOptions


def test_options_are_checked() -> None:
    with pytest.raises(PlumblineError, match="ard: true"):
        parse(ModelOptions, {"ard": False}, "model")
    with pytest.raises(PlumblineError, match="matern52"):
        parse(ModelOptions, {"kernel": "matern72"}, "model")
