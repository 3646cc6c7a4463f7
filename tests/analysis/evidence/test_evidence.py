import dataclasses
from collections.abc import Sequence
from pathlib import Path

import made_evidence as made
import numpy as np
import pyarrow as arrow
import pytest

from plumbline.analysis.evidence.evidence import PLACE, Evidence, evidence, refuse_foreign
from plumbline.core.errors import PlumblineError
from plumbline.metrics.frames import entries, lookup
from plumbline.store import records
from plumbline.study.legends import Legend


class TestEvidence:
    def test_a_failed_trial_is_in_the_failures_and_in_no_row(self, folder: Path) -> None:
        found = made.read(folder, made.trial(seed=0), made.failure(seed=1), made.trial("valley", seed=1))
        assert found.rows[["task", "seed"]].drop_duplicates().to_numpy().tolist() == [["bowl", 0], ["valley", 1]]
        assert found.failures[["task", "seed"]].to_numpy().tolist() == [["bowl", 1]]
        assert found.failures["error"].tolist() == ["NotPSDError: no"]
        assert found.rows.index.tolist() == list(range(len(found.rows)))

    def test_values_survive_the_file(self, folder: Path) -> None:
        rows = made.trial()
        found = made.read(folder, rows).rows
        for name in ("optimum", "round_seconds", "evaluation"):
            assert found[name].tolist() == [row[name] for row in rows]
        for name in ("x", "y", "f"):
            assert found[name].tolist() == [row[name][0] for row in rows], "lists of one entry are numbers"
        assert entries(found["covered"])[-1].tolist() == rows[-1]["covered"]
        assert np.isnan(entries(found["covered"])[0]).all()
        assert lookup(found["notes"], "jitter")[0] == rows[0]["notes"]["jitter"]
        assert found["pit"].isna().tolist() == [True] * made.INITIAL + [False] * made.ROUNDS

    def test_it_counts_seeds(self, found: Evidence, folder: Path) -> None:
        assert found.seeds == made.SEEDS
        assert made.read(folder, made.failure()).seeds == 0

    def test_trials_of_one_method_on_one_task(self, found: Evidence) -> None:
        rows = found.trials("valley", "calibrated")
        assert set(rows["task"]) == {"valley"}
        assert set(rows["method"]) == {"calibrated"}
        assert rows["seed"].nunique() == made.SEEDS

    def test_trials_that_are_not_there_are_told_with_those_that_are(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError) as error:
            found.trials("bowl", "plane")
        assert "no trials of 'plane' on 'bowl'" in str(error.value)
        assert "bowl x calibrated, bowl x plain, valley x calibrated, valley x plain" in str(error.value)

    def test_snapshots_carry_their_trial(self, found: Evidence) -> None:
        assert set(found.snapshots["task"]) == {"bowl"}
        assert set(found.snapshots["method"]) == set(made.METHODS)
        assert len(found.snapshots) == len(made.METHODS) * made.SEEDS * 2 * 11

    def test_snapshots_of_failed_trials_are_left_out(self, folder: Path) -> None:
        broken = made.failure(seed=1)
        path = made.write(folder / "e.parquet", made.trial(seed=0), broken)
        snapshots = folder / "s.parquet"
        records.write_table(
            snapshots, arrow.Table.from_pylist(made.pictures(made.trial(seed=0)) + made.pictures(broken))
        )
        assert set(evidence(path, [], snapshots).snapshots["seed"]) == {0}

    def test_no_snapshots_is_no_accident(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial())
        records.write_table(folder / "s.parquet", arrow.table({}))
        assert evidence(path, [], folder / "s.parquet").snapshots.empty
        assert evidence(path, []).snapshots.empty

    def test_one_trial_under_two_labels_is_in_both(self, folder: Path) -> None:
        same = made.key_of("bowl", "plain", 0)
        first, second = made.trial(method="plain"), made.trial(method="also", key=same)
        path = made.write(folder / "e.parquet", first, second)
        snapshots = folder / "s.parquet"
        records.write_table(snapshots, arrow.Table.from_pylist(made.pictures(first)))
        pictures = evidence(path, [], snapshots).snapshots
        assert pictures.groupby("method").size().to_dict() == {"plain": 22, "also": 22}

    def test_only_the_columns_that_are_asked_for_are_read(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial())
        assert evidence(path, ["f"]).rows.columns.tolist() == [*PLACE, "f"]

    def test_a_column_that_is_not_there_is_one_line(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial())
        with pytest.raises(PlumblineError, match="has no column 'z': collect the records again"):
            evidence(path, ["z"])

    def test_a_missing_file_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no records at"):
            evidence(folder / "none.parquet", [])

    def test_tasks_and_methods_come_in_the_order_of_the_grid(self, found: Evidence) -> None:
        assert found.tasks == list(made.TASKS)
        assert found.methods() == found.methods("bowl") == list(made.METHODS)
        assert Evidence().tasks == Evidence().methods() == []

    def test_what_has_no_look_and_no_title_goes_by_its_label(self, found: Evidence) -> None:
        assert found.legend("plain") == Legend(label="plain")
        assert found.title("bowl") == "bowl"
        named = dataclasses.replace(found, legends={"plain": Legend(label="Plain")}, titles={"bowl": "A bowl"})
        assert (named.legend("plain").label, named.title("bowl")) == ("Plain", "A bowl")

    def test_outcomes_of_several_entries_stay_together(self, folder: Path) -> None:
        trial = made.trial()
        for row in trial:
            row["f"] = [1.0, 2.0, row["evaluation"]]
        found = made.read(folder, trial).rows
        assert entries(found["f"]).tolist() == [row["f"] for row in trial]
        assert entries(found[found["evaluation"] > 3]["f"])[0].tolist() == [1.0, 2.0, 4.0]


