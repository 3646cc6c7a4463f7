"""Values where the first method has spent its budget."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import tabulate
from plumbline.analysis.outputs.kinds import tables
from plumbline.core.errors import PlumblineError


class TestAtEqualCost:
    def test_methods_are_told_where_the_first_of_them_ends(self, folder: Path) -> None:
        """One goes on for longer, and asks for every other observation only."""
        long = made.trial("bowl", "calibrated", 0, rounds=8)
        for row in long[made.INITIAL :: 2]:
            row["y"] = [float("nan")]
        trials = [made.trial("bowl", "plain", 0, rounds=3), long]
        comparison = {"task": "bowl", "methods": ["plain", "calibrated"], "costs": [2.0]}
        kind = tables["at-equal-cost"]
        options = kind.options.model_validate({"comparisons": [comparison], "metrics": ["instant_regret"]})
        found = kind.build(made.read(folder, *trials), options).set_index("method")
        assert found["spent"].tolist() == [10.0, 10.0]
        assert found["asked for"].tolist() == ["3", "3"]
        expected = [-trials[0][4]["f"][0], -long[made.INITIAL + 6]["f"][0]]
        np.testing.assert_allclose(found["instant_regret"], expected)

    def test_a_method_without_a_value_has_a_row_without_one(self, folder: Path) -> None:
        trials = [made.trial("bowl", "plain", 0, rounds=3, model=False), made.trial("bowl", "calibrated", 0, rounds=5)]
        comparison = {"task": "bowl", "methods": ["plain", "calibrated"], "costs": [2.0]}
        kind = tables["at-equal-cost"]
        options = kind.options.model_validate({"comparisons": [comparison], "metrics": ["nll"]})
        found = kind.build(made.read(folder, *trials), options).set_index("method")
        assert found["spent"].tolist() == [10.0, 10.0]
        assert found["nll"].isna().tolist() == [True, False]

    def test_costs_of_other_outcomes_are_refused(self, found: Evidence) -> None:
        comparison = {"task": "bowl", "methods": ["plain"], "costs": [1.0, 2.0]}
        with pytest.raises(PlumblineError, match="2 costs of 1 outcomes"):
            tabulate(experiment_of("at-equal-cost", comparisons=[comparison]), found)
