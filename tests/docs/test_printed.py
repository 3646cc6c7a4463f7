"""What the guide prints as the output of a command, and the cost that pages state, are what the commands say."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.cli.app import read_plan
from plumbline.cli.main import main
from plumbline.cli.skeletons import write_workspace
from plumbline.study.costs import Estimate, estimates

ROOT = Path(__file__).parents[2]
RUNNING = (ROOT / "docs" / "guide" / "running.md").read_text(encoding="utf-8")
DIAGNOSE = (ROOT / "docs" / "guide" / "diagnose.md").read_text(encoding="utf-8")
PRINTED = re.findall(r"```sh\n(plumbline [^\n]+)\n```\n\n```\n(.*?)```", RUNNING, re.DOTALL)

Command = Callable[[str], str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command line in the repository, and gives its output."""
    monkeypatch.chdir(ROOT)

    def call(line: str) -> str:
        monkeypatch.setattr("sys.argv", line.split())
        main()
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(("line", "printed"), PRINTED, ids=lambda text: text.split()[1])
def test_the_guide_has_what_is_printed(line: str, printed: str, command: Command) -> None:
    assert command(f"{line} --experiment CBO-X1").startswith(printed)


def test_the_guide_has_outputs() -> None:
    assert {line.split()[1] for line, _ in PRINTED} == {"compare", "seeds"}


@pytest.mark.slow
def test_the_share_of_failed_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the guide says of its example; under the BLAS kernels of another processor its EI has .44 (.32 to .55)."""
    section = DIAGNOSE.partition("## Does the search find the maximum?")[2]
    entries, code = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("yaml", "python"))  # type: ignore[index]
    stated = re.search(r"it is (\.\d+) for EI \((\.\d+) to (\.\d+)\), and (\d+) for EI whose", section)
    assert stated
    write_workspace(tmp_path / "study")
    (tmp_path / "study/config/methods/mine.yaml").write_text(entries)
    monkeypatch.chdir(tmp_path / "study")
    names: dict[str, Any] = {}
    *before, last = code.rstrip().splitlines()
    exec("\n".join(before), names)
    ei, informed = eval(last, names).to_dict("records")
    found = [ei["value"], ei["low"], ei["high"], informed["value"]]
    assert found == pytest.approx([float(number) for number in stated.groups()], abs=0.15)
    assert informed["value"] == 0


def planned(preset: str, *besides: str) -> list[Estimate]:
    """Estimates of a preset's experiments, of its models, and of `all`, where nothing has been run yet."""
    files = [str(ROOT / "config" / f"{name}.yaml") for name in ("config", preset)]
    return estimates(read_plan(",".join([*files, *besides])).run, Path("nowhere"), Path("nowhere"))


@pytest.fixture(scope="module")
def hours() -> dict[str, float]:
    """Core-hours at desk scale."""
    return {one.name: one.cpu_hours for one in planned("desk")}


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("docs/guide/running.md", r"real data \| (\d+) core-hours, of which the atlas takes (\d+)"),
        ("docs/glossary.md", r"\*desk\* for some (\d+)\s+core-hours"),
        ("config/README.md", r"\*desk\* takes (\d+) core-hours, (\d+) of them the atlas"),
    ],
)
def test_the_cost_of_desk(file: str, pattern: str, hours: dict[str, float]) -> None:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert found, file
    atlas = sum(cost for name, cost in hours.items() if name.startswith("ATLAS-"))
    for stated, cost in zip(found.groups(), (hours["all"], atlas), strict=False):
        assert int(stated) == pytest.approx(cost, rel=0.05)


@pytest.mark.parametrize("studies", re.findall(r"^\| ([a-z, ]+) \| [\d,]+ \|", RUNNING, re.MULTILINE))
def test_the_cost_at_the_papers_scale(studies: str) -> None:
    row = re.search(rf"^\| {studies} \| ([\d,]+) \| ([\d,]+).* \| ([\d,]+) \|$", RUNNING, re.MULTILINE)
    every = planned("paper", json.dumps({"studies": studies.split(", ")}))[-1]
    stated = [int(number.replace(",", "")) for number in row.groups()] if row else []
    assert stated == pytest.approx([every.trials, every.cpu_hours, every.unknown], rel=0.05)
