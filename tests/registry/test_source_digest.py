"""What a digest of source follows, and what it overlooks."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from plumbline.core.errors import PlumblineError
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


def forget(but: tuple[str, ...] = ()) -> None:
    for name, cached in vars(sources).items():
        if hasattr(cached, "cache_clear") and name not in but:
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


def test_a_file_that_has_gone_is_named(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a module was renamed after its import."""
    (fake.root / "lonely.py").rename(fake.root / "renamed.py")
    monkeypatch.setattr(sources, "_path", lambda module: fake.root / "lonely.py")
    with pytest.raises(
        PlumblineError, match=r"lonely\.py is not there any more: import its module from where it is now"
    ):
        source_digest("fake.lonely")


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


def test_a_source_that_changes_while_it_runs_gives_no_digest(fake: Fake) -> None:
    """The code in memory would be stored under the key of the edited one, for good."""
    source_digest("fake.base")
    (fake.root / "base.py").write_text("def double(x):\n    return 3 * x\n")
    with pytest.raises(PlumblineError, match="has changed while this process ran: start it again"):
        source_digest("fake.parts.one")


def test_a_kept_digest_is_not_that_of_a_source_that_has_changed(fake: Fake) -> None:
    source_digest("fake.parts.one")
    forget(but=("package_digest",))
    (fake.root / "parts" / "one.py").write_text("def one():\n    return 2\n")
    with pytest.raises(PlumblineError, match="has changed while this process ran: start it again"):
        source_digest("fake.parts.one")


