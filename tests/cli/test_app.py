"""What commands share: the configuration of `--config`."""

import json
import os
import random
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import METHODS, STUDY, TASKS, check_one_line
from typer.main import get_command

from plumbline.cli.app import app, config_layers, printing_aside
from plumbline.core.errors import PlumblineError
from plumbline.tracking.addresses import LOCAL, local

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_and_json_in_any_order(here: Path) -> None:
    """Commas, braces and quotes inside JSON, and commas inside the names of files that there are, part nothing."""
    names = [
        "a.yaml",
        "b b.yaml",
        "with,comma.yaml",
        "two,commas,.yaml",
        "sub/c.yaml",
        'q"uote.yaml',
    ]
    for name in names:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("{}")
    mappings: list[dict[str, Any]] = [{}, {"a": "x,y"}, {"b": ["}", "{,"], "c": {"d": [1, 2]}}, {'"': '\\",'}]
    draw = random.Random(0)
    for _ in range(300):
        wanted = [draw.choice([Path(draw.choice(names)), draw.choice(mappings)]) for _ in range(draw.randint(1, 5))]
        text = [json.dumps(one, indent=draw.choice([None, 1])) if isinstance(one, dict) else str(one) for one in wanted]
        assert config_layers(draw.choice([",", ", ", " , "]).join(text)) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "--config has an empty part: commas separate files and JSON"),
        (" ", "--config has an empty part"),
        ("a.yaml,", "--config has an empty part"),
        (",a.yaml", "--config has an empty part"),
        ("a.yaml,,a.yaml", "--config has an empty part"),
        ("{},", "--config has an empty part"),
        ("no,b.yaml", "no file no: commas separate files and JSON"),
        ('{"a": 1', "--config is no JSON from "),
        ("{'a': 1}", "--config is no JSON from "),
        ('{"a": 1, "a": 2}', "'a' is there twice"),
        ("{} a.yaml", "a comma is wanted between JSON and what follows it"),
        ("{}{}", "a comma is wanted"),
        ("{" * 100_000, "--config is no JSON"),
        ('{"a":' * 100_000, "--config is no JSON"),
        ('{"a": ' + "9" * 5000 + "}", "--config is no JSON"),
    ],
)
def test_what_is_no_list_of_files_and_json(text: str, reason: str, here: Path) -> None:
    (here / "a.yaml").write_text("{}")
    with pytest.raises(PlumblineError, match=f"^.*{reason}") as error:
        config_layers(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_a_later_layer_is_above_an_earlier_one(run: Run, tiny: Path) -> None:
    (tiny / "paper.yaml").write_text("preset: paper\n")
    (tiny / "a,b.yaml").write_text("experiments: [TINY-T1]\n")
    for config, named in (
        ("config/config.yaml,paper.yaml", "preset paper"),
        ('config/config.yaml,paper.yaml,{"preset": "quick"}', "preset quick"),
        ('{"preset": "desk"},config/config.yaml', "preset quick"),
    ):
        code, output, errors = run("plan", "--config", config)
        assert (code, errors) == (0, "")
        assert output.startswith(named)
    output = run("plan", "--config", "config/config.yaml,a,b.yaml")[1]
    assert "TINY-T1" in output
    assert "TINY-F1" not in output
    check_one_line(run("plan", "--config", 'config/config.yaml,{"chunks": 1}'), "--config: unknown field 'chunks'")


@pytest.mark.slow
def test_outside_of_a_workspace_there_is_what_comes_with_the_package(run: Run, root: Path) -> None:
    code, output, _ = run("verdicts", "--csv")
    assert code == 0
    assert output == run("verdicts", root / "results/reference/claims.csv", "--csv")[1]


def test_the_workspace_is_the_one_around_the_configuration(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    for folder in ("studies", "methods", "tasks"):
        (checkout / "config" / folder).mkdir(parents=True)
    elsewhere.mkdir()
    for name, text in (("methods", METHODS), ("tasks", TASKS), ("studies", STUDY)):
        (checkout / f"config/{name}/tiny.yaml").write_text(text)
    for name in ("datasets", "models"):
        (checkout / f"config/{name}.yaml").write_text("{}\n")
    (checkout / "config/config.yaml").write_text("studies: [tiny]\n")
    monkeypatch.chdir(elsewhere)
    code, output, errors = run("plan", "--config", checkout / "config/config.yaml")
    assert (code, errors) == (0, "")
    assert "TINY-T1" in output


COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
VALUES = [
    (name, one)
    for name, command in COMMANDS.items()
    for one in command.params
    if one.param_type_name == "option" and not getattr(one, "is_flag", False)
]


@pytest.mark.parametrize("name", COMMANDS)
def test_values_in_the_help_have_no_names_of_python(name: str, run: Run) -> None:
    code, output, _ = run(name, "--help")
    assert code == 0
    assert not re.search(r"<(str|Path|list|int range|float range)|list\[|FILES|A,B", output)


@pytest.mark.parametrize(("name", "option"), [one for one in VALUES if "int" in str(one[1].type_descriptor.annotation)])
@pytest.mark.parametrize("value", ["abc", "-99999"])
def test_an_error_of_a_number_names_the_option_and_the_value(name: str, option: Any, value: str, run: Run) -> None:
    if option.min is not None or value == "abc":  # other numbers are judged by what they are for
        check_one_line(run(name, option.opts[0], value), f"'{option.opts[0]}'", f"(got {value})")


@pytest.mark.parametrize("option", ["--csv", "--json", "--latex"])
def test_a_file_in_a_folder_that_is_not_there(option: str, run: Run, tmp_path: Path) -> None:
    result = run("compare", "--methods", "ucb,cucb", "--task", "levy-20", option, "nope/x")
    check_one_line(result, f"'{option}'", "there is no folder nope: make it, or name another")
    assert not (tmp_path / "nope").exists()


def test_in_each_folder_of_a_workspace_defaults_are_the_workspaces(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "workspace" / "notes" / "deep"
    inside.mkdir(parents=True)
    (tmp_path / "workspace" / "config" / "studies").mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert run("schema")[0] == 0
    assert (tmp_path / "workspace" / "config" / "schemas" / "study.schema.json").is_file()
    assert local() == f"sqlite:///{tmp_path / 'workspace' / 'results' / 'mlflow.db'}"
    for command in (("redraw",), ("ui",), ("reference",)):
        code, _, errors = run(*command)
        assert code != 0
        assert str(tmp_path / "workspace") in errors, command
    assert list(inside.iterdir()) == []
    monkeypatch.chdir(tmp_path / "workspace")
    assert local() == LOCAL


@pytest.mark.parametrize("data", [True, False])
def test_what_a_users_code_prints_is_no_data(data: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """Also what it prints past `sys.stdout`, by its own programs, and before it fails."""
    with suppress(ZeroDivisionError), printing_aside(data):
        print("measuring")
        print("past", file=sys.__stdout__, flush=not data)
        os.system("echo started")
        print(1 / 0)
    print("x,y")
    aside = ["measuring", "past", "started"]
    out, err = (text.split() for text in capfd.readouterr())
    assert (sorted(out), sorted(err)) == (sorted(["x,y"] + aside * (not data)), sorted(aside * data))
