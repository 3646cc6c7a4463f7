"""`plumbline diagnose`: a table that is read at 80 columns, and what is wrong in words."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import check_one_line

import plumbline as pb
from plumbline.cli.diagnosing import PARTS
from plumbline.core.errors import PlumblineError

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
    code, output, errors = run("diagnose", file, "--csv", "a.csv")
    assert (code, errors) == (0, "plumbline: wrote a.csv\n")
    assert max(map(len, output.splitlines())) <= 80
    assert "The forecasts are over-confident: errors are" in output
    assert "Recalibrated on earlier forecasts they would have been better" in output.replace("\n", " ")
    assert "not read: note." in output
    words = " ".join(line[:30].strip() for line in output.splitlines())
    for name in pd.read_csv("a.csv")["name"]:
        assert name in words, "names are whole and as in Python"


def test_no_fault(run: Run, tmp_path: Path) -> None:
    made(1.0).to_csv(tmp_path / "a.csv", index=False)
    assert "No fault found in 60 forecasts" in run("diagnose", "a.csv")[1]


@pytest.mark.slow
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


def test_files_are_there_when_the_reader_leaves(unread: Run, file: Path) -> None:
    code, _, errors = unread("diagnose", file, "--csv", "a.csv", "--json", "a.json")
    assert (code, errors) == (128 + signal.SIGPIPE, "")
    assert Path("a.csv").stat().st_size
    assert Path("a.json").stat().st_size


def test_the_guide_has_the_names_of_what_is_printed() -> None:
    text = (Path(__file__).parents[2] / "docs/guide/diagnose.md").read_text().replace("\\|", "|").replace("`", "")
    guide = " ".join(text.split())  # names go on in the next line
    names = {*pb.diagnose(made(1.0).assign(x1=np.arange(60.0)))["name"], *PARTS.values()} - {"tests", "description"}
    assert [name for name in names if re.sub(r" of \d+% intervals", "", name).lower() not in guide.lower()] == []


@pytest.mark.parametrize("forecasts", [[1, 2], None, {"y": [1]}, 3, b"a.csv", pd.Series([1.0])])
def test_what_is_neither_a_table_nor_a_path(forecasts: object) -> None:
    with pytest.raises(PlumblineError, match=r"a pandas DataFrame or the path of a CSV file is wanted \(got \w+\)"):
        pb.diagnose(forecasts)


@pytest.mark.parametrize("window", ["50", 50.5, float("nan"), None, np.float64(50)])
def test_a_window_is_a_whole_number(window: object) -> None:
    with pytest.raises(PlumblineError, match=r"window: a whole number is wanted \(got ('50'|50.5|nan|None|50.0)\)"):
        pb.diagnose(made(1.0), window=window)


def test_a_recalibrator_is_a_name() -> None:
    with pytest.raises(PlumblineError, match="unknown recalibrator 'gpp': did you mean 'gp'"):
        pb.diagnose(made(1.0), recalibrator="gpp")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("b.csv",), "no file b.csv"),
        ((".",), ". is a folder, not a CSV file"),
        (("a.csv", "--window", 10**21), "window: at most 1,000,000 (got "),
        (("a.csv", "--window", 5), "window: a recalibrator learns from 10 forecasts at least (got 5)"),
        (("a.csv", "--recalibrator", "isotinic"), "unknown recalibrator 'isotinic': did you mean 'isotonic'"),
        (("a.csv", "--csv", "a.csv"), "output a.csv is an input of this command too"),
    ],
)
def test_mistakes_are_one_line(run: Run, tmp_path: Path, options: tuple[object, ...], message: str) -> None:
    made(1.0).to_csv(tmp_path / "a.csv", index=False)
    check_one_line(run("diagnose", *options), message)
