"""The command `plumbline redraw`: redraw the figures of published results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plumbline.cli.app import CONFIG, WORKFLOW, ConfigOption, app, existing_folder, path_option, read_plan
from plumbline.cli.completing import complete
from plumbline.core.places import REFERENCE, own

if TYPE_CHECKING:
    from plumbline.study.plan import Plan


@app.command(rich_help_panel=WORKFLOW)
def redraw(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="names of experiments; default: all with a reference figure", autocompletion=complete("experiment")
        ),
    ] = None,
    config: ConfigOption = CONFIG,
    reference: Annotated[
        Path | None, path_option(help="folder of the reference results; default: the workspace's")
    ] = None,
) -> None:
    """Redraw the reference figures from the reference results, without running any trial."""
    from plumbline.analysis.publish.redraw import redraw as redrawn

    plans: dict[str, Plan] = {}

    def settings(values: Mapping[str, Any]) -> "Plan":
        layer = json.dumps(values)
        if layer not in plans:
            plans[layer] = read_plan(f"{config},{layer}")
        return plans[layer]

    for name, reason in redrawn(
        settings, existing_folder(reference or own(REFERENCE), "reference results"), experiments or ()
    ):
        print(f"{name}: {f'left as it is, {reason}' if reason else 'drawn'}")
