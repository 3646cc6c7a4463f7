"""The command `plumbline trials`: run trials in chunks."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import (
    WORKFLOW,
    DataOption,
    DeviceOption,
    StoreOption,
    app,
    parse_json,
    path_option,
    places,
    refuse_losses,
)
from plumbline.core.errors import PlumblineError


@app.command(rich_help_panel=WORKFLOW)
def trials(
    chunk: Annotated[
        list[str],
        typer.Option(
            help="spec and seeds as JSON, as often as --output; `plumbline plan --chunks` prints them", metavar="<JSON>"
        ),
    ],
    output: Annotated[list[Path], path_option("--output", "-o", help="files to write, one for each chunk")],
    store: StoreOption = None,
    data: DataOption = None,
    device: DeviceOption = "cpu",
    lockstep: Annotated[int, typer.Option(min=1, help="seeds that run in lockstep, if the method supports it")] = 1,
) -> None:
    """Run or resume the trials of chunks, one chunk after another, and collect their records."""
    from plumbline.api.running import run_specs
    from plumbline.core.arrow import without_pandas
    from plumbline.core.options import parse
    from plumbline.store import records
    from plumbline.store.spec import Chunk

    if len(chunk) != len(output):
        raise PlumblineError(f"name an --output for each --chunk (got {len(output)} for {len(chunk)})")
    at = places(store, data=data)
    refuse_losses(output, *at.data.glob("*/*"), folders=[at.store])
    without_pandas()
    chunks = [parse(Chunk, parse_json(text, "--chunk"), "--chunk") for text in chunk]
    for one, path in zip(chunks, output, strict=True):
        specs = one.specs()
        folders = run_specs(specs, at.store, at.data, device, lockstep=lockstep, reasons=True)
        tables = [folder.table(spec) for folder, spec in zip(folders, specs, strict=True)]
        records.write_table(path, records.concatenate(tables))
