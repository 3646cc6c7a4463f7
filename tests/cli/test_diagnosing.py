"""`plumbline diagnose`: a table that is read at 80 columns, and what is wrong in words."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import check_one_line

import plumbline as pb

Run = Callable[..., tuple[int, str, str]]


def made(factor: float, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    mean, sd = rng.standard_normal(n), 0.1 + rng.random(n)
    return pd.DataFrame({"y": mean + factor * sd * rng.standard_normal(n), "mean": mean, "sd": sd, "note": "a"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made(2.0).to_csv(tmp_path / "forecasts.csv", index=False)
    return tmp_path / "forecasts.csv"


def test_what_is_printed(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, output, errors = run("diagnose", file)
    assert (code, errors) == (0, "")
    assert max(map(len, output.splitlines())) <= 80
    assert "The forecasts are over-confident: errors are" in output
    assert "Recalibrated on earlier forecasts they would have been better" in output.replace("\n", " ")
    assert "not read: note." in output


def test_no_fault(run: Run, tmp_path: Path) -> None:
    made(1.0).to_csv(tmp_path / "a.csv", index=False)
    assert "No fault found in 60 forecasts" in run("diagnose", "a.csv")[1]


def test_files_have_what_python_has(run: Run, file: Path) -> None:
    assert run("diagnose", file, "--csv", "a.csv", "--json", "a.json", "--window", 20)[0] == 0
    found = pb.diagnose(made(2.0), window=20)
    written = pd.read_csv("a.csv")
    assert list(written["name"]) == list(found["name"])
    assert written["value"].to_numpy() == pytest.approx(found["value"].to_numpy(), rel=1e-4)
    content = json.loads(Path("a.json").read_text())
    assert content["verdict"] == found.attrs["verdict"]
    assert content["forecasts"] == 60
    assert [one["name"] for one in content["measures"]] == list(found["name"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("b.csv",), "no file b.csv"),
        (("a.csv", "--window", 5), "window: a recalibrator learns from 10 forecasts at least (got 5)"),
        (("a.csv", "--recalibrator", "isotinic"), "unknown recalibrator 'isotinic': did you mean 'isotonic'"),
        (("a.csv", "--csv", "a.csv"), "output a.csv is an input of this command too"),
    ],
)
def test_mistakes_are_one_line(run: Run, tmp_path: Path, options: tuple[object, ...], message: str) -> None:
    made(1.0).to_csv(tmp_path / "a.csv", index=False)
    check_one_line(run("diagnose", *options), message)
