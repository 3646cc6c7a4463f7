"""Failed trials: named, and cleared for another attempt."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.methods.baselines import RandomSearch
from plumbline.store import records
from plumbline.store.failures import failed_trials, forget_failures
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.trials import run_trial

Make = Callable[..., TrialSpec]


@pytest.fixture
def jobs(cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Three jobs of two seeds: in the first, seed 1 failed; in the second, all; in the third, none."""
    paths = {}
    asking = RandomSearch.ask
    for problem, bad in (("branin", {1}), ("forrester", {0, 1}), ("ackley-2", set())):
        chunk = Chunk(spec=cheap_spec(problem, "random", rounds=2), seeds=(0, 1))
        tables = []
        for spec in chunk.specs():

            def ask(self: RandomSearch, *arguments: object, fails: bool = spec.seed in bad) -> object:
                if fails:
                    raise ValueError("no luck")
                return asking(self, *arguments)

            with monkeypatch.context() as patch:
                patch.setattr(RandomSearch, "ask", ask)
                tables.append(run_trial(spec, tmp_path / "store", tmp_path).table(spec))
        paths[problem] = tmp_path / "trials" / problem / "random" / f"{chunk.id}.parquet"
        records.write_table(paths[problem], records.concatenate(tables))
    return paths


@pytest.mark.slow
def test_failures_are_listed(jobs: dict[str, Path], tmp_path: Path) -> None:
    failed = failed_trials(tmp_path / "store")
    assert sorted(name for _, name, _ in failed) == [
        "branin random seed 1", "forrester random seed 0", "forrester random seed 1",
    ]  # fmt: skip
    for folder, _, reason in failed:
        assert folder.failed
        assert reason.startswith("ValueError: no luck")


def test_nothing_has_failed(tmp_path: Path) -> None:
    assert failed_trials(tmp_path / "no-store") == []
    assert forget_failures([], tmp_path / "no-trials") == []


def test_only_their_jobs_run_again(jobs: dict[str, Path], tmp_path: Path, cheap_spec: Make) -> None:
    store = tmp_path / "store"
    folders = [folder for folder, _, _ in failed_trials(store)]
    removed = forget_failures(folders, tmp_path / "trials")
    assert sorted(removed) == sorted([jobs["branin"], jobs["forrester"]])
    assert [name for name, path in jobs.items() if path.exists()] == ["ackley-2"]
    assert failed_trials(store) == []
    assert not any(folder.done for folder in folders)
    assert sum(path.is_file() for path in store.glob("*/records.parquet")) == 3, "what went well stays"
    again = run_trial(cheap_spec("branin", "random", rounds=2, seed=1), store, tmp_path)
    assert again.done
    assert not again.failed


def test_files_of_others_stay_untouched(jobs: dict[str, Path], tmp_path: Path) -> None:
    """A folder `trials` may be somebody else's, or hold tables that they keep beside the jobs'."""
    mine = [tmp_path / "trials" / name for name in ("mine.parquet", "patients/mine.parquet", "branin/random/x.parquet")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no table")
    forget_failures([folder for folder, *_ in failed_trials(tmp_path / "store")], tmp_path / "trials")
    assert [path.read_bytes() for path in mine] == [b"no table"] * 3
    damaged = jobs["ackley-2"]
    damaged.write_bytes(b"no table")
    assert forget_failures([], tmp_path / "trials") == []
    assert damaged.read_bytes() == b"no table"


def test_one_failure_can_be_forgotten(jobs: dict[str, Path], tmp_path: Path) -> None:
    (folder,) = [folder for folder, name, _ in failed_trials(tmp_path / "store") if name.startswith("branin")]
    assert forget_failures([folder], tmp_path / "trials") == [jobs["branin"]]
    assert len(failed_trials(tmp_path / "store")) == 2


def listed(store: Path) -> tuple[dict[str, str], list[str]]:
    """The reasons of the failed trials by name, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        failed = {name: reason for _, name, reason in failed_trials(store)}
    said = [str(one.message) for one in caught]
    assert not any("\n" in line for line in said)
    return failed, said


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b'{"error": "no', b"{}", b"[1]", b"\xff\xfe", None])
def test_damaged_files_hide_no_failure(jobs: dict[str, Path], tmp_path: Path, content: bytes | None) -> None:
    store = tmp_path / "store"
    before, said = listed(store)
    assert said == []
    folder = next(folder for folder, name, _ in failed_trials(store) if name == "forrester random seed 1")
    for name in ("error.json", "spec.json"):
        path = folder.path / name
        path.unlink() if content is None else path.write_bytes(content)
        found, said = listed(store)
        assert set(found.values()) == set(before.values()), "records say the reason too"
    assert folder.key in found
    assert any(str(path) in line for line in said)
    assert len(forget_failures([folder for folder, *_ in failed_trials(store)], tmp_path / "trials")) == 2
    assert listed(store)[0] == {}


@pytest.mark.slow
def test_damaged_records_are_named_and_the_others_listed(jobs: dict[str, Path], tmp_path: Path) -> None:
    store = tmp_path / "store"
    before, _ = listed(store)
    (sound, *_) = [
        path for path in sorted(store.glob("*/records.parquet")) if not (path.parent / "error.json").exists()
    ]
    sound.write_bytes(b"PAR1")
    found, said = listed(store)
    assert found == before
    assert len(said) == 1
    assert str(sound) in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"PAR1", None])
def test_a_damaged_job_does_not_stop_the_forgetting(
    jobs: dict[str, Path], tmp_path: Path, content: bytes | None
) -> None:
    damaged = jobs["ackley-2"]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-9] if content is None else content)
    now = damaged.read_bytes()
    folders = [folder for folder, _, _ in failed_trials(tmp_path / "store")]
    with pytest.warns(UserWarning, match=r"kept as .*\.parquet\.damaged: its job runs again"):
        removed = forget_failures(folders, tmp_path / "trials")
    assert sorted(removed) == sorted(jobs.values())
    assert damaged.with_name(f"{damaged.name}.damaged").read_bytes() == now
    assert failed_trials(tmp_path / "store") == []


@pytest.mark.slow
def test_what_cannot_be_removed_leaves_the_errors(
    jobs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listed(tmp_path / "store")
    removing = Path.unlink

    def refuse(self: Path, *, missing_ok: bool = False) -> None:
        if "trials" in self.parts:
            raise PermissionError(13, "no")
        removing(self, missing_ok=missing_ok)

    folders = [folder for folder, _, _ in failed_trials(tmp_path / "store")]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(PermissionError):
            forget_failures(folders, tmp_path / "trials")
    assert listed(tmp_path / "store") == before
