"""The application: its help, and the options that commands share."""

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from plumbline.cli.completing import complete
from plumbline.core.errors import PlumblineError
from plumbline.core.places import DATA, STORE, STUDIES, TRIALS, own

if TYPE_CHECKING:
    from plumbline.study.plan import Plan
    from plumbline.study.settings import Config

USE, WORKFLOW = "Use", "Workflow (what Snakemake calls)"
"""Groups of commands in the help."""


def kind_of_value(parameter: Any, context: Any = None) -> str:
    """Return what a value of an option or an argument is, as the help says it, in place of Python's name of it.

    A choice says what there is to choose from. An argument that is a word needs no more than its own name.
    """
    described = parameter.type_descriptor
    if described.is_choice:
        return f"<{'|'.join(map(str, described.choices))}>"
    kinds = {"path": "path", "int": "int", "float": "number"}
    kind = next((word for part, word in kinds.items() if part in str(described.annotation).lower()), "name")
    return "" if kind == "name" and parameter.param_type_name == "argument" else f"<{kind}>"


NAMES, NAME_VALUE = "<name,name,...>", "<name=value>"
"""Values that are more than their type says."""


class Commands(TyperGroup):
    """The commands in their groups, as plain text: the help is read in pipes too, and rich takes longest to import."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in self.commands.values():
            for parameter in command.params:
                parameter.display_type = partial(kind_of_value, parameter)  # type: ignore[attr-defined]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group of commands under its heading."""
        for panel in (USE, WORKFLOW):
            rows = [
                (name, (command.help or "").split("\n\n")[0].replace("\n", " "))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == panel and not command.hidden
            ]
            with formatter.section(panel):
                formatter.write_dl(rows)


app = typer.Typer(
    name="plumbline",
    cls=Commands,
    help="A reproducibility study of Bayesian optimisation under imperfect models.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
)


def named_path(text: str | Path) -> Path:
    """A path as it is named on the command line; an empty one, of a variable that is not set, would be this folder."""
    if not str(text).strip():
        raise typer.BadParameter("it is empty: name a file or a folder")
    return Path(text)


def file_to_write(text: str | Path) -> Path:
    """The path of a file that a user asks for: its folder is there, or the name has a typing error.

    The stages of the workflow make the folders of their outputs, which nobody types.
    """
    path = named_path(text)
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}: make it, or name another")
    return path


path_option = partial(typer.Option, parser=named_path)
file_option = partial(typer.Option, parser=file_to_write)
path_argument = partial(typer.Argument, parser=named_path)
ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        help="YAML files and JSON mappings, separated by commas; later ones override earlier ones",
        metavar="<path|JSON,...>",
    ),
]
CsvOption = Annotated[bool, typer.Option("--csv", help="print CSV")]
DataOption = Annotated[
    Path | None, path_option(help="folder of downloads and built features; default: data in the workspace")
]
StoreOption = Annotated[Path | None, path_option(help="folder of all trials; default: results/store in the workspace")]
TrialsOption = Annotated[
    Path | None,
    path_option(help="folder of the jobs' records, as `plumbline trials` writes them; default: next to the store"),
]
ExperimentArgument = Annotated[
    str,
    typer.Argument(help="an experiment; `plumbline experiments` lists them", autocompletion=complete("experiment")),
]
FolderArgument = Annotated[Path, path_argument(help="results of a preset")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda: the device of methods and trainers")]
OutputOption = Annotated[Path, path_option("--output", "-o", help="file to write")]
DEBUG = "PLUMBLINE_TRACEBACK"
"""Environment variable by which unforeseen errors show their tracebacks, as in jobs; EVERY for all errors."""
EVERY = "every"
CONFIG = "config/config.yaml"
COMMAS = "commas separate files and JSON"


class Places(NamedTuple):
    """The folders of all trials, of the jobs' records, and of downloads and built features."""

    store: Path
    trials: Path
    data: Path


def places(
    store: Path | None = None, trials: Path | None = None, data: Path | None = None, config: "Config | None" = None
) -> Places:
    """Return the folders that are named; the others are those of a configuration, or else of the workspace."""
    results = own(Path(config.results) if config else STORE.parent)
    store = store or results / STORE.name
    return Places(store, trials or store.parent / TRIALS.name, data or own(Path(config.datasets) if config else DATA))


def read_plan(config: str) -> "Plan":
    """The plan of `--config`."""
    return read_plan_and_home(config)[0]


def read_plan_and_home(config: str) -> "tuple[Plan, Path]":
    """The plan of `--config`, and its workspace: the working directory, else the one around the first file.

    Where nothing is named and nothing is here, it is the configuration that comes with the package.
    """
    from plumbline.api.repository import find_repository
    from plumbline.study.plan import load_plan
    from plumbline.study.settings import read_config

    if config.partition(",")[0] == CONFIG and not Path(CONFIG).is_file():
        config = f"{find_repository() / CONFIG}{config.removeprefix(CONFIG)}"
    layers = config_layers(config)
    files = [layer for layer in layers if isinstance(layer, Path)]
    here = (Path.cwd() / STUDIES).is_dir()
    home = Path.cwd() if here else find_repository(files[0].parent if files else None)
    return load_plan(read_config(*layers), home, config if len(files) == len(layers) else "--config"), home


def config_layers(text: str) -> list[Path | dict[str, Any]]:
    """The files and the JSON mappings of `--config`, in their order.

    Commas separate them. A comma may also be part of JSON, or of the name of a file that there is.

    Raises:
        PlumblineError: an empty part, or JSON that is cut off or followed by something else than a comma.
    """
    layers: list[Path | dict[str, Any]] = []
    rest: str | None = text
    while rest is not None:
        part, rest = _first_json(rest) if rest.lstrip().startswith("{") else _first_file(rest)
        layers.append(part)
    return layers


def _first_json(text: str) -> tuple[dict[str, Any], str | None]:
    """The JSON at the beginning of a part of `--config`, and what is behind the comma that follows it."""
    text = text.lstrip()
    try:
        content, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f"--config is no JSON from {text[:40]!r} on: {error}") from error
    behind = text[end:].strip()
    if behind and not behind.startswith(","):
        raise PlumblineError(f"--config: a comma is wanted between JSON and what follows it (got {behind[:40]!r})")
    return content, behind[1:] if behind else None


