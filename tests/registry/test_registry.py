import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options
from plumbline.registry import registry as module
from plumbline.registry.catalogue import catalogue
from plumbline.registry.registry import Registry

MEMBER = '''
from house.base import rooms
from plumbline.core.options import Options

class {cls}Options(Options):
    size: int = 1

@rooms.register("{name}", {cls}Options)
class {cls}:
    """{summary}

    More about it.
    """
'''


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `house` with two members, each in a file of its own, that nobody imports."""
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text(
        'from plumbline.registry.registry import Registry\nrooms = Registry("room", "house")\n'
    )
    (folder / "k.py").write_text(MEMBER.format(cls="Kitchen", name="kitchen", summary="Where it is warm."))
    (folder / "c.py").write_text(MEMBER.format(cls="Cellar", name="cellar", summary="Where it is dark."))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for loaded in [name for name in sys.modules if name.split(".")[0] == "house"]:
        del sys.modules[loaded]


def rooms() -> Registry:
    from house.base import rooms

    return rooms


def test_a_file_in_the_package_is_enough_to_be_found(house: Path) -> None:
    entries = rooms().entries()
    assert list(entries) == ["cellar", "kitchen"]
    kitchen = entries["kitchen"]
    assert kitchen.summary == "Where it is warm."
    assert kitchen.module == "house.k"
    assert kitchen.options.__name__ == "KitchenOptions"
    assert rooms()["kitchen"] == kitchen
    assert kitchen.build.__name__ == "Kitchen"


def test_one_name_needs_the_listed_module_alone(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (house / "b.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.setattr(module, "listed_modules", lambda kind: {"kitchen": "house.k"} if kind == "room" else {})
    assert rooms()["kitchen"].module == "house.k"
    assert "house.c" not in sys.modules


def test_a_name_that_is_not_listed_is_found(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not yet, or under a module that no longer has it."""
    monkeypatch.setattr(module, "listed_modules", lambda kind: {"larder": "house.c"})
    (house / "z.py").write_text(MEMBER.replace('"{name}"', '"la" + "rder"').format(cls="Larder", summary="Cool."))
    assert rooms()["larder"].module == "house.z"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"room": {"kitchen": {}}}', '{"method": {}}'])
def test_a_broken_list_lists_nothing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "catalogue_path", lambda: tmp_path / "catalogue.json")
    (tmp_path / "catalogue.json").write_text(text)
    assert module.listed_modules("room") == {}


def test_the_catalogue_lists_the_modules() -> None:
    assert catalogue().method
    assert module.listed_modules("method")["trust-region"] == "plumbline.methods.wrappers.trust_region"


def test_to_parse_a_spec_needs_no_torch() -> None:
    assert catalogue().method  # which the first process writes down
    code = """
import sys
from plumbline.store.spec import TrialSpec
task = {"problem": {"name": "ackley-2"}, "budget": {"initial": {"design": "sobol", "size": 4}, "rounds": 2}}
base = {"name": "calibrated", "options": {"base": "ei"}}
TrialSpec.model_validate({**task, "method": {"name": "trust-region", "options": {"base": base}}, "seed": 0})
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.slow
def test_libraries_that_few_need_wait_for_them() -> None:
    """They take as long as torch, at the start of every job."""
    asked = "methods['ei'], methods['cucb'], methods['calibrated'], problems['levy'], designs['uniform']"
    code = f"""
import sys
import plumbline.trials.runner
from plumbline.designs.base import designs
from plumbline.methods.base import methods
from plumbline.problems.base import problems
{asked}
print(sorted({{"sklearn", "scipy.stats", "rdkit", "Bio", "pandera", "matplotlib", "mlflow"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_unknown_name_is_told_with_the_nearest_one(house: Path) -> None:
    with pytest.raises(PlumblineError) as caught:
        rooms()["kitchn"]
    assert str(caught.value) == "unknown room 'kitchn': did you mean 'kitchen'? allowed: cellar, kitchen"


def test_a_name_far_from_all_gets_the_list_alone(house: Path) -> None:
    with pytest.raises(PlumblineError, match=r"^unknown room 'xyz': allowed: cellar, kitchen$"):
        rooms()["xyz"]


def test_one_name_in_two_files_is_refused(house: Path) -> None:
    (house / "z.py").write_text(MEMBER.format(cls="Larder", name="cellar", summary="Another."))
    with pytest.raises(PlumblineError, match=r"room 'cellar' is registered twice: house\.c and house\.z"):
        rooms().entries()


def test_summary_can_be_given_and_functions_can_be_entered() -> None:
    registry = Registry("room", "plumbline.problems")

    @registry.register("attic", Options, "Under the roof")
    def attic() -> int:
        """Return seven."""
        return 7

    assert attic() == 7  # the decorator gives back what it was given
    assert registry["attic"].summary == "Under the roof"
    assert registry["attic"].build is attic


def test_the_two_registries_of_plumbline_are_apart() -> None:
    from plumbline.methods.base import methods
    from plumbline.problems.base import problems

    assert {"ei", "calibrated", "random"} <= methods.entries().keys()
    assert {"forrester", "ackley", "molecules"} <= problems.entries().keys()
    for registry in (methods, problems):
        for name, entry in registry.entries().items():
            assert issubclass(entry.options, Options)
            assert entry.summary
            assert "\n" not in entry.summary
            assert entry.name == name
            assert entry.module.startswith(registry.package + ".")


def test_a_file_that_is_no_python_is_one_line(house: Path) -> None:
    (house / "z.py").write_text("import os\ndef f(:\n")
    with pytest.raises(PlumblineError, match=r"z\.py, line 2: ") as caught:
        rooms().entries()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["from house import nothing\n", "\nclass Attic(Rom): ...\n"])
def test_a_file_that_cannot_be_imported_is_one_line(house: Path, text: str) -> None:
    (house / "z.py").write_text(text)
    with pytest.raises(PlumblineError, match=r"house\.z cannot be imported: .*z\.py, line [12]: ") as caught:
        rooms().entries()
    assert "\n" not in str(caught.value)
