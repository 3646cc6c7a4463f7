"""Names of trials."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_packages import write_package

from plumbline.core.errors import PlumblineError
from plumbline.registry import source_digest
from plumbline.registry.source_digest import closure
from plumbline.store import keys
from plumbline.store.keys import code_digest, code_outside, design_key, trial_inputs, trial_key, with_stand_ins
from plumbline.store.spec import TrialSpec

Make = Callable[..., TrialSpec]
NOWHERE = Path("/nowhere")
TABLE = {"name": "molecules", "options": {"dataset": "generated-molecules", "target": "qed", "pool": 20}}


def test_a_key_is_sixteen_hex_digits(cheap_spec: Make) -> None:
    assert re.fullmatch("[0-9a-f]{16}", trial_key(cheap_spec(), NOWHERE))


@pytest.mark.slow
def test_labels_do_not_count(cheap_spec: Make) -> None:
    named = cheap_spec("ackley-2", "ei", label="mine", task="hole")
    assert trial_key(named, NOWHERE) == trial_key(cheap_spec("ackley-2", "ei"), NOWHERE)
    spelt_out = cheap_spec({"name": "ackley", "options": {"dim": 2}}, "ei")
    assert trial_key(spelt_out, NOWHERE) == trial_key(cheap_spec("ackley-2", "ei"), NOWHERE)


changes = st.fixed_dictionaries(
    {},
    optional={
        "problem": st.sampled_from(["branin", "ackley-2", "ackley-3"]),
        "options": st.sampled_from([{}, {"model": {"ard": False}}, {"model": {"ard": False, "kernel": "rbf"}}]),
        "seed": st.integers(0, 3),
        "rounds": st.integers(0, 3),
        "size": st.integers(1, 3),
        "q": st.integers(1, 2),
        "alphas": st.sampled_from([(0.1,), (0.2,), ("1/sqrt(n)",)]),
        "holdout": st.integers(0, 2),
    },
)


@given(changes, changes)
def test_keys_differ_where_specs_do(cheap_spec: Make, one: dict[str, Any], two: dict[str, Any]) -> None:
    first, second = cheap_spec(method="ei", **one), cheap_spec(method="ei", **two)
    assert (trial_key(first, NOWHERE) == trial_key(second, NOWHERE)) == (first == second)


def test_keys_are_the_same_where_options_are(cheap_spec: Make) -> None:
    """However they are written: two trials of one name would be the same rows twice, or draw other noise."""
    part = {"design": "part", "size": 4}
    spellings = [
        ({"dim": 3, "noise_std": 0.5}, {"sqrt_beta": 2.0}, {"low": 0.0, "high": 1.0}),
        ({"noise_std": "0.5", "dim": 3.0}, {"sqrt_beta": 2, "model": {}}, {"high": 1, "low": -0.0}),
        (
            {"dim": "3", "noise_std": 5e-1, "noise_scale": None},
            {"sqrt_beta": "2"},
            {"low": 0, "high": "1", "outside": False},
        ),
    ]
    specs = []
    for problem, method, design in spellings:
        spec = cheap_spec({"name": "ackley", "options": problem}, "ucb", options=method)
        initial = {**part, "options": design}
        specs.append(
            TrialSpec.model_validate({**spec.model_dump(mode="json"), "budget": {"initial": initial, "rounds": 3}})
        )
    for name in (trial_key, design_key):
        assert len({name(spec, NOWHERE) for spec in specs}) == 1
    assert len({spec.problem.stream_name() for spec in specs}) == 1


def test_code_counts(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trial_key(cheap_spec(), NOWHERE)
    monkeypatch.setattr(keys, "source_digest", lambda *modules: "edited")
    assert trial_key(cheap_spec(), NOWHERE) != before


def test_the_code_is_that_of_methods_problem_design_and_loop(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(keys, "source_digest", lambda *modules: seen.append(modules) or "x")
    code_digest(cheap_spec("branin", "ei"))
    loop = (
        "plumbline.designs.uniform",
        "plumbline.methods.gp.single_outcome",
        "plumbline.problems.synthetic",
        "plumbline.trials.trial",
    )
    assert seen.pop() == loop
    inner = {"name": "calibrated", "options": {"base": "ei"}}
    code_digest(cheap_spec("branin", "trust-region", options={"base": inner}))
    wrappers = {"plumbline.methods.calibrated.method", "plumbline.methods.wrappers.trust_region"}
    assert set(seen.pop()) == {*loop, *wrappers}


SERVER = """
import json, os, sys
from plumbline.registry.catalogue import catalogue, option_model

