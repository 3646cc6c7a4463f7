from pathlib import Path

import made_evidence as made
import pyarrow as arrow
import pytest

from plumbline import records
from plumbline.analysis.collect import Evidence, Grid, collect, evidence
from plumbline.errors import PlumblineError
from plumbline.specs import Chunk

WHOLE = Grid(frozenset(("bowl", method, seed) for method in made.METHODS for seed in (0, 1)))


def write_chunks(
    folder: Path, *, without: tuple[str, int] | None = None, failing: tuple[str, int] | None = None
) -> list[Path]:
    """One file a method, two seeds each."""
    paths = []
    for method in made.METHODS:
        trials = [
            made.failure("bowl", method, seed, "RuntimeError: it broke")
            if (method, seed) == failing
            else made.trial("bowl", method, seed)
            for seed in (0, 1)
            if (method, seed) != without
        ]
        paths.append(made.write(folder / f"{method}.parquet", *trials))
    return paths


class TestGrid:
    def test_it_is_one_trial_a_problem_method_and_seed(self) -> None:
        chunks = made.plan({"E": made.experiment()}).chunks("E")
        assert Grid.of(chunks).expected == {("forrester", m, s) for m in made.METHODS for s in range(made.SEEDS)}

    def test_cutting_it_into_chunks_makes_no_difference(self) -> None:
        whole = made.plan({"E": made.experiment()}).chunks("E")
        pieces = [Chunk(spec=chunk.spec, seeds=(seed,)) for chunk in whole for seed in chunk.seeds]
        assert Grid.of(pieces) == Grid.of(whole)


class TestCollect:
    def test_a_whole_grid_is_put_together_in_order(self, folder: Path) -> None:
        table, snapshots = collect(write_chunks(folder), WHOLE, folder / "store", False)
        frame = table.to_pandas()
        assert len(frame) == 4 * (made.INITIAL + made.ROUNDS)
        assert frame[["method", "seed"]].drop_duplicates().to_numpy().tolist() == [
            ["plain", 0],
            ["plain", 1],
            ["calibrated", 0],
            ["calibrated", 1],
        ]
        assert snapshots.num_rows == 0

    @pytest.mark.parametrize("missing", [("plain", 1), ("calibrated", 0)])
    def test_a_missing_trial_is_named(self, folder: Path, missing: tuple[str, int]) -> None:
        paths = write_chunks(folder, without=missing)
        with pytest.raises(PlumblineError) as error:
            collect(paths, WHOLE, folder / "store", False)
        said = f"1 of 4 trials are missing, the first: bowl {missing[0]} seed {missing[1]}"
        assert said in str(error.value)

    def test_the_first_of_many_is_named(self, folder: Path) -> None:
        paths = [made.write(folder / "one.parquet", made.trial("bowl", "plain", 1))]
        with pytest.raises(PlumblineError, match="3 of 4 trials are missing, the first: bowl calibrated seed 0"):
            collect(paths, WHOLE, folder / "store", False)

    def test_a_failed_trial_is_named_with_its_reason_and_the_remedy(self, folder: Path) -> None:
        paths = write_chunks(folder, failing=("calibrated", 1))
        with pytest.raises(PlumblineError) as error:
            collect(paths, WHOLE, folder / "store", False)
        message = str(error.value)
        assert "1 of 4 trials failed, the first: bowl calibrated seed 1: RuntimeError: it broke" in message
        assert "plumbline failures" in message
        assert "allow_incomplete" in message
        assert "\n" not in message

    def test_holes_are_let_pass_when_asked_for(self, folder: Path) -> None:
        paths = write_chunks(folder, failing=("calibrated", 1), without=("plain", 0))
        table, _ = collect(paths, WHOLE, folder / "store", True)
        frame = table.to_pandas()
        assert (frame["status"] == "error").sum() == 1
        assert len(frame[["key", "problem", "method", "seed"]].drop_duplicates()) == 3

    def test_rows_that_break_the_schema_are_refused(self, folder: Path) -> None:
        rows = made.trial()
        rows[3]["pit"] = 1.5
        path = made.write(folder / "bad.parquet", rows)
        with pytest.raises(PlumblineError, match=r"records break the schema.*pit"):
            collect([path], WHOLE, folder / "store", True)

    def test_a_missing_file_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no records at"):
            collect([folder / "nowhere.parquet"], WHOLE, folder / "store", False)

    def test_snapshots_of_the_trials_are_joined_and_no_others(self, folder: Path) -> None:
        paths = write_chunks(folder)
        store = folder / "store"
        for trial in (made.trial("bowl", "plain", 0), made.trial("bowl", "calibrated", 1), made.trial("valley")):
            path = store / trial[0]["key"] / "snapshots.parquet"
            records.write_table(path, arrow.Table.from_pylist(made.pictures(trial)))
        _, snapshots = collect(paths, WHOLE, store, False)
        assert set(snapshots["key"].to_pylist()) == {
            made.key_of("bowl", "plain", 0),
            made.key_of("bowl", "calibrated", 1),
        }
        assert snapshots.num_rows == 2 * 2 * 11


