"""Skeletons of methods, problems, studies, packages and workspaces, from the templates beside this module."""

import keyword
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import yaml
from jinja2 import Environment, StrictUndefined

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.libraries import installed_version
from plumbline.core.places import CHECKOUT, PACKAGE, STUDIES, installed, shipped
from plumbline.registry.catalogue import catalogue
from plumbline.study.methods_and_tasks import load_methods_and_tasks
from plumbline.study.targets import RuleNames

SkeletonKind = Literal["method", "problem", "study", "package"]

TEMPLATES = Path(__file__).with_suffix("")

NEXT: dict[SkeletonKind, tuple[str, ...]] = {
    "method": ("plumbline trial --method {{ name }} --problem branin --rounds 5",),
    "problem": ("plumbline trial --class sobol --task {{ name }}",),
    "study": (
        'plumbline plan --config \'config/config.yaml,{"studies": ["{{ name }}"]}\'',
        "snakemake --cores all --config 'studies=[{{ name }}]' -- {{ name|upper }}-1",
    ),
    "package": (
        "pip install --no-deps --editable {{ home }}",
        "plumbline trial --class {{ short }}-walk --problem {{ short }}-himmelblau --rounds 5",
    ),
}
"""Commands that use what was written."""


def words(name: str) -> dict[str, str]:
    """Return the words of the templates, which also name files: `my-ei` has the module `my_ei` and the class `MyEi`.

    Raises:
        PlumblineError: the name is none that a module can have.
    """
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(module):
        raise PlumblineError(f"name {name!r}: write lower-case letters and digits, with hyphens between words: my-ei")
    if (read := yaml.safe_load(name)) != name:
        raise PlumblineError(f"name {name!r}: YAML reads it as {read!r}: choose another name")
    title = "".join(part.capitalize() for part in name.split("-"))
    return {"name": name, "module": module, "title": title, "short": name.removeprefix("plumbline-")}


def rendered(template: str, about: dict[str, str]) -> str:
    """Return a template filled in."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(template).render(about)


def skeleton(kind: SkeletonKind, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a skeleton: their paths in its folder, and their texts."""
    return filled_in(kind, words(name))


def filled_in(kind: str, about: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the templates of a folder, filled in."""
    home = TEMPLATES / kind
    for template in sorted(home.rglob("*.j2")):
        path = template.relative_to(home).with_suffix("")
        parts = (part.partition(".") for part in path.parts)
        named = Path(*(about.get(stem, stem) + dot + end for stem, dot, end in parts))
        yield named, rendered(template.read_text(encoding="utf-8"), about)


def write_skeleton(kind: str, name: str, folder: Path) -> tuple[list[Path], list[str]]:
    """Write a skeleton, and return its files and the commands that use them.

    Args:
        kind: method, problem, study or package.
        name: of what is new.
        folder: a checkout of plumbline; of a study, a workspace; of a package, where its own folder goes.

    Raises:
        PlumblineError: no such kind, a name that is taken or cannot be one, another folder, or a file that is there.
    """
    if kind not in get_args(SkeletonKind):
        raise unknown("kind of skeleton", kind, get_args(SkeletonKind))
    known: SkeletonKind = kind  # type: ignore[assignment]  # checked above
    about = words(name)
    refuse_name(known, about)
    refuse_folder(known, folder, name)
    refuse_entry(known, folder, name)
    home = folder / name if known == "package" else folder
    texts = {home / path: text for path, text in skeleton(known, name)}
    write_new(texts)
    return list(texts), [rendered(command, about | {"home": shlex.quote(str(home))}) for command in NEXT[known]]


def write_new(texts: Mapping[Path, str]) -> None:
    """Write files; raise PlumblineError, and write none, where one is there already."""
    for path in texts:
        if path.exists():
            raise PlumblineError(f"{path} is there already: choose another name, or delete it")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


SHARED = ("config", "profiles", "slurm")
"""Folders of what comes with the package that a workspace has copies of."""


def write_workspace(folder: Path) -> list[Path]:
    """Write a folder in which the workflow runs: configuration, profiles of Snakemake, Snakefile; return its files.

    Args:
        folder: that may be there, without any of these files.

    Raises:
        PlumblineError: the folder is a workspace, or one of the files is there already.
    """
    if (folder / STUDIES).is_dir():
        raise PlumblineError(f"{folder} is a workspace already: `plumbline new study` adds to it")
    about = {"name": folder.resolve().name, "version": installed_version("plumbline") or ""}
    texts = {folder / path: text for path, text in filled_in("workspace", about)}
    home = shipped()
    for path in sorted(path for part in SHARED for path in (home / part).rglob("*") if path.is_file()):
        texts[folder / path.relative_to(home)] = path.read_text(encoding="utf-8")
    write_new(texts)
    return list(texts)


def refuse_name(kind: SkeletonKind, about: dict[str, str]) -> None:
    """Raise PlumblineError if a method or a problem is registered under the name, or a package has its module."""
    if kind in ("method", "problem") and catalogue().has(kind, about["name"]):
        raise PlumblineError(f"there is a {kind} {about['name']!r} already: choose another name")
    if kind == "package" and find_spec(about["module"]) is not None:
        raise PlumblineError(f"there is a module {about['module']!r} already: choose another name")


def refuse_entry(kind: SkeletonKind, folder: Path, name: str) -> None:
    """Raise PlumblineError if the configuration has an entry of the name, or the workflow a rule of that of a study."""
    if kind == "package":
        return
    if kind == "study":
        if RuleNames.read(folder).have(name):
            raise PlumblineError(f"a rule of the workflow has the name {name!r} already: choose another name")
        return
    entries = load_methods_and_tasks(folder / "config")
    if name in (entries.methods if kind == "method" else entries.tasks):
        raise PlumblineError(f"config has an entry {name!r} already: choose another name")


def refuse_folder(kind: SkeletonKind, folder: Path, name: str) -> None:
    """Raise PlumblineError, with what to do, if what is written into the folder would not be found there."""
    if kind == "package":
        return
    if kind == "study" and not (folder / STUDIES).is_dir():
        raise PlumblineError(f"{folder} has no {STUDIES}: name a workspace with --folder, or `plumbline init` one")
    if kind != "study" and (folder / "src/plumbline").resolve() != PACKAGE.resolve():
        checkout = "" if installed() else f"name {CHECKOUT} with --folder, or "
        raise PlumblineError(f"{folder} has no source of this plumbline: {checkout}`plumbline new package {name}`")
