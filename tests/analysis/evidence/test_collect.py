from pathlib import Path

import made_evidence as made
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from plumbline.analysis.evidence.collect import Grid, collect
from plumbline.core.errors import PlumblineError
from plumbline.store import records
from plumbline.store.spec import Chunk

WHOLE = Grid("TOY", frozenset(("bowl", method, seed) for method in made.METHODS for seed in (0, 1)))


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


def gather(paths: list[Path], folder: Path, *, allow_incomplete: bool = False) -> tuple[arrow.Table, arrow.Table]:
    """Collect, and read what was written."""
    output, snapshots = folder / "out" / "records.parquet", folder / "out" / "snapshots.parquet"
    collect(paths, WHOLE, folder / "store", allow_incomplete, output, snapshots)
    return records.read_table(output), records.read_table(snapshots)


class TestGrid:
    def test_it_is_one_trial_a_task_method_and_seed(self) -> None:
        chunks = made.plan({"E": made.experiment()}).resolve("E").chunks
        assert Grid.of("TOY", chunks).expected == {("forrester", m, s) for m in made.METHODS for s in range(made.SEEDS)}

    def test_cutting_it_into_chunks_makes_no_difference(self) -> None:
        whole = made.plan({"E": made.experiment()}).resolve("E").chunks
        pieces = [Chunk(spec=chunk.spec, seeds=(seed,)) for chunk in whole for seed in chunk.seeds]
        assert Grid.of("TOY", pieces) == Grid.of("TOY", whole)


class TestCollect:
    def test_a_whole_grid_is_put_together_in_order(self, folder: Path) -> None:
        table, snapshots = gather(write_chunks(folder), folder)
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
            gather(paths, folder)
        said = f"1 of 4 trials are missing, the first: bowl {missing[0]} seed {missing[1]}"
        assert said in str(error.value)

    def test_the_first_of_many_is_named(self, folder: Path) -> None:
        paths = [made.write(folder / "one.parquet", made.trial("bowl", "plain", 1))]
        with pytest.raises(PlumblineError, match="3 of 4 trials are missing, the first: bowl calibrated seed 0"):
            gather(paths, folder)

    def test_a_failed_trial_is_named_with_its_reason_and_the_remedy(self, folder: Path) -> None:
        paths = write_chunks(folder, failing=("calibrated", 1))
        with pytest.raises(PlumblineError) as error:
            gather(paths, folder)
        message = str(error.value)
        assert "1 of 4 trials failed, the first: bowl calibrated seed 1: RuntimeError: it broke" in message
        assert "plumbline failures" in message
        assert message.endswith("or add `allow_incomplete=True` to your `--config` to go on without them")
        assert "\n" not in message

    def test_where_all_failed_nothing_is_drawn_without_them(self, folder: Path) -> None:
        failures = [made.failure("bowl", method, seed, "it broke") for method in made.METHODS for seed in (0, 1)]
        path = made.write(folder / "one.parquet", *failures)
        with pytest.raises(
            PlumblineError, match=r"4 of 4.*or add `'without=\[TOY\]'` to your `--config` to go on without the"
        ):
            gather([path], folder)

    def test_holes_are_let_pass_when_asked_for(self, folder: Path) -> None:
        paths = write_chunks(folder, failing=("calibrated", 1), without=("plain", 0))
        table, _ = gather(paths, folder, allow_incomplete=True)
        frame = table.to_pandas()
        assert (frame["status"] == "error").sum() == 1
        assert len(frame[["key", "task", "method", "seed"]].drop_duplicates()) == 3

    def test_rows_that_break_the_schema_are_refused(self, folder: Path) -> None:
        rows = made.trial()
        rows[3]["pit"] = 1.5
        path = made.write(folder / "bad.parquet", rows)
        with pytest.raises(PlumblineError, match=r"records break the schema.*pit"):
            gather([path], folder, allow_incomplete=True)

    def test_a_missing_file_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no records at"):
            gather([folder / "nowhere.parquet"], folder)

    def test_snapshots_of_the_trials_are_joined_and_no_others(self, folder: Path) -> None:
        paths = write_chunks(folder)
        store = folder / "store"
        for trial in (made.trial("bowl", "plain", 0), made.trial("bowl", "calibrated", 1), made.trial("valley")):
            path = store / trial[0]["key"] / "snapshots.parquet"
            records.write_table(path, arrow.Table.from_pylist(made.pictures(trial)))
        _, snapshots = gather(paths, folder)
        assert set(snapshots["key"].to_pylist()) == {
            made.key_of("bowl", "plain", 0),
            made.key_of("bowl", "calibrated", 1),
        }
        assert snapshots.num_rows == 2 * 2 * 11

    def test_nothing_is_left_of_a_refusal(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="are missing"):
            gather(write_chunks(folder, without=("plain", 1)), folder)
        assert not list((folder / "out").iterdir())

    def test_points_come_along_only_where_pictures_show_them(self, folder: Path) -> None:
        paths = write_chunks(folder)
        assert "x" in gather(paths, folder)[0].column_names
        for path in paths:
            records.write_table(path, records.read_table(path).drop_columns("x"))
        assert "x" not in gather(paths, folder)[0].column_names

    def test_one_job_is_in_memory_at_a_time(self, folder: Path) -> None:
        """Each file is a row group of its own."""
        gather(write_chunks(folder), folder)
        assert parquet.ParquetFile(folder / "out" / "records.parquet").num_row_groups == len(made.METHODS)

    def test_records_of_another_experiment_are_refused(self, folder: Path) -> None:
        paths = write_chunks(folder)
        made.write(paths[1], made.trial("valley", "calibrated", 0), made.trial("bowl", "calibrated", 1))
        with pytest.raises(
            PlumblineError, match=r"calibrated\.parquet holds records of valley/calibrated seed 0, not of"
        ):
            gather(paths, folder, allow_incomplete=True)

    def test_one_jobs_records_under_the_name_of_another_are_refused(self, folder: Path) -> None:
        paths = write_chunks(folder)
        paths[1].write_bytes(paths[0].read_bytes())
        with pytest.raises(
            PlumblineError, match=r"calibrated\.parquet holds records of bowl/plain seed 0, which another"
        ):
            gather(paths, folder, allow_incomplete=True)
        assert not (folder / "out" / "records.parquet").exists()
