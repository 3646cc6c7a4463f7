"""Reference results of methods whose definition has changed since."""

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.analysis.evidence.former import FORMER_VARIANTS, former_definitions, former_in_words
from plumbline.methods.conformal.variants import CODE
from plumbline.methods.sparse.options import DEPARTURES
from plumbline.methods.variants import departures_of
from plumbline.study.plan import load_plan

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "results" / "reference"
ON_FILE = sorted(path.parent.name for path in REFERENCE.glob("*/provenance.json"))


PUBLISHED: dict[str, tuple[str, ...]] = {"AABO": DEPARTURES, "CBO": CODE}
"""The departures that `code` stands for, by document."""


@pytest.fixture(scope="module")
def methods() -> dict[str, Any]:
    """The options of each method's entry, and of its base where it has one."""
    plan = load_plan({"preset": "paper", "data": "real", "studies": ["approximation", "conformal"]}, ROOT)
    return {
        name: method.ref.options["base"].get("options", {}) if "base" in method.ref.options else method.ref.options
        for name, method in plan.library.methods.items()
    }


def test_words_of_the_methods_that_are_shown(tmp_path: Path) -> None:
    about = {FORMER_VARIANTS: {"a": ["one", "two"], "b": ["three"], "d": ["one", "two"]}}
    assert former_definitions(about, ["c", "a"]) == {"a": "one, two"}
    assert former_definitions({}, ["a"]) == {}
    (tmp_path / "provenance.json").write_text(json.dumps(about))
    assert former_in_words(tmp_path, ["c"]) == ""
    assert former_in_words(tmp_path, ["b"]) == "b ran with the departures three: its definition has changed since"
    words = (
        "b ran with the departures three; a, d ran with the departures one, two: their definitions have changed since"
    )
    assert former_in_words(tmp_path, ["b", "c", "a", "d"]) == words


@pytest.mark.parametrize("name", ON_FILE)
def test_former_variants_are_variants_that_no_entry_of_the_name_has(name: str, methods: dict[str, Any]) -> None:
    about = json.loads((REFERENCE / name / "provenance.json").read_text())
    for method, variant in about.get(FORMER_VARIANTS, {}).items():
        code = PUBLISHED[name.partition("-")[0]]
        assert departures_of(tuple(variant), code) != departures_of(methods[method].get("variant", "paper"), code)
