"""Options of exact processes."""

import pytest

from plumbline.errors import PlumblineError
from plumbline.models.exact_options import ModelOptions
from plumbline.options import parse


def test_options_are_checked() -> None:
    with pytest.raises(PlumblineError, match="ard: true"):
        parse(ModelOptions, {"ard": False}, "model")
    with pytest.raises(PlumblineError, match="matern52"):
        parse(ModelOptions, {"kernel": "matern72"}, "model")
