"""The site builds offline, with warnings as errors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path, one_core: dict[str, str]) -> None:
    site = tmp_path / "site"
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, "docs", str(site)]
    done = subprocess.run(command, cwd=ROOT, env=one_core, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    for page in ("index", "search", "claims/K1", "experiments/CBO-F5", "api/plumbline.core"):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img)[^>]* src=\"([^\"]*)|<link[^>]* href=\"([^\"]*)", text)
        assert [one for one in loaded if "//" in "".join(one)] == [], page
    results = (site / "results" / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<a class="mention[^>]* href="\.\./claims/C9\.html">C9</a>', results)
    assert re.search(r'<a class="mention[^>]* href="\.\./experiments/CBO-F5\.html">CBO-F5</a>', results)
    assert re.search(r'<table class="[^"]*cards', results)
    assert '<span class="head-of-cell">what holds: </span>' in results
