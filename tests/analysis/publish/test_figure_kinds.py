"""The page of figures: every kind is there, with an example and a use that works."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.analysis.publish.figure_kinds import FigureKinds, least_use
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.registry.catalogue import catalogue
from plumbline.study.experiments import Experiment, Study

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "figures.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### ([\w-]+)\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)

SWEEP = {"metric": "regret", "label": "regret", "parameter": "alpha", "logarithmic": True}


def experiment(**fields: Any) -> Experiment:
    return parse(Experiment, {"title": "A *title*", **fields}, "made up")


def kinds(reference: Path, **experiments: Experiment) -> FigureKinds:
    for name, one in experiments.items():
        if one.title != "not drawn":
            (reference / name).mkdir()
            (reference / name / f"{name}.png").touch()
    return FigureKinds(reference, [Study(study="s", title="t", citation="c", experiments=experiments)])


def test_every_kind_has_a_section() -> None:
    """A new kind gets one in `docs/templates/guide/figures.md`."""
    assert sorted(name for name, _ in SECTIONS) == sorted(catalogue().figure)


@pytest.mark.parametrize(("kind", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_a_section_has_a_question_and_a_use_that_is_read(kind: str, section: str) -> None:
    assert re.match(r"\n\*[A-Z][^*]*\?\*\n", section)
    (use,) = re.findall(r"```yaml\n(.*?)```", section, flags=re.DOTALL)
    found = experiment(**yaml.safe_load(use))
    assert found.figure is not None
    assert found.figure.kind == kind
    catalogue().check("figure", kind, found.figure.options, "the page")
    for option in found.figure.options:
        less = {name: value for name, value in found.figure.options.items() if name != option}
        with pytest.raises(PlumblineError, match=option):
            catalogue().check("figure", kind, less, "the page")


def test_what_an_entry_says(tmp_path: Path) -> None:
    one = experiment(figure={"kind": "sweep", "options": SWEEP}, diagnostics={"snapshots": {"rounds": [2, 4]}})
    text = kinds(tmp_path, E=one).figure_kind("sweep", "E")
    assert "![A \\*title\\*](../../results/reference/E/E.png)" in text
    assert yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)[0]) == {
        "diagnostics": {"snapshots": {"rounds": [2, 4]}},
        "figure": {"kind": "sweep", "options": {name: SWEEP[name] for name in ("metric", "label", "parameter")}},
    }
    assert "| `logarithmic` | `boolean` | `false` |" in text


def test_what_needs_no_trials_names_its_illustration() -> None:
    both = {"illustration": {"kind": "improvement-map"}, "figure": {"kind": "improvement-map"}}
    assert least_use(experiment(**both), ()) == both


@pytest.mark.parametrize(
    ("kind", "example", "words"),
    [
        ("pies", "E", "unknown figure 'pies'"),
        ("curves", "F", "unknown experiment 'F'"),
        ("sweep", "E", "E is not of the kind sweep"),
        ("curves", "NONE", "NONE is not of the kind curves"),
        ("curves", "LATER", "LATER has no reference figure"),
    ],
)
def test_an_example_is_on_file_and_of_its_kind(tmp_path: Path, kind: str, example: str, words: str) -> None:
    curves = {"kind": "curves"}
    found = kinds(
        tmp_path, E=experiment(figure=curves), NONE=experiment(), LATER=experiment(figure=curves, title="not drawn")
    )
    with pytest.raises(PlumblineError, match=words):
        found.figure_kind(kind, example)
