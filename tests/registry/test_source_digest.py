"""What a digest of source follows, and what it overlooks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from plumbline.registry import source_digest as sources
from plumbline.registry.source_digest import NEUTRAL, closure, package_digest, source_digest

FILES = {
    "__init__.py": "",
    "base.py": '"""Base."""\n\ndef double(x):\n    """Twice."""\n    return 2 * x\n',
    "records.py": "def write(x):\n    return x\n",
    "parts/__init__.py": "from fake.base import double\n",
    "parts/one.py": "from fake.parts import three\n\ndef one():\n    return three.three()\n",
    "parts/two.py": "def two():\n    from fake import records\n    import fake.lonely\n    return 2\n",
    "parts/three.py": "import torch\n\nclass Three:\n    x: int = 3\n\ndef three():\n    return Three.x\n",
    "lonely.py": "y = 1\n",
    "circle.py": "from fake.circle_back import f\n",
    "circle_back.py": "from fake import circle\n",
}


class Fake:
    """A package on disk that `plumbline.registry.source_digest` takes for its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        forget()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def digests(self) -> dict[str, str]:
        forget()
        names = ["base", "records", "parts.one", "parts.two", "parts.three", "lonely"]
        return {name: source_digest(f"fake.{name}") for name in names}

    def changed_by(self, change: Callable[[], None]) -> set[str]:
        before = self.digests()
        change()
        after = self.digests()
        return {name for name in before if before[name] != after[name]}


def forget() -> None:
    for cached in (sources._tree, sources._imports, sources._digest, sources.source_digest, package_digest):
        cached.cache_clear()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(sources, "PACKAGE", "fake")
    monkeypatch.setattr(sources, "ROOT", tmp_path / "fake")
    monkeypatch.setattr(sources, "NEUTRAL", frozenset({"fake.records"}))
    yield Fake(tmp_path / "fake")
    forget()


def test_closures(fake: Fake) -> None:
    assert closure("fake.base") == ["fake.base"]
    three = ["fake", "fake.base", "fake.parts", "fake.parts.three"]
    # What a package imports counts for every module that imports one of its modules.
    assert closure("fake.parts.one") == [*three[:3], "fake.parts.one", "fake.parts.three"]
    assert closure("fake.parts.two") == ["fake", "fake.lonely", "fake.parts.two"]
    assert closure("fake.circle") == ["fake", "fake.circle", "fake.circle_back"]
    assert closure("fake.records") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "dependants"),
    [
        ("base.py", "2 * x", "3 * x", {"base", "parts.one"}),
        ("base.py", "double(x)", "double(x=1)", {"base", "parts.one"}),
        ("parts/three.py", "x: int = 3", "x: int = 4", {"parts.three", "parts.one"}),
        ("parts/one.py", "three.three()", "-three.three()", {"parts.one"}),
        ("parts/two.py", "return 2", "return 1", {"parts.two"}),
        ("lonely.py", "y = 1", "y = 2", {"lonely", "parts.two"}),
        ("records.py", "return x", "return None", set()),
    ],
)
def test_an_edit_changes_its_dependants_only(fake: Fake, file: str, old: str, new: str, dependants: set[str]) -> None:
    assert fake.changed_by(lambda: fake.edit(file, old, new)) == dependants


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Base."""', '"""Something else."""'),
        ('"""Base."""\n', "# a comment\n"),
        ('    """Twice."""\n', ""),
        ("    return 2 * x", "    # why not\n    return (2\n            * x)"),
        ("def double(x):", "\n\n\ndef double(  x  ) :"),
        ("return 2 * x", "return 2 * x  # noqa"),
    ],
)
def test_layout_does_not_count(fake: Fake, old: str, new: str) -> None:
    assert fake.changed_by(lambda: fake.edit("base.py", old, new)) == set()


def test_a_string_that_is_used_counts(fake: Fake) -> None:
    fake.write("base.py", 'NAME = "a"\n')
    assert fake.changed_by(lambda: fake.edit("base.py", '"a"', '"b"')) == {"base", "parts.one"}


def test_a_new_import_is_followed(fake: Fake) -> None:
    fake.write("parts/two.py", "import fake.base\n")
    assert fake.changed_by(lambda: fake.edit("base.py", "2 * x", "3 * x")) >= {"parts.two"}


def test_relative_names_of_functions_are_no_modules(fake: Fake) -> None:
    assert "fake.base.double" not in closure("fake.parts")


def test_the_digest_of_everything(fake: Fake) -> None:
    before = package_digest()
    forget()
    assert package_digest() == before
    fake.edit("base.py", '"""Base."""', '"""Other."""')
    assert package_digest() != before


def test_a_digest_is_kept_for_the_next_process(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = source_digest("fake.parts.one")
    forget()
    with monkeypatch.context() as patched:
        patched.setattr(sources, "_digest", None)
        assert source_digest("fake.parts.one") == digest
    for path in (tmp_path / "cache").rglob("digests/*"):
        path.write_text("half of i")
    forget()
    assert source_digest("fake.parts.one") == digest


def test_a_home_that_cannot_be_written_keeps_none(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert len(source_digest("fake.base")) == 16


def test_this_package() -> None:
    for module in NEUTRAL:
        assert sources._path(module) is not None, f"{module} is neutral and does not exist"
    everything = closure("plumbline.methods.calibrated.method", "plumbline.problems.synthetic", "plumbline.trials")
    assert {"plumbline.methods.gp.single_outcome", "plumbline.models.gp.process", "plumbline.core.seeding"} <= set(
        everything
    )
    assert not NEUTRAL & set(everything)
    assert not [module for module in everything if "analysis" in module or "tracking" in module]
    assert "plumbline.methods.calibrated.method" not in closure("plumbline.methods.baselines", "plumbline.trials")


def test_the_loop_names_no_method_and_no_problem() -> None:
    """Otherwise editing one would invalidate the trials of all."""
    loop = closure("plumbline.trials")
    kinds = ("plumbline.methods", "plumbline.problems", "plumbline.designs", "plumbline.spaces")
    allowed = {*kinds, *(f"plumbline.problems.{name}" for name in ("build", "evaluation", "options"))}
    allowed |= {"plumbline.spaces.box", "plumbline.spaces.search"}
    assert {module for module in loop if module.startswith(kinds)} <= allowed


def test_what_only_says_what_things_are_is_in_no_digest() -> None:
    """A field that is added to it changes no trial that does not use it."""
    bases = {f"plumbline.{name}.base" for name in ("methods", "problems", "designs", "spaces")}
    assert not bases & set(
        closure("plumbline.methods.conformal.method", "plumbline.problems.radio", "plumbline.trials")
    )


def test_own_imports_are_absolute(root: Path) -> None:
    """A relative import would not be followed."""
    import ast

    for path in (root / "src/plumbline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}:{node.lineno}"


def test_what_keeps_trials_is_not_what_they_compute() -> None:
    followed = closure("plumbline.trials.trial")
    assert {"plumbline.trials.trial", "plumbline.trials.diagnostics", "plumbline.problems.evaluation"} <= set(followed)
    assert {"plumbline.methods.ask", "plumbline.problems.evaluation", "plumbline.core.seeding"} <= set(followed)
    kept = {f"plumbline.trials.{name}" for name in ("checkpoint", "log", "results", "runner")}
    assert kept <= NEUTRAL
    assert not kept & set(followed)
    for module in kept:
        assert closure(module) == []
        assert sources._path(module) is not None, "a neutral module that is not there"
