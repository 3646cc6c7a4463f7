"""The command that runs the trials of chunks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import check_one_line

from plumbline.methods.baselines import SobolSearch
from plumbline.store import records
from plumbline.store.spec import Chunk, TrialSpec

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


def test_trials_gather_the_seeds_of_a_chunk(run: Run, cheap_spec: Make, tmp_path: Path) -> None:
    chunk = Chunk(spec=cheap_spec("branin", "random", rounds=1, label="dice"), seeds=(3, 4))
    code, _, _ = run("trials", "--chunk", chunk.model_dump_json(), "-o", "out.parquet")
    assert code == 0
    frame = records.read_table(tmp_path / "out.parquet").to_pandas(maps_as_pydicts="strict")
    assert frame["seed"].unique().tolist() == [3, 4]
    assert frame["method"].unique().tolist() == ["dice"]
    assert "x" not in frame


def test_failures_are_forgotten_where_their_store_is(
    run: Run, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `results: out` the jobs' records lie beside the store, and no longer say that the trial failed."""
    chunk = Chunk(spec=cheap_spec("branin", "sobol", rounds=1), seeds=(0,))
    file, store = chunk.path(Path("out/trials")), ("--store", "out/store")
    with monkeypatch.context() as patch:
        patch.setattr(SobolSearch, "ask", lambda *arguments: 1 / 0)
        assert run("trials", "--chunk", chunk.model_dump_json(), "-o", file, *store)[0] == 0
    assert "1 failure forgotten; 1 job to run again" in run("failures", "--forget", *store)[1]
    assert not file.exists()


@pytest.mark.slow
def test_a_job_of_several_chunks_goes_on_after_failures(
    run: Run, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [Chunk(spec=cheap_spec("branin", name, rounds=1), seeds=(0, 1)) for name in ("sobol", "random")]
    files = [tmp_path / "out" / f"{number}.parquet" for number in range(2)]
    words = [
        word for one, file in zip(chunks, files, strict=True) for word in ("--chunk", one.model_dump_json(), "-o", file)
    ]
    with monkeypatch.context() as patch:
        patch.setattr(SobolSearch, "ask", lambda *arguments: 1 / 0)
        assert run("trials", *words)[0] == 0
    first, second = (records.read_table(file).to_pandas(maps_as_pydicts="strict") for file in files)
    assert first["error"].notna().groupby(first["seed"]).any().tolist() == [True, True]
    assert second["error"].isna().all()
    content, kept = files[1].read_bytes(), second["key"].unique()
    ends = [tmp_path / "results/store" / key / "records.parquet" for key in kept]
    times = [end.stat().st_mtime_ns for end in ends]
    assert "2 failures forgotten; 1 job to run again" in run("failures", "--forget", "--trials", "out")[1]
    assert run("trials", *words)[0] == 0
    assert records.read_table(files[0])["error"].null_count == len(records.read_table(files[0]))
    assert [end.stat().st_mtime_ns for end in ends] == times, "these are done"
    assert files[1].read_bytes() == content
    check_one_line(run("trials", *words, "-o", "more.parquet"), "name an --output for each --chunk (got 3 for 2)")
