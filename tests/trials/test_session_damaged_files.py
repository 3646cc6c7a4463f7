"""Whatever happens to a file of a trial: the same records in the end, or one line; nothing is lost."""

import random
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from handy import Make, bytes_of, each, interrupted

from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.store.spec import TrialSpec
from plumbline.trials import design_cache, run_trial

NOISY = {"name": "branin", "options": {"noise_std": 2.0}}
RESULTS = ("records.parquet", "timings.parquet", "SHA256SUMS")
UNFINISHED = ("checkpoint.pt", "log.arrow", "design")
CASES = 60


@pytest.fixture(scope="module")
def spec(cheap_spec: Make) -> TrialSpec:
    problem = {"name": "forrester", "options": {"noise_std": 0.5}}
    return cheap_spec(problem, "random", rounds=3, size=3)


@pytest.fixture(scope="module")
def finished(spec: TrialSpec, tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    root = tmp_path_factory.mktemp("finished")
    return run_trial(spec, root, root)


@pytest.fixture(scope="module")
def unfinished(spec: TrialSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a trial that was killed after its second round, with its initial design in the cache."""
    root = tmp_path_factory.mktemp("unfinished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_cache, "LONG", 0.0)
        with interrupted(2, "after the save", KeyboardInterrupt()) as raised, suppress(KeyboardInterrupt):
            run_trial(spec, root, root, ration=each)
    assert raised
    return root


def place(store: Path, key: str, name: str) -> Path:
    (path,) = store.glob("designs/*.pt") if name == "design" else [store / key / name]
    return path


def damages(names: tuple[str, ...], cases: int) -> Iterator[tuple[str, str, random.Random]]:
    """Yield a file, what is done to it, and a stream that says where."""
    for case in range(cases):
        stream = random.Random(case)
        yield names[case % len(names)], stream.choice(["flip", "flip", "flip", "cut", "grow"]), stream


def damage(path: Path, how: str, stream: random.Random) -> bytes:
    content = bytearray(path.read_bytes())
    if how == "flip":
        content[stream.randrange(len(content))] ^= stream.randrange(1, 256)
    elif how == "cut":
        del content[stream.randrange(len(content)) :]
    else:
        content += stream.randbytes(stream.randrange(1, 9))
    path.write_bytes(content)
    return bytes(content)


def run_again(spec: TrialSpec, store: Path) -> tuple[TrialFolder, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = run_trial(spec, store, store)
        folder.table(spec)
    return folder, [str(one.message) for one in caught]


@pytest.mark.slow
def test_damaged_results_are_never_used_and_never_lost(spec: TrialSpec, finished: TrialFolder, tmp_path: Path) -> None:
    whole = bytes_of(finished)
    for case, (name, how, stream) in enumerate(damages(RESULTS, CASES)):
        store = tmp_path / str(case)
        shutil.copytree(finished.path, store / finished.key)
        content = damage(store / finished.key / name, how, stream)
        folder, said = run_again(spec, store)
        assert bytes_of(folder) == whole, (case, name, how)
        assert all(str(folder.path) in line and "\n" not in line for line in said)
        if name in ("records.parquet", "timings.parquet"):
            (line,) = said
            assert f"{name} cannot be read" in line
            assert line.endswith("the trial runs again")
            assert (folder.path / f"{name}.damaged").read_bytes() == content
        assert run_again(spec, store)[1] == [], "the second time all is well"


@pytest.mark.slow
def test_a_trial_goes_on_from_what_is_sound(
    spec: TrialSpec, finished: TrialFolder, unfinished: Path, tmp_path: Path
) -> None:
    whole, key = bytes_of(finished), finished.key
    for case, (name, how, stream) in enumerate(damages(UNFINISHED, CASES)):
        store = tmp_path / str(case)
        shutil.copytree(unfinished, store)
        path = place(store, key, name)
        content = damage(path, how, stream)
        if name == "design":  # else it is not read
            (store / key / "checkpoint.pt").unlink()
        folder, said = run_again(spec, store)
        assert bytes_of(folder) == whole, (case, name, how)
        if (name, how) == ("log.arrow", "grow"):  # rows that were being appended do not count
            assert said == []
            continue
        (line,) = said
        assert f"{path} cannot be read" in line
        assert "\n" not in line
        assert path.with_name(f"{path.name}.damaged").read_bytes() == content


@pytest.mark.slow
def test_damaged_pictures_and_provenance_are_one_line(cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("forrester", "ei", rounds=1, size=3, snapshots={"rounds": [1], "points": 5})
    finished = run_trial(spec, tmp_path / "finished", tmp_path)
    for case, (name, how, stream) in enumerate(damages(("snapshots.parquet", "provenance.json"), CASES)):
        folder = TrialFolder(tmp_path / str(case), finished.key)
        shutil.copytree(finished.path, folder.path)
        damage(folder.path / name, how, stream)
        read = folder.snapshots if name == "snapshots.parquet" else folder.provenance
        with pytest.raises(PlumblineError, match=f"{name} is damaged") as caught:
            read()
        assert "\n" not in str(caught.value)
        assert folder.table(spec).num_rows == finished.table(spec).num_rows, "the records are sound"


@pytest.mark.parametrize("names", [("records.parquet",), ("timings.parquet",), RESULTS])
def test_results_of_another_trial_do_not_count(
    names: tuple[str, ...], cheap_spec: Make, finished: TrialFolder, spec: TrialSpec, tmp_path: Path
) -> None:
    other = run_trial(spec.with_seed(1), tmp_path / "other", tmp_path)
    shutil.copytree(finished.path, tmp_path / "store" / finished.key)
    for name in names:
        shutil.copyfile(other.path / name, tmp_path / "store" / finished.key / name)
    with pytest.raises(PlumblineError, match=r"cannot be read .*: move the trial's folder away"):
        TrialFolder(tmp_path / "store", finished.key).table(spec)
    folder, (line,) = run_again(spec, tmp_path / "store")
    assert "checksum" in line or f"it is of trial {other.key}, not of this one" in line
    assert bytes_of(folder) == bytes_of(finished)


def test_a_checkpoint_of_another_trial_does_not_count(
    spec: TrialSpec, finished: TrialFolder, unfinished: Path, tmp_path: Path
) -> None:
    other = spec.with_seed(1)
    with interrupted(2, "after the save", KeyboardInterrupt()), suppress(KeyboardInterrupt):
        run_trial(other, tmp_path / "other", tmp_path, ration=each)
    (theirs,) = [path.parent for path in (tmp_path / "other").glob("*/checkpoint.pt")]
    shutil.copytree(unfinished, tmp_path / "store")
    for name in ("checkpoint.pt", "log.arrow"):
        shutil.copyfile(theirs / name, tmp_path / "store" / finished.key / name)
    folder, (line,) = run_again(spec, tmp_path / "store")
    assert f"it is of trial {theirs.name}, not of this one" in line
    assert bytes_of(folder) == bytes_of(finished)


def test_a_design_of_another_name_does_not_count(
    spec: TrialSpec, finished: TrialFolder, unfinished: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_cache, "LONG", 0.0)
        run_trial(spec.with_seed(1), tmp_path / "other", tmp_path)
    (theirs,) = (tmp_path / "other").glob("designs/*.pt")
    (ours,) = unfinished.glob("designs/*.pt")
    (tmp_path / "store" / "designs").mkdir(parents=True)
    shutil.copyfile(theirs, tmp_path / "store" / "designs" / ours.name)
    folder, (line,) = run_again(spec, tmp_path / "store")
    assert "not of this one" in line
    assert bytes_of(folder) == bytes_of(finished)


def test_results_of_an_older_version_have_no_checksums(spec: TrialSpec, finished: TrialFolder, tmp_path: Path) -> None:
    shutil.copytree(finished.path, tmp_path / finished.key)
    (tmp_path / finished.key / "SHA256SUMS").unlink()
    folder, said = run_again(spec, tmp_path)
    assert said == []
    assert not folder.sums_path.exists(), "it was not run again"
    folder.records_path.write_bytes(folder.records_path.read_bytes()[:-100])
    folder, (line,) = run_again(spec, tmp_path)
    assert "records.parquet cannot be read" in line
    assert bytes_of(folder) == bytes_of(finished)
