"""The table of settings, ours and the paper's."""

from typing import Any

import made_evidence as made
import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import evidence_of, tabulate
from plumbline.core.errors import PlumblineError


class TestSettings:
    def row(self, **changes: Any) -> dict[str, Any]:
        return {"name": "jitter", "published": "0.01", "method": "calibrated", "path": "jitter"} | changes

    def test_what_is_given_and_what_is_left_at_its_default(self, found: Evidence) -> None:
        table = tabulate(experiment_of("settings"), found)
        assert table[["setting", "published", "ours", "same"]].to_numpy().tolist() == [
            ["jitter", "0.01", "0.01", "yes"],
            ["restarts", "10", "10", "yes"],
            ["rounds", "30", str(made.ROUNDS), "no"],
        ]

    def test_a_deep_option_that_is_given(self, found: Evidence) -> None:
        table = tabulate(experiment_of("settings", settings=[self.row(path="search.maxiter", published="200")]), found)
        assert table[["ours", "same"]].to_numpy().tolist() == [["5", "no"]]

    def test_a_part_of_the_budget(self, found: Evidence) -> None:
        row = {"name": "n0", "published": "2", "task": "forrester", "path": "initial.size"}
        assert tabulate(experiment_of("settings", settings=[row]), found)["ours"].tolist() == [str(made.INITIAL)]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"path": "jiter"}, "unknown option of calibrated 'jiter': did you mean 'jitter'"),
            ({"method": "calibratd"}, "unknown method 'calibratd'"),
            ({"method": "", "task": "forester", "path": "q"}, "unknown task 'forester'"),
            ({"method": "", "task": "forrester", "path": "round"}, "unknown part of the budget of forrester 'round'"),
            ({"task": "forrester"}, "give the `method` or the `task`"),
        ],
    )
    def test_mistakes_are_one_line(self, found: Evidence, change: dict[str, str], message: str) -> None:
        with pytest.raises(PlumblineError, match=message):
            tabulate(experiment_of("settings", settings=[self.row(**change)]), found)

    def test_the_library_in_use_is_what_evidence_has(self) -> None:
        plan = made.plan({"E": made.experiment(grid=[])})
        found = evidence_of(plan.resolve("E"), ())
        assert found.methods_in_use["calibrated"] == ("ei", {})
        assert found.budgets["forrester"]["rounds"] == made.ROUNDS