@pytest.mark.parametrize("name", ["code", "profile", "trace", "this"])
def test_a_file_with_the_name_of_a_module_of_python_is_ones_own(name: str, tmp_path: Path) -> None:
    begin = "from plumbline.registry.source_digest import outside; "
    ask = f"{begin}print(sorted(outside('mine')), sorted(outside('{name}')))"
    (tmp_path / "mine.py").write_text(f"import json\nimport {name}\n")
    (tmp_path / f"{name}.py").write_text("SHARE = 0.1\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{sorted(['mine', name])} ['{name}']"


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


@pytest.mark.slow
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


OWN = {
    "mybo/__init__.py": "from .acquire import Mine\n",
    "mybo/acquire.py": "from . import parts\nfrom .parts import deep\nimport lonely_helper\n\nMine = deep.f\n",
    "mybo/parts/__init__.py": "",
    "mybo/parts/deep.py": "from .. import sibling\nf = 1\n",
    "mybo/sibling.py": "import importlib\nlater = importlib.import_module('by_name.late')\n",
    "mybo/unused.py": "x = 1\n",
    "lonely_helper.py": "import fake.lonely\nx = 1\n",
    "by_name/late.py": "import numpy\nx = 1\n",
    "someone_elses.py": "x = 1\n",
}
"""Code of a user's own, beside the package; `by_name` has no __init__."""

READ = ["mybo/__init__.py", "mybo/acquire.py", "mybo/parts/__init__.py", "mybo/parts/deep.py", "mybo/sibling.py"]
READ += ["lonely_helper.py", "by_name/late.py", "fake/lonely.py"]


class TestCodeOutside:
    @pytest.fixture
    def home(self, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder on Python's path, with the code that the module `parts.two` imports."""
        for name, text in OWN.items():
            path = tmp_path / "home" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.syspath_prepend(tmp_path / "home")
        fake.edit("parts/two.py", "import fake.lonely", "from mybo import Mine")
        return tmp_path / "home"

    def test_what_is_reached(self, home: Path) -> None:
        reached = sources.outside("fake.parts.two")
        names = [
            "by_name.late",
            "lonely_helper",
            "mybo",
            "mybo.acquire",
            "mybo.parts",
            "mybo.parts.deep",
            "mybo.sibling",
        ]
        assert list(reached) == names
        assert sources.outside("fake.parts.one") == {}
        assert sources.installed("fake.parts.two") == ["numpy"]
        assert sources.installed("fake.parts.one") == ["torch"]

    @pytest.mark.parametrize("file", READ)
    def test_a_change_is_a_new_digest(self, home: Path, fake: Fake, file: str) -> None:
        path = (home.parent if file.startswith("fake") else home) / file
        assert "parts.two" in fake.changed_by(lambda: path.write_text(f"{path.read_text()}\nchanged = 2\n"))

    @pytest.mark.parametrize("file", ["mybo/unused.py", "someone_elses.py"])
    def test_other_files_do_not_count(self, home: Path, fake: Fake, file: str) -> None:
        assert fake.changed_by(lambda: (home / file).write_text("x = 2\n")) == set()

    def test_layout_does_not_count(self, home: Path, fake: Fake) -> None:
        def comment() -> None:
            (home / "lonely_helper.py").write_text("# why\nimport fake.lonely\nx  =  1\n")

        assert fake.changed_by(comment) == set()

    def test_a_later_process_sees_the_change(self, home: Path, fake: Fake) -> None:
        """The digest of this package's own files is kept in the cache folder, that of others is not."""
        before = fake.digests()["parts.two"]
        (home / "mybo/sibling.py").write_text("later = 3\n")
        assert fake.digests()["parts.two"] != before

    def test_a_notebook_sees_what_is_new_and_what_was_loaded_again(
        self, home: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "alone.py").write_text("x = 1\n")
        monkeypatch.delitem(sys.modules, "alone", raising=False)
        before = sources.outside("alone")
        alone = importlib.import_module("alone")  # as a trial loads it once it has its key
        assert sources.outside("later") == {}
        (home / "later.py").write_text("x = 1\n")
        (home / "alone.py").write_text("x = 22\n")
        sources.look_again()
        assert "later" in sources.outside("later")
        with pytest.raises(PlumblineError, match=r"'alone' has changed since Python loaded it: reload it"):
            sources.outside("alone")
        importlib.reload(alone)
        sources.look_again()
        assert sources.outside("alone") != before
        assert sources.outside("alone") == sources.outside("alone")

    def test_folders_without_init_inside_of_one_another_are_packages(self, home: Path, fake: Fake) -> None:
        (home / "outermost" / "inner").mkdir(parents=True)
        (home / "outermost" / "inner" / "mine.py").write_text("import json\n")
        (home / "uses.py").write_text("from outermost.inner import mine\n")
        for module in ("outermost.inner.mine", "uses"):
            assert "outermost.inner.mine" in sources.outside(module)

    def test_what_imports_a_module_that_was_loaded_again_must_be_too(
        self, home: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`from share import x` keeps the former x, whatever becomes of the module."""
        (home / "share.py").write_text("x = 1\n")
        (home / "walk.py").write_text("from share import x\n")
        for name in ("share", "walk"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        share = importlib.import_module("share")
        before = sources.outside("walk")
        walk = importlib.import_module("walk")
        (home / "share.py").write_text("x = 22\n")
        importlib.reload(share)
        for _ in range(2):
            sources.look_again()
            with pytest.raises(PlumblineError, match="'walk' imports 'share', which was loaded again: reload it too"):
                sources.outside("walk")
        importlib.reload(walk)
        sources.look_again()
        assert sources.outside("walk") != before
        sources.look_again()
        assert set(sources.outside("walk")) == {"share", "walk"}
        importlib.reload(share)  # unchanged
        sources.look_again()
        assert set(sources.outside("walk")) == {"share", "walk"}

    def test_installed_packages_go_by_their_version(self, home: Path, fake: Fake) -> None:
        installed = home / "site-packages"
        (home / "mybo").rename(home / "kept")
        installed.mkdir()
        (home / "kept").rename(installed / "mybo")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(installed)
            forget()
            assert sources.outside("fake.parts.two") == {}
            assert sources.installed("fake.parts.two") == ["mybo"]
            assert fake.changed_by(lambda: (installed / "mybo/sibling.py").write_text("later = 3\n")) == set()

    def test_compiled_code_counts_by_its_bytes(self, home: Path, fake: Fake) -> None:
        from importlib.machinery import EXTENSION_SUFFIXES

        path = home / f"lonely_helper{EXTENSION_SUFFIXES[0]}"
        (home / "lonely_helper.py").unlink()
        path.write_bytes(b"\x7fELF one")
        assert fake.changed_by(lambda: path.write_bytes(b"\x7fELF two") and None) == {"parts.two"}

    def test_a_file_that_is_no_python_is_one_line(self, home: Path) -> None:
        for text in ("def f(:\n", "x = '\0'\n"):
            (home / "mybo/sibling.py").write_text(text)
            forget()
            with pytest.raises(PlumblineError, match=r"sibling\.py") as caught:
                source_digest("fake.parts.two")
            assert "\n" not in str(caught.value)

    def test_one_that_is_not_there_is_not_looked_for(self, fake: Fake) -> None:
        before = fake.digests()["lonely"]
        fake.write("lonely.py", "import nowhere_at_all.x\ny = 1\n")
        assert sources.outside("fake.lonely") == {}
        assert fake.digests()["lonely"] != before
