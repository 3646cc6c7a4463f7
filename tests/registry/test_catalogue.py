"""What there is, known without importing torch."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.registry import catalogue as module
from plumbline.registry import source_digest as sources
from plumbline.registry.catalogue import Catalogue, catalogue, remembered


@pytest.fixture
def fresh() -> Iterator[None]:
    """Let the test read the cache file anew."""
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None) -> Path:
    """An empty cache folder."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "plumbline"


def test_everything_registered_is_listed() -> None:
    known = catalogue()
    for kind in module.REGISTRIES:
        assert sorted(getattr(known, kind)) == sorted(module._registry(kind).entries())
    assert known.method["ei"].module == "plumbline.methods.gp.single_outcome"
    assert known.problem["ackley"].module == "plumbline.problems.synthetic"
    assert known.figure
    assert known.table


def test_every_name_has_a_one_line_summary() -> None:
    for kind in module.REGISTRIES:
        for listing in getattr(catalogue(), kind).values():
            assert listing.summary.strip(), listing.name
            assert "\n" not in listing.summary


@pytest.mark.slow
def test_a_warm_cache_needs_no_torch(one_core: dict[str, str], cache: Path) -> None:
    assert catalogue().method
    assert list(cache.rglob("catalogue.json")), "which this process has written"
    env = {**one_core, "XDG_CACHE_HOME": str(cache.parent)}
    code = "import sys; from plumbline.registry.catalogue import catalogue; catalogue(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_the_cache_is_written_and_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = catalogue()
    (path,) = cache.rglob("*.json")
    assert path.parent.name == module.sources.package_digest()
    catalogue.cache_clear()
    monkeypatch.setattr(module, "_listings", None)
    assert catalogue() == built


@pytest.mark.parametrize("content", ["", "{", "[]", '{"method": {}}'])
def test_a_broken_cache_is_built_again(cache: Path, content: str) -> None:
    path = sources.cache_folder() / "catalogue.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert "ei" in catalogue().method
    assert Catalogue.model_validate_json(path.read_text()) == catalogue()


def test_a_home_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file where the folder would be")
    assert "ei" in catalogue().method


def test_another_source_tree_has_another_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.cache_folder()
    monkeypatch.setattr(module.sources, "package_digest", lambda: "f" * 16)
    assert sources.cache_folder() != before


def test_unknown_names() -> None:
    with pytest.raises(PlumblineError, match="unknown method 'cb': did you mean 'ucb'"):
        catalogue().find("method", "cb")
    with pytest.raises(PlumblineError, match="unknown table 'final-value': did you mean 'final-values'"):
        catalogue().check("table", "final-value", {}, "here")


def test_options_are_checked() -> None:
    known = catalogue()
    known.check("method", "ucb", {"sqrt_beta": 2, "model": {"kernel": "rbf"}}, "here")
    with pytest.raises(
        PlumblineError, match=r"^here: method 'ucb': sqrt_beta: Input should be greater than 0 \(got -1\)$"
    ):
        known.check("method", "ucb", {"sqrt_beta": -1}, "here")
    with pytest.raises(
        PlumblineError, match=r"^here: method 'ucb': model: unknown field 'kernl': did you mean 'kernel'"
    ):
        known.check("method", "ucb", {"model": {"kernl": "rbf"}}, "here")
    with pytest.raises(PlumblineError, match="here: problem 'hartmann': dim: Input should be 3 or 6"):
        known.check("problem", "hartmann", {"dim": 4}, "here")


