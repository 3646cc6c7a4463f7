"""The command `plumbline fetch`: download a dataset."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import WORKFLOW, DataOption, app, path_option, places
from plumbline.cli.pipeline.lists import DatasetsOption, listed


@app.command(rich_help_panel=WORKFLOW)
def fetch(
    dataset: Annotated[str, typer.Argument(help="a dataset of config/datasets.yaml")],
    directory: Annotated[Path | None, path_option(help="folder of downloads; default: raw in --data")] = None,
    mirror: Annotated[
        Path | None, path_option(envvar="PLUMBLINE_MIRROR", help="folder in which to look before the network")
    ] = None,
    data: DataOption = None,
    catalogue: DatasetsOption = None,
) -> None:
    """Download a dataset, or take it from a mirror, and verify its checksum."""
    from plumbline.data.datasets import find_dataset, load_datasets
    from plumbline.data.fetch import fetch as fetch_dataset

    entry = find_dataset(load_datasets(catalogue or listed("datasets")), dataset)
    print(fetch_dataset(entry, directory or places(data=data).data / "raw", mirror))