GRID = {("bowl", method, seed): 8 for method in made.METHODS for seed in range(3)}
"""Trials of the grid, of 2 + 6 evaluations."""


class TestRecordsOfAnotherGrid:
    def refused(self, folder: Path, *trials: Sequence[made.Row]) -> str:
        path = made.write(folder / "e.parquet", *trials)
        with pytest.raises(PlumblineError) as caught:
            refuse_foreign(evidence(path, []), GRID, "E", path)
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message
        return message

    def whole(self) -> list[Sequence[made.Row]]:
        return [made.trial(*name) for name in GRID]

    def test_those_of_the_grid_are_taken(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", *self.whole())
        refuse_foreign(evidence(path, []), GRID, "E", path)

    def test_failed_trials_are_of_the_grid(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", *self.whole()[:-1], made.failure("bowl", "calibrated", 2))
        refuse_foreign(evidence(path, []), GRID, "E", path)

    @pytest.mark.parametrize("name", [("valley", "plain", 0), ("bowl", "dice", 0), ("bowl", "plain", 3)])
    def test_other_trials_are_refused(self, folder: Path, name: tuple[str, str, int]) -> None:
        task, method, seed = name
        words = f"holds records of {task}/{method} seed {seed}, not of E's grid"
        assert words in self.refused(folder, *self.whole(), made.trial(*name))
        assert words in self.refused(folder, *self.whole(), made.failure(*name))

    def test_missing_trials_are_refused(self, folder: Path) -> None:
        assert "lacks 2 of 6 trials of E's grid, the first: bowl/calibrated seed 1" in self.refused(
            folder, *self.whole()[:-2]
        )

    def test_another_budget_is_refused(self, folder: Path) -> None:
        words = "holds 7 evaluations of bowl/calibrated seed 2, E's grid has 8"
        assert words in self.refused(folder, *self.whole()[:-1], made.trial("bowl", "calibrated", 2, rounds=5))

    def test_snapshots_of_other_trials_are_refused(self, folder: Path) -> None:
        path, snapshots = made.write(folder / "e.parquet", made.trial()), folder / "s.parquet"
        records.write_table(snapshots, arrow.Table.from_pylist(made.pictures(made.trial("valley"))))
        with pytest.raises(PlumblineError, match=r"s\.parquet holds snapshots of other trials than .*e\.parquet"):
            evidence(path, [], snapshots)