def test_options_found_right_are_not_checked_twice(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, options = catalogue(), {"jitter": 0.0125}
    monkeypatch.setattr(module, "_CHECKED", set())
    known.check("method", "ei", options, "here")
    monkeypatch.setattr(module, "_CHECKED", set())
    monkeypatch.setattr(module, "_registry", None)  # another process, which must not need it
    known.check("method", "ei", options, "here")


def test_options_of_options_are_checked_too() -> None:
    options = {"base": {"name": "ucb", "options": {"sqrt_bata": 2}}}
    with pytest.raises(PlumblineError, match=r"here: method 'calibrated': base 'ucb': .*did you mean 'sqrt_beta'"):
        catalogue().check("method", "calibrated", options, "here")


def test_what_is_missing_comes_with_its_remedy() -> None:
    with pytest.raises(PlumblineError, match=r"^here: problem 'ackley': dim: Field required: write `ackley-2`, say$"):
        catalogue().check("problem", "ackley", {}, "here")
    with pytest.raises(
        PlumblineError, match=r"dataset: Field required \(and 1 more\): `plumbline classes problem molecules`"
    ):
        catalogue().check("problem", "molecules", {}, "here")
    with pytest.raises(PlumblineError, match=r"^here: unknown problem 'brannin'"):
        catalogue().check("problem", "brannin", {}, "here")


def test_a_cache_that_cannot_be_looked_into_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / ("x" * 300) / name)
    calls: list[int] = []
    module.once("is it there?", lambda: calls.append(1))
    assert calls == [1]


def test_once_is_once_a_source(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(module, "_CHECKED", set())
    for _ in range(2):
        module.once("is it right?", lambda: calls.append(1))
    monkeypatch.setattr(module, "_CHECKED", set())
    module.once("is it right?", lambda: calls.append(2))
    assert calls == [1], "another process reads the mark"
    monkeypatch.setattr(module.sources, "package_digest", lambda: "f" * 16)
    monkeypatch.setattr(module, "_CHECKED", set())
    module.once("is it right?", lambda: calls.append(3))
    assert calls == [1, 3]


def test_what_was_wrong_is_asked_again(cache: Path) -> None:
    def wrong() -> None:
        raise PlumblineError("wrong")

    for _ in range(2):
        with pytest.raises(PlumblineError, match="wrong"):
            module.once("is this right?", wrong)


def test_who_goes_with_whom() -> None:
    known = catalogue()
    assert {"ei", "calibrated", "elbo-ei"} <= set(known.bases("trust-region"))
    assert not {"random", "penalised-ei", "ehvi"} & set(known.bases("trust-region"))
    assert {"calibrated", "exploit", "hedge", "trust-region"} <= set(known.wrappers("ei"))
    assert known.wrappers("random") == known.bases("random") == []
    assert "hedge" not in known.wrappers("relay")


CIRCLE: dict[str, Any] = {}
CIRCLE["x"] = CIRCLE


@pytest.mark.parametrize(
    "options",
    [{"dim": date(2024, 1, 1)}, {"dim": {1: 2, "a": 3}}, {"dim": {1, 2}}, {"dim": object()}, {"dim": CIRCLE}],
)
def test_options_are_what_a_file_can_hold(options: dict[str, Any]) -> None:
    with pytest.raises(PlumblineError) as caught:
        catalogue().check("problem", "ackley", options, "mine")
    assert str(caught.value).startswith("mine: problem 'ackley': options are numbers, texts, lists and mappings: ")
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.just(History), lambda inner: st.tuples(st.just(1), inner).map(list) | inner.map(lambda one: {"a": one})
    )
)
def test_a_class_among_options_is_named_by_its_path(option: Any) -> None:
    with pytest.raises(
        PlumblineError, match=r"mappings: b[.a1]*: name the class by its path, 'plumbline.core.history:Hi"
    ):
        catalogue().check("problem", "ackley", {"dim": 2, "b": option}, "mine")


def test_what_is_remembered_is_worked_out_once(cache: Path) -> None:
    asked: list[str] = []

    def answer() -> str:
        asked.append("")
        return "answer"

    assert [remembered("item", answer) for _ in range(3)] == ["answer"] * 3
    assert len(asked) == 1
    (path,) = cache.rglob("remembered/*")
    path.write_text(path.read_text().replace("answer", "anwser"))
    assert remembered("item", answer) == "answer"
    assert len(asked) == 2
