"""Failures by a limit on the seconds of a call: forgotten under a longer limit, and no others."""

import time
from pathlib import Path

import pytest

from plumbline.core.call_timeout import call_timeout
from plumbline.core.culprits import plugin_code
from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.trials.timeouts import timeout_of_trials


def failed(store: Path, reason: str) -> TrialFolder:
    folder = TrialFolder(store, "0" * 16)
    folder.write_json(folder.error_path, {"error": reason})
    return folder


@pytest.mark.parametrize(
    ("reason", "seconds", "stays"),
    [
        ("TimeoutError: no answer within 5 s (mine.py, line 3)", 4.9, True),
        ("TimeoutError: no answer within 5 s (mine.py, line 3)", 5, True),
        ("TimeoutError: no answer within 5 s (mine.py, line 3)", 5.1, False),
        ("TimeoutError: no answer within 1.2e+06 s", 1e7, False),
        ("TimeoutError: no answer within 5 s", None, False),
        ("TimeoutError: the socket", None, True),
        ("TimeoutError: no answer within a few s", None, True),
        ("ValueError: TimeoutError: no answer within 5 s", None, True),
    ],
)
def test_failures_by_a_shorter_limit_are_forgotten(
    reason: str, seconds: float | None, stays: bool, tmp_path: Path
) -> None:
    folder = failed(tmp_path, reason)
    with timeout_of_trials(seconds, [folder, TrialFolder(tmp_path, "1" * 16)]):
        assert folder.failed == stays


def test_the_words_are_those_of_the_limit(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError) as caught, call_timeout(0.05), plugin_code("method 'mine'"):
        time.sleep(5)
    folder = failed(tmp_path, f"TimeoutError: {caught.value}")
    with timeout_of_trials(0.06, [folder]):
        assert not folder.failed


@pytest.mark.parametrize("name", ["error.json", "records.parquet"])
def test_damaged_results_are_left_to_the_trial(name: str, tmp_path: Path) -> None:
    folder = failed(tmp_path, "TimeoutError: no answer within 5 s")
    (folder.path / name).write_bytes(b"PAR1 and no more")
    with timeout_of_trials(None, [folder]):
        assert folder.error_path.is_file()
        assert (folder.path / name).read_bytes() == b"PAR1 and no more"


def test_an_impossible_limit_forgets_nothing(tmp_path: Path) -> None:
    folder = failed(tmp_path, "TimeoutError: no answer within 5 s")
    with pytest.raises(PlumblineError, match="timeout: seconds above 0"), timeout_of_trials(-1, [folder]):
        pass
    assert folder.failed
