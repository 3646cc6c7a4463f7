"""The application: its help, and the options that commands share."""

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    from plumbline.study.plan import Plan

USE, WORKFLOW = "Use", "Workflow (what Snakemake calls)"
"""Groups of commands in the help."""


class Commands(TyperGroup):
    """The commands in their groups, as plain text: the help is read in pipes too, and rich takes longest to import."""

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
ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        help="YAML files laid over each other, separated by commas, or the configuration itself as JSON",
        metavar="FILES|JSON",
    ),
]
CsvOption = Annotated[bool, typer.Option("--csv", help="print CSV")]
DataOption = Annotated[Path, typer.Option(help="folder of downloads and built features")]
StoreOption = Annotated[Path, typer.Option(help="folder of all trials")]
TrialsOption = Annotated[Path, typer.Option(help="folder of the jobs' records, as `plumbline trials` writes them")]
FolderArgument = Annotated[Path, typer.Argument(help="results of a preset")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda: where methods and trainers may compute")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="file to write")]
CONFIG = "config/config.yaml"
STORE = Path("results/store")
TRIALS = Path("results/trials")
DATA = Path("data")
REFERENCE = Path("results/reference")


def read_plan(config: str) -> "Plan":
    """Return the plan of `--config`; the repository is the working directory."""
    from plumbline.study.plan import load_plan
    from plumbline.study.settings import read_config

    if config.lstrip().startswith("{"):
        return load_plan(parse_json(config, "--config"), Path.cwd(), "--config")
    return load_plan(read_config(*(Path(name) for name in config.split(","))), Path.cwd(), config)


def existing_folder(path: Path, what: str) -> Path:
    """Return `path`; raise PlumblineError unless it is a folder."""
    if not path.is_dir():
        raise PlumblineError(f"no folder of {what} at {path}")
    return path


def parse_json(text: str, source: str) -> Any:
    """Parse JSON text; raise PlumblineError, with its source, where it is invalid."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{source} is no JSON: {error}") from error


_LONG_FORM = warnings.formatwarning


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning for users as one line, without the line of code that it comes from; others as they are."""
    if category is UserWarning:
        return f"plumbline: warning: {' '.join(str(message).split())}\n"
    return _LONG_FORM(message, category, filename, lineno, line)


def refuse_losses(
    outputs: Path | Iterable[Path], *inputs: Path | None, config: str = "", folders: Iterable[Path] = (STORE,)
) -> None:
    """Refuse outputs of a command that are among its inputs, its configuration, or in the folder of all trials."""
    from plumbline.core.files import check_outputs

    named = [] if config.lstrip().startswith("{") else [Path(name) for name in config.split(",") if name]
    check_outputs(
        [outputs] if isinstance(outputs, Path) else outputs, [*inputs, *named, *Path("config").rglob("*.yaml")], folders
    )


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
) -> None:
    """A reproducibility study of Bayesian optimisation under imperfect models."""
    warnings.formatwarning = _one_line
    if context.invoked_subcommand is None:
        print(context.get_help())
