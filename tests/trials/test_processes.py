"""Trials in several processes are those of one, and a process that is killed is one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.registry.references import MethodRef
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.processes import run_in_processes

KILLED = """
import os
import time
from pathlib import Path


class Killed:
    def tell(self, x, y):
        pass

    def ask(self):
        while not Path(__file__).with_name("now").exists():
            time.sleep(0.01)
        os._exit(9)
"""
"""An optimiser that ends its process, once there is a file `now` beside it: others that run there would end with it."""


@pytest.mark.slow
def test_trials_in_processes(
    cheap_spec: Callable[..., TrialSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "killed_case.py").write_text(KILLED)
    monkeypatch.syspath_prepend(tmp_path)
    sound = cheap_spec(method="random")
    method = MethodRef(name="ask-tell", options={"optimiser": "killed_case:Killed"})
    found = run_in_processes([sound, sound.model_copy(update={"method": method})], tmp_path / "store", tmp_path, 2)
    folder, alone = next(found), run_trial(sound, tmp_path / "alone", tmp_path)
    assert folder.records_path.read_bytes() == alone.records_path.read_bytes()
    (tmp_path / "now").touch()
    with pytest.raises(PlumblineError, match="a process was killed"):
        next(found)