class TestEvidence:
    def test_a_failed_trial_is_in_the_failures_and_in_no_row(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial(seed=0), made.failure(seed=1), made.trial("valley", seed=1))
        found = evidence(path)
        assert found.rows[["problem", "seed"]].drop_duplicates().to_numpy().tolist() == [["bowl", 0], ["valley", 1]]
        assert (found.rows["status"] == "ok").all()
        assert found.failures[["problem", "seed"]].to_numpy().tolist() == [["bowl", 1]]
        assert found.failures["error"].tolist() == ["NotPSDError: no"]
        assert found.rows.index.tolist() == list(range(len(found.rows)))

    def test_values_survive_the_file(self, folder: Path) -> None:
        rows = made.trial()
        found = evidence(made.write(folder / "e.parquet", rows)).rows
        for name in ("best_f", "regret", "round_seconds", "evaluation"):
            assert found[name].tolist() == [row[name] for row in rows]
        assert found["covered"].iloc[-1].tolist() == rows[-1]["covered"]
        assert found["notes"].iloc[0] == rows[0]["notes"]
        assert found["pit"].isna().tolist() == [True] * made.INITIAL + [False] * made.ROUNDS

    def test_it_counts_seeds(self, found: Evidence, folder: Path) -> None:
        assert found.seeds == made.SEEDS
        assert evidence(made.write(folder / "e.parquet", made.failure())).seeds == 0

    def test_trials_of_one_method_on_one_problem(self, found: Evidence) -> None:
        rows = found.trials("valley", "calibrated")
        assert set(rows["problem"]) == {"valley"}
        assert set(rows["method"]) == {"calibrated"}
        assert rows["seed"].nunique() == made.SEEDS

    def test_trials_that_are_not_there_are_told_with_those_that_are(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError) as error:
            found.trials("bowl", "plane")
        assert "no trials of 'plane' on 'bowl'" in str(error.value)
        assert "bowl x calibrated, bowl x plain, valley x calibrated, valley x plain" in str(error.value)

    def test_snapshots_carry_their_trial(self, found: Evidence) -> None:
        assert set(found.snapshots["problem"]) == {"bowl"}
        assert set(found.snapshots["method"]) == set(made.METHODS)
        assert len(found.snapshots) == len(made.METHODS) * made.SEEDS * 2 * 11

    def test_snapshots_of_failed_trials_are_left_out(self, folder: Path) -> None:
        broken = made.failure(seed=1)
        path = made.write(folder / "e.parquet", made.trial(seed=0), broken)
        snapshots = folder / "s.parquet"
        records.write_table(
            snapshots, arrow.Table.from_pylist(made.pictures(made.trial(seed=0)) + made.pictures(broken))
        )
        assert set(evidence(path, snapshots).snapshots["seed"]) == {0}

    def test_no_snapshots_is_no_accident(self, folder: Path) -> None:
        path = made.write(folder / "e.parquet", made.trial())
        records.write_table(folder / "s.parquet", arrow.table({}))
        assert evidence(path, folder / "s.parquet").snapshots.empty
        assert evidence(path).snapshots.empty

    def test_one_trial_under_two_labels_is_in_both(self, folder: Path) -> None:
        same = made.key_of("bowl", "plain", 0)
        first, second = made.trial(method="plain"), made.trial(method="also", key=same)
        path = made.write(folder / "e.parquet", first, second)
        snapshots = folder / "s.parquet"
        records.write_table(snapshots, arrow.Table.from_pylist(made.pictures(first)))
        pictures = evidence(path, snapshots).snapshots
        assert pictures.groupby("method").size().to_dict() == {"plain": 22, "also": 22}
