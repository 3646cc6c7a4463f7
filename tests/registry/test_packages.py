"""Methods and problems that other packages declare."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_packages import FILES, METHOD, write_package

from plumbline.core.errors import PlumblineError
from plumbline.methods.base import methods
from plumbline.problems.base import problems
from plumbline.registry import packages
from plumbline.registry.catalogue import catalogue
from plumbline.registry.packages import Declared, declared, declared_names, top_modules
from plumbline.registry.references import ProblemRef


def test_what_a_package_declares(own_packages: Path) -> None:
    write_package(own_packages)
    assert declared_names("method") == ["my-middle"]
    assert declared_names("figure") == []
    assert declared("method", "ei") is None
    assert declared("method", "my-middle") == Declared("method", "my-middle", "mine.methods", "my-package", "0.1.0")
    assert "mine" in top_modules()
    assert "mine" not in sys.modules


def test_it_is_found_by_its_name(own_packages: Path) -> None:
    write_package(own_packages)
    known = catalogue()
    assert "my-middle" not in known.method
    assert known.has("method", "my-middle")
    listing = known.find("method", "my-middle")
    assert (listing.summary, listing.module) == ("A point between the corners.", "mine.methods")
    assert listing.place == "mine.methods (package my-package)"
    assert list(known.listed("method")) == [*known.method, "my-middle"]
    assert list(known.listed("problem"))[-1] == "my-bowl"
    assert methods["my-middle"].build.__name__ == "Middle"
    assert problems["my-bowl"].module == "mine.problems"
    assert ProblemRef(name="my-bowl-3").options == {"dim": 3}
    with pytest.raises(PlumblineError, match="unknown method 'my-midle': did you mean 'my-middle'"):
        known.find("method", "my-midle")


@pytest.mark.slow
def test_a_wrapper_takes_it(own_packages: Path) -> None:
    text = METHOD.replace("import Method, Proposal", "import Proposal").replace("(Method)", "(GPMethod)")
    text = text.replace("core.options import Options", "methods.gp.single_outcome import GPMethod, GPOptions")
    write_package(own_packages, files=FILES | {"mine/methods.py": text.replace("(Options)", "(GPOptions)")})
    assert "my-middle" in catalogue().bases("trust-region")
    assert "trust-region" in catalogue().wrappers("my-middle")
    catalogue().check("method", "trust-region", {"base": "my-middle"}, "here")
    (code,) = catalogue().code_outside("method", "trust-region", {"base": {"name": "my-middle"}})
    assert code == catalogue().find("method", "my-middle").code
    assert catalogue().code_outside("method", "trust-region", {"base": "ei"}) == []


def test_its_options_are_checked_again_when_its_code_has_changed(
    own_packages: Path, forget_packages: Callable[[], None]
) -> None:
    write_package(own_packages)
    catalogue().check("method", "my-middle", {"part": 0.2}, "here")
    text = METHOD.replace("part: float", "share: float")
    write_package(own_packages, files=FILES | {"mine/methods.py": text})
    forget_packages()
    with pytest.raises(PlumblineError, match="here: method 'my-middle': unknown field 'part': allowed: share"):
        catalogue().check("method", "my-middle", {"part": 0.2}, "here")


@pytest.mark.slow
def test_a_listing_is_kept_for_the_next_process(own_packages: Path) -> None:
    """Snakemake reads the configuration at every start: without torch."""
    write_package(own_packages)
    catalogue().find("method", "my-middle")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from plumbline.registry.catalogue import catalogue; "
    code += "print(catalogue().find('method', 'my-middle').summary, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(own_packages)], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "A point between the corners. False"


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no such module": ({"methods": {"my-middle": "mine.metods"}}, "there is no module 'mine.metods' on Python's path"),
    "no module at all": (
        {"methods": {"my-middle": "mine/methods.py"}},
        "entry point 'my-middle' of 'plumbline.methods' is",
    ),
    "another name": ({"methods": {"my-midle": "mine.methods"}}, "mine.methods registers no method 'my-midle'"),
    "raises": (
        {"files": FILES | {"mine/helper.py": "\nx = 1 / 0\n"}},
        r"mine\.methods cannot be imported: .*mine/helper\.py, line 2: ZeroDivisionError",
    ),
    "raises in a library": (
        {"files": FILES | {"mine/helper.py": "\n\nimport json\njson.loads('{')\n"}},
        r"mine\.methods cannot be imported: .*mine/helper\.py, line 4: JSONDecodeError",
    ),
    "exits": (
        {"files": FILES | {"mine/helper.py": "import sys\nsys.exit(3)\n"}},
        r"mine\.methods cannot be imported: .*mine/helper\.py, line 2: SystemExit",
    ),
    "no Python": (
        {"files": FILES | {"mine/helper.py": "x = 1\ndef f(:\n"}},
        r"mine/helper\.py, line 2: invalid syntax",
    ),
    "one of ours": (
        {"files": FILES | {"mine/methods.py": METHOD.replace('"my-middle"', '"ei"')}},
        r"mine/methods\.py.*'ei' is registered twice: plumbline\.methods\.gp\.single_outcome and mine\.methods",
    ),
}


@pytest.mark.parametrize(("what", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_one_line(what: dict[str, Any], message: str, own_packages: Path) -> None:
    write_package(own_packages, **what)
    (name,) = declared_names("method")
    with pytest.raises(PlumblineError, match=f"package my-package 0.1.0: .*{message}") as caught:
        catalogue().find("method", name)
    assert "\n" not in str(caught.value)
    with pytest.warns(UserWarning, match=f"method '{name}' is not listed: package my-package 0.1.0: "):
        assert catalogue().listed("method") == catalogue().method


def test_a_name_that_two_packages_declare_is_refused(own_packages: Path) -> None:
    write_package(own_packages)
    write_package(own_packages, "other-package", version="2.0")
    both = (
        "'my-middle' is declared by two packages, (my-package 0.1.0 and other-package 2.0|other-package 2.0 and my-p)"
    )
    with pytest.raises(PlumblineError, match=both):
        catalogue().find("method", "my-middle")
    with pytest.warns(UserWarning, match=both):
        assert "ei" in catalogue().listed("method")


def test_a_problem_that_ends_in_a_number_is_refused(own_packages: Path) -> None:
    """It would be a dimension: of `ackley-20` the 20."""
    write_package(own_packages, problems={"my-bowl-7": "mine.problems"})
    with pytest.raises(
        PlumblineError, match=r"my-package 0\.1\.0: problem 'my-bowl-7': a number .*: call it 'my-bowl7'"
    ):
        catalogue().find("problem", ProblemRef(name="my-bowl-7").name)


def test_a_name_that_we_have_is_refused(own_packages: Path) -> None:
    write_package(own_packages, methods={"ei": "mine.methods"})
    twice = "'ei' is registered twice: by plumbline.methods.gp.single_outcome and by the package my-package 0.1.0"
    with pytest.raises(PlumblineError, match=f"here: method {twice}"):
        catalogue().check("method", "ei", {}, "here")
    with pytest.warns(UserWarning, match=twice):
        catalogue().listed("method")


def test_the_place_of_an_error_is_in_the_package(own_packages: Path) -> None:
    write_package(own_packages, files=FILES | {"mine/helper.py": "import json\n\ndef part(x):\n    json.loads('{')\n"})
    from mine.helper import part

    with pytest.raises(ValueError, match="Expecting") as caught:
        part(1)
    assert packages.place_in_packages(caught.value) == f"{own_packages}/mine/helper.py, line 4"
    assert packages.place_in_packages(ValueError()) == ""