for name in catalogue().method:
    option_model("method", name)  # imports what the package rests on: once for all states of its source
for name in [name for name in sys.modules if name.partition(".")[0] == "plumbline"]:
    del sys.modules[name]

for line in sys.stdin:
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            print(flush=True)
        continue
    asked = json.loads(line)
    sys.path.insert(0, asked["path"])
    os.environ.update(asked["environment"])
    from pathlib import Path
    from plumbline.store.keys import code_outside, trial_key
    from plumbline.store.spec import TrialSpec
    specs = [TrialSpec.model_validate_json(text) for text in asked["specs"]]
    print(json.dumps([(trial_key(spec, Path("/nowhere")), code_outside(spec)) for spec in specs]), flush=True)
    os._exit(0)
"""
"""Answers each line of specs with a line of keys, by a fork that imports the package as it is then."""

Named = tuple[str, dict[str, dict[str, str]]]
"""A key, and what is said of the code outside of the package."""


class Server:
    """Keys of trials as a new process has them, in a folder of modules that comes first on Python's path."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def named(self, path: Path, *specs: TrialSpec, **environment: str) -> list[Named]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"path": str(path), "environment": environment, "specs": [spec.model_dump_json() for spec in specs]}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return [(key, outside) for key, outside in json.loads(self.process.stdout.readline())]


