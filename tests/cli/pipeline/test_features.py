"""The command that builds features, and those that its errors name."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import check_one_line

Run = Callable[..., tuple[int, str, str]]

DATASETS = """
letters:
  title: Letters of DNA
  file: letters.scale
  licence: mine
  citation: nobody
  features: {kind: dna, rows: 3}
"""
ROWS = "".join(
    f"{label} {' '.join(f'{i}:1' for i in range(first, 181, 3))}\n" for label, first in [(1, 1), (2, 2), (3, 3)]
)


def named(result: tuple[int, str, str]) -> list[str]:
    """Return the last command that an error names, without `plumbline`."""
    check_one_line(result)
    return shlex.split(re.findall(r"`plumbline ([^`]+)`", result[2])[-1])


@pytest.mark.parametrize("data", [(), ("--data", "my data")])
def test_each_error_names_the_command_that_helps(
    data: tuple[str, ...], run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a trial without features to the download, and back."""
    monkeypatch.setenv("PLUMBLINE_MIRROR", str(tiny / "mirror"))
    (tiny / "mirror").mkdir()
    (tiny / "mirror/letters.scale").write_text(ROWS)
    (tiny / "config/datasets.yaml").write_text(DATASETS)
    trial = ("trial", "--class", "random", "--problem", "lasso-dna", "-P", "dataset=letters", "--real-data", *data)
    assert "`plumbline features letters` builds them" in run(*trial)[2]
    build = ["features", "letters"]
    fetch = named(run(*build, *data))
    assert fetch == ["fetch", "letters", *data]
    assert run(*fetch)[0] == 0
    code, output, _ = run(*build, *data)
    assert (code, output) == (0, f"{data[-1] if data else 'data'}/features/letters.parquet: 3 rows\n")


def test_a_file_that_is_named_is_taken(run: Run, tiny: Path) -> None:
    (tiny / "config/datasets.yaml").write_text(DATASETS)
    (tiny / "own.scale").write_text(ROWS)
    assert run("features", "letters", "--raw", "own.scale")[0] == 0
    check_one_line(run("features", "letters", "--raw", "none.scale"), "built from none.scale, which is not there")


@pytest.mark.parametrize("model", ["cifar-10-images", "svhn-images", "selfies-vae-published"])
def test_a_model_names_the_download_that_it_lacks(model: str, run: Run, root: Path, tmp_path: Path) -> None:
    result = run("model", model, "--data", tmp_path)
    command = named(result)
    assert (command[0], command[2:]) == ("fetch", ["--data", str(tmp_path)])
    datasets = (root / "config/datasets.yaml").read_text()
    (file,) = re.findall(r"built from \S+/raw/(\S+),", result[2])
    assert re.search(rf"^{command[1]}:\n(  .*\n)*  file: {re.escape(file)}$", datasets, re.MULTILINE)
