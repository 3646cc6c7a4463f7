"""Which claims a run can judge, and from what."""

from pathlib import Path
from typing import Any

import made_evidence as made
import pytest

from plumbline.analysis import draw
from plumbline.analysis.claims import COLUMNS
from plumbline.analysis.judge import judge, judge_folder
from plumbline.errors import PlumblineError

TEST = {
    "statistic": "final-difference",
    "metric": "regret",
    "task": "forrester",
    "method": "calibrated",
    "baseline": "plain",
    "direction": "less",
}
BETTER = {
    "source": "section 5",
    "statement": "It is better.",
    "experiment": "E",
    "tests": [TEST],
}


class TestJudge:
    @pytest.fixture
    def records(self, folder: Path) -> Path:
        trials = [made.trial("forrester", method, seed) for method in made.METHODS for seed in range(6)]
        return made.write(folder / "E.parquet", *trials)

    def test_claims_of_the_records_that_are_there(self, records: Path) -> None:
        plan = made.plan(
            {"E": made.experiment(), "F": made.experiment()}, {"K1": BETTER, "K2": BETTER | {"experiment": "F"}}
        )
        frame = judge(plan, {"E": records})
        assert frame["claim"].tolist() == ["K1"]
        assert frame["preset"].tolist() == ["quick"]
        assert frame["data"].tolist() == ["synthetic"]
        assert frame["outcome"].tolist() == ["open"]  # both curves are the same

    def test_tests_of_trials_that_the_preset_leaves_out_are_left_out(self, records: Path) -> None:
        """A preset may run a smaller task in the place of the document's."""
        elsewhere = TEST | {"task": "levy-20"}
        both = BETTER | {"tests": [*BETTER["tests"], elsewhere]}
        plan = made.plan({"E": made.experiment()}, {"K1": both, "K2": BETTER | {"tests": [elsewhere]}})
        frame = judge(plan, {"E": records})
        assert frame["claim"].tolist() == ["K1"]
        assert "levy-20" not in frame["statistic"].iloc[0]

    def test_no_claims_is_an_empty_table(self, records: Path) -> None:
        frame = judge(made.plan({"E": made.experiment()}), {"E": records})
        assert frame.empty
        assert frame.columns.tolist() == COLUMNS

    def test_data_that_stand_in_are_named(self, folder: Path) -> None:
        experiment = made.experiment(grid=[{"tasks": ["qed"], "methods": list(made.METHODS)}])
        plan = made.plan({"E": experiment}, {"K": BETTER | {"tests": [TEST | {"task": "qed"}]}})
        trials = [made.trial("qed", method, seed) for method in made.METHODS for seed in range(5)]
        frame = judge(plan, {"E": made.write(folder / "E.parquet", *trials)})
        assert frame["data"].tolist() == ["generated-molecules (generated, stands in for zinc250k)"]

    def test_a_claim_that_is_not_run_is_no_accident(self, records: Path) -> None:
        listed = {"source": "section 9", "statement": "It is art."}
        plan = made.plan({"E": made.experiment()}, {"K1": BETTER, "K2": listed})
        assert judge(plan, {"E": records})["claim"].tolist() == ["K1"]

    def test_the_records_of_an_experiment_are_read_once(self, records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read, original = [], draw.evidence

        def count(path: Path, columns: Any, *arguments: Any, **options: Any) -> Any:
            read.append((path, set(columns)))
            return original(path, columns, *arguments, **options)

        monkeypatch.setattr(draw, "evidence", count)
        other = BETTER | {"tests": [TEST | {"metric": "query_coverage"}]}
        plan = made.plan({"E": made.experiment()}, {"K1": BETTER, "K2": other})
        assert judge(plan, {"E": records})["claim"].tolist() == ["K1", "K2"]
        assert read == [(records, {"f", "roles", "optimum", "covered"})]

    def test_of_a_folder_of_results(self, records: Path, folder: Path) -> None:
        plan = made.plan({"E": made.experiment()}, {"K1": BETTER})
        made.write(
            folder / "quick/records/E.parquet", *(made.trial("forrester", m, s) for m in made.METHODS for s in (0, 1))
        )
        assert judge_folder(plan, folder / "quick")["seeds"].tolist() == [2]
        with pytest.raises(PlumblineError, match="no records at"):
            judge_folder(plan, folder / "desk")