@pytest.fixture(scope="module")
def server(one_core: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    folder = tmp_path_factory.mktemp("server")
    with subprocess.Popen([sys.executable, "-c", SERVER], env=one_core, cwd=folder, **pipes) as process:
        yield Server(process)


class Copy:
    """A copy of the package, and the keys of some trials under its source."""

    def __init__(self, path: Path, server: Server) -> None:
        self.path = path
        self.server = server
        shutil.copytree(Path(keys.__file__).parents[1], path / "plumbline")  # with what Python has compiled

    def append(self, file: str, text: str) -> None:
        with (self.path / "plumbline" / file).open("a") as stream:
            stream.write(text)

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.path / "plumbline" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    def keys(self, *specs: TrialSpec) -> list[str]:
        """The keys under the source as it is now."""
        return [key for key, _ in self.server.named(self.path, *specs, XDG_CACHE_HOME=str(self.path / "cache"))]


@pytest.fixture
def copy(tmp_path: Path, server: Server) -> Copy:
    return Copy(tmp_path, server)


@pytest.mark.slow
def test_only_what_a_trial_uses_changes_its_key(cheap_spec: Make, copy: Copy) -> None:
    plain = cheap_spec("branin", "ei", options={})
    wrapped = cheap_spec("branin", "trust-region", options={"base": {"name": "cucb", "options": {"alpha": 0.3}}})
    before = copy.keys(plain, wrapped)

    # A new design, fields that neither trial uses, another problem's code, another kind of space.
    shutil.copy(copy.path / "plumbline/designs/worst.py", copy.path / "plumbline/designs/best.py")
    copy.replace("designs/best.py", '"worst", Options', '"best", Options')
    for file, field in (
        ("methods/base.py", "    shift: CovariateShift | None = None\n"),
        ("problems/base.py", "    may_fail: bool = False\n"),
        ("core/outcomes.py", "    reference: float | None = None\n"),
        ("methods/proposal.py", "    observed: Tensor | None = None\n"),
        ("store/spec.py", "    widths: bool = False\n"),
        ("store/spec.py", "    q: int = Field(default=1, ge=1, le=1_000)\n"),
    ):
        copy.replace(file, field, f"{field}    one_more: int | None = None\n")
    copy.append("problems/radio.py", "\nUNUSED = 1\n")
    copy.append("spaces/blocks.py", "\nUNUSED = 1\n")
    assert copy.keys(plain, wrapped) == before

    # The wrapped method's code.
    copy.append("methods/conformal/method.py", "\nUNUSED = 1\n")
    for file in ("methods/composed.py", "spaces/box.py", "core/seeding.py", "trials/diagnostics.py"):
        assert f"plumbline.{file.removesuffix('.py').replace('/', '.')}" in closure(
            "plumbline.methods.gp.single_outcome", "plumbline.problems.synthetic", "plumbline.trials.trial"
        )
    after = copy.keys(plain, wrapped)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_inputs_are_found_wherever_they_are_declared(cheap_spec: Make) -> None:
    spec = cheap_spec(TABLE)
    assert trial_inputs(spec) == ["features/generated-molecules.parquet"]
    assert trial_inputs(cheap_spec()) == []
    replaced = with_stand_ins("problem", "molecules", TABLE["options"], {"generated-molecules": "mine"})
    assert replaced == {**TABLE["options"], "dataset": "mine"}
    assert TABLE["options"]["dataset"] == "generated-molecules"


def test_unknown_names(cheap_spec: Make) -> None:
    with pytest.raises(PlumblineError, match="unknown method 'rndom'"):
        trial_key(cheap_spec(method="rndom", options={}), NOWHERE)


@pytest.mark.slow
def test_features_count(cheap_spec: Make, molecules: Path, tmp_path: Path) -> None:
    spec = cheap_spec(TABLE)
    missing = trial_key(spec, tmp_path)
    path = tmp_path / "features" / "generated-molecules.parquet"
    assert path == tmp_path / "features" / "generated-molecules.parquet"
    path.parent.mkdir()
    shutil.copy(molecules / "features" / "generated-molecules.parquet", path)
    there = trial_key(spec, tmp_path)
    assert there != missing
    assert there == trial_key(spec, molecules), "what they hold counts, not where they are"
    os.utime(path, ns=(1, 1))
    assert trial_key(spec, tmp_path) == there, "nor when they were written"
    path.write_bytes(path.read_bytes() + b" ")
    assert trial_key(spec, tmp_path) not in (there, missing)
    assert trial_key(cheap_spec(), tmp_path) == trial_key(cheap_spec(), NOWHERE), "others do not read them"


def test_ones_own_code_outside_of_the_package_counts(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And provenance names it; installed packages by their version."""
    (tmp_path / "mybo").mkdir()
    (tmp_path / "mybo/__init__.py").write_text("from .acquire import sign\nimport networkx\n")
    (tmp_path / "mybo/acquire.py").write_text("sign = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = cheap_spec()
    plain, dependencies = trial_key(spec, NOWHERE), keys._dependencies

    def with_own(parts: str) -> keys.Dependencies:
        known = dependencies(parts)
        return known._replace(modules=(*known.modules, "mybo"))

    def forget() -> None:
        for cached in vars(source_digest).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()

    forget()
    with monkeypatch.context() as patch:
        patch.setattr(keys, "_dependencies", with_own)
        first = trial_key(spec, NOWHERE)
        about = code_outside(spec)
        (tmp_path / "mybo/acquire.py").write_text("sign = -1\n")
        forget()
        assert len({plain, first, trial_key(spec, NOWHERE)}) == 3
        assert set(about["own_code"]) == {"mybo", "mybo.acquire"}
        assert about["own_code"] != code_outside(spec)["own_code"]
        assert about["imported"]["networkx"] == version("networkx")
    forget()
    assert trial_key(spec, NOWHERE) == plain
    assert code_outside(spec)["own_code"] == {}


@pytest.mark.slow
def test_a_class_that_an_option_names_counts(cheap_spec: Make, tmp_path: Path, server: Server) -> None:
    """Each key in a process of its own, as when somebody edits a file between two runs."""
    (tmp_path / "mybo").mkdir()
    (tmp_path / "mybo/__init__.py").write_text("")
    (tmp_path / "mybo/helper.py").write_text("sign = 1\n")
    (tmp_path / "mybo/acquire.py").write_text(
        "from mybo.helper import sign\nimport networkx\n\nclass Mine:\n    pass\n"
    )

    def said(acquisition: str, base: bool = False) -> Named:
        options: dict[str, Any] = {"acquisition": acquisition}
        method = "botorch-acquisition"
        if base:
            method, options = "trust-region", {"base": {"name": method, "options": options}}
        (named,) = server.named(tmp_path, cheap_spec("branin", method, options=options))
        return named

    plain, about = said("mybo.acquire:Mine")
    assert set(about["own_code"]) == {"mybo", "mybo.acquire", "mybo.helper"}
    assert "networkx" in about["imported"]
    inside, theirs = said("mybo.acquire:Mine", base=True)[0], said("botorch.acquisition:qSimpleRegret")[0]
    (tmp_path / "mybo/acquire.py").write_text("# a comment\n" + (tmp_path / "mybo/acquire.py").read_text())
    assert said("mybo.acquire:Mine")[0] == plain
    (tmp_path / "mybo/helper.py").write_text("sign = -1\n")
    assert len({plain, inside, said("mybo.acquire:Mine")[0], said("mybo.acquire:Mine", base=True)[0], theirs}) == 5
    assert said("botorch.acquisition:qSimpleRegret")[0] == theirs


def test_installed_classes_count_by_their_version(cheap_spec: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = cheap_spec("branin", "botorch-acquisition", options={"acquisition": "networkx.algorithms:Mine"})
    before = trial_key(spec, NOWHERE)
    real = keys.installed_version
    monkeypatch.setattr(keys, "installed_version", lambda name: "999" if name == "networkx" else real(name))
    assert trial_key(spec, NOWHERE) != before
    assert "networkx" in code_outside(spec)["imported"]


@pytest.mark.slow
def test_the_code_of_a_package_that_declares_a_method_counts(
    cheap_spec: Make, own_packages: Path, forget_packages: Callable[[], None]
) -> None:
    """Installed or not: its author edits it. Of its modules, those that the method and the problem import."""
    write_package(own_packages)
    (own_packages / "unrelated.py").write_text("x = 1\n")

    def of(method: str, problem: str) -> str:
        forget_packages()
        spec = cheap_spec(problem, method, options={})
        return trial_key(spec, NOWHERE)

    def keys_now() -> list[str]:
        return [
            of("my-middle", "branin"),
            of("random", "my-bowl-2"),
            of("my-middle", "my-bowl-2"),
            of("random", "branin"),
        ]

    def changed(file: str, more: str) -> list[bool]:
        before, path = keys_now(), own_packages / file
        text = path.read_text()
        path.write_text(text + more)
        after = keys_now()
        path.write_text(text)
        return [one != other for one, other in zip(before, after, strict=True)]

    assert len(set(keys_now())) == 4
    assert changed("mine/methods.py", "x = 1\n") == [True, False, True, False]
    assert changed("mine/helper.py", "x = 1\n") == [True, False, True, False]
    assert changed("mine/problems.py", "x = 1\n") == [False, True, True, False]
    assert changed("mine/unused.py", "y = 1\n") == [False] * 4
    assert changed("unrelated.py", "y = 1\n") == [False] * 4
    assert changed("mine/methods.py", "# a comment\n") == [False] * 4
    before = keys_now()
    write_package(own_packages, version="0.2.0")
    assert [one != other for one, other in zip(before, keys_now(), strict=True)] == [True, True, True, False]
    spec = cheap_spec("my-bowl-2", "my-middle", options={})
    about = code_outside(spec)
    assert about["imported"]["my-package"] == "0.2.0"
    assert set(about["own_code"]) == {"mine", "mine.helper", "mine.methods", "mine.problems"}


@pytest.mark.slow
def test_a_design_counts_the_package_of_its_problem(
    cheap_spec: Make, own_packages: Path, forget_packages: Callable[[], None]
) -> None:
    write_package(own_packages)
    spec = cheap_spec("my-bowl-2", "random")
    before = design_key(spec, NOWHERE)
    (own_packages / "mine/problems.py").open("a").write("x = 1\n")
    forget_packages()
    assert design_key(spec, NOWHERE) != before
