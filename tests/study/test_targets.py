"""Names of rules, as the workflow's own files have them."""

from pathlib import Path

import pytest

from plumbline.study.targets import RuleNames


@pytest.mark.parametrize("own", [True, False], ids=["its own workflow", "the packaged workflow"])
def test_those_of_a_workflow(own: bool, tmp_path: Path) -> None:
    if own:
        (tmp_path / "workflow").mkdir()
        (tmp_path / "workflow/Snakefile").write_text("rule first:\n    input: 'x'\nif X:\n    checkpoint second:\n")
        (tmp_path / "workflow/more.smk").write_text(
            'for one in MANY:\n    rule:\n        name:\n            f"many-{one}"'
        )
    found = RuleNames.read(tmp_path)
    ours = {"first", "second", "many-x"}
    theirs = {"all", "claims", "trials-x"}
    assert {name for name in ours | theirs if found.have(name)} == (ours if own else theirs)
