"""Tables of experiments as the report shows them."""

import made_evidence as made
import pandas as pd
import pytest

from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.report_experiments import shown, with_error


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.23456, 0.2345, "1.235 ± 0.23"),
        (57.05, 2e-15, "57.05 ± 0"),
        (1.5, "one seed", "1.5 (one seed)"),
        (1.5, float("nan"), "1.5"),
    ],
)
def test_a_number_has_its_error_or_the_reason_why_there_is_none(value: float, error: float | str, text: str) -> None:
    assert with_error(value, error) == text


def test_means_and_errors_share_a_column() -> None:
    table = pd.DataFrame(
        {
            "seeds": [5, 1],
            "set_width": [1.5, 2.0],
            "set_width ±": [0.25, 0.0],
            "set_width published": [1.0, 2.0],
            "set_width published ±": 0.1,
            "rounds": 3,
        }
    )
    found = shown(table, Titles(made.plan({}).library))
    assert found.to_dict("list") == {
        "seeds": [5, 1],
        "set width ± SE": ["1.5 ± 0.25", "2 (one seed)"],
        "set width published ± error": ["1 ± 0.1", "2 ± 0.1"],
        "rounds": [3, 3],
    }
