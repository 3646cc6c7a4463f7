"""docs/design.md is true: every file, folder and function that it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plumbline"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`([a-z_]+/[\w/.*]+)`", PAGE)))
SECTION = PAGE.split("## Where to find things")[1]
WAYS = [line for line in SECTION.splitlines() if line.startswith("| W") or "? |" in line]


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(PAGE.splitlines()) <= 80


@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_there(path: str) -> None:
    assert list(ROOT.glob(path)) or list(PACKAGE.glob(path)), path


def test_there_are_six_ways_and_each_leads_to_a_file() -> None:
    assert len(WAYS) == 6
    assert all(re.search(r"`[a-z_]+/[\w/]+\.(py|yaml)`", way) for way in WAYS)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("acquisition/analytic.py", "def expected_improvement"),
        ("models/gp/marginal.py", "def vjp"),
        ("methods/wrappers/trust_region.py", '"trust-region"'),
        ("problems/radio.py", '"radio"'),
        ("store/keys.py", "def trial_key"),
        ("registry/source_digest.py", "NEUTRAL"),
    ],
)
def test_a_way_leads_to_what_it_promises(file: str, name: str) -> None:
    assert file in PAGE
    assert name in (PACKAGE / file).read_text(encoding="utf-8")


def test_the_experiment_of_a_way_is_in_the_study_that_it_names() -> None:
    assert "  CBO-F5:" in (ROOT / "config/studies/conformal.yaml").read_text(encoding="utf-8")