def _first_file(text: str) -> tuple[Path, str | None]:
    """The first file of a part of `--config`, up to a comma unless only a longer name is one of a file."""
    ends = [i for i, letter in enumerate(text) if letter == ","] + [len(text)]
    cuts = ((end, name) for end in ends for name in (text[:end], text[:end].strip()) if os.path.isfile(name))
    end, name = next(cuts, (ends[0], text[: ends[0]].strip()))
    if not name:
        raise PlumblineError(f"--config has an empty part: {COMMAS}")
    if not os.path.isfile(name) and len(ends) > 1:
        raise PlumblineError(f"no file {name}: {COMMAS}")
    return Path(name), text[end + 1 :] if end < len(text) else None


def existing_folder(path: Path, what: str) -> Path:
    """Return `path`; raise PlumblineError, which says what makes such a folder, unless it is one."""
    if not path.is_dir():
        makers = {"trials": "`snakemake` and `plumbline trial` make one", "results": "`snakemake` makes one"}
        raise PlumblineError(f"no folder of {what} at {path}: {makers.get(what, 'name another')}")
    return path


def parse_json(text: str, source: str) -> Any:
    """Parse JSON text; raise PlumblineError, with its source, where it is invalid."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f"{source} is no JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused if a name is in it twice: only the last one would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


_LONG_FORM = warnings.formatwarning


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning for users as one line, without the line of code that it comes from; others as they are."""
    if category is UserWarning:
        return f"plumbline: warning: {' '.join(str(message).split())}\n"
    return _LONG_FORM(message, category, filename, lineno, line)


def refuse_losses(
    outputs: Path | Iterable[Path], *inputs: Path | None, config: str = "", folders: Iterable[Path] | None = None
) -> None:
    """Refuse outputs of a command that are among its inputs, its configuration, or in the folder of all trials."""
    from plumbline.core.overwriting import check_outputs

    named = [layer for layer in config_layers(config) if isinstance(layer, Path)] if config else []
    check_outputs(
        [outputs] if isinstance(outputs, Path) else outputs,
        [*inputs, *named, *Path("config").rglob("*.yaml")],
        [own(STORE)] if folders is None else folders,
    )


@contextmanager
def printing_aside(data: bool) -> Iterator[None]:
    """Send what code of a user's own prints in the block to standard error, where standard output is for `data`.

    What the programs that it starts print goes there too, so that the file descriptor is exchanged as well.
    """
    if not data:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()  # what was printed past `sys.stdout`
        os.dup2(kept, 1)
        os.close(kept)


def say_written(*paths: Path | None) -> None:
    """Say which files were written, on standard error: standard output may be a table that goes on to another command.

    Args:
        paths: of the files; None of those that nobody asked for.
    """
    if named := [str(path) for path in paths if path is not None]:
        print("plumbline: wrote", ", ".join(named), file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"plumbline {version('plumbline')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """A reproducibility study of Bayesian optimisation under imperfect models."""
    warnings.formatwarning = _one_line
    if debug:
        os.environ[DEBUG] = EVERY  # its subprocesses too
    if context.invoked_subcommand is None:
        print(context.get_help())
        return
    from plumbline.core.threads import threads_asked

    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise PlumblineError("the working directory is no longer there: change to one that is") from error
    threads_asked()  # before torch is imported, whose OpenMP would complain in lines of its own
