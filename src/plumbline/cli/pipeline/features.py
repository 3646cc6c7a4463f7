"""The command `plumbline features`: build the features of a dataset."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import WORKFLOW, DataOption, app, path_option, places, refuse_losses
from plumbline.cli.pipeline.lists import DatasetsOption, listed, require_fetched
from plumbline.core.words import counted


@app.command(rich_help_panel=WORKFLOW)
def features(
    dataset: Annotated[str, typer.Argument(help="a dataset of config/datasets.yaml")],
    output: Annotated[
        Path | None, path_option("--output", "-o", help="file to write; default: where trials look for it in data")
    ] = None,
    raw: Annotated[
        Path | None,
        path_option(help="the downloaded file; default: where `plumbline fetch` puts it, none for generated datasets"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="processes")] = 1,
    data: DataOption = None,
    catalogue: DatasetsOption = None,
) -> None:
    """Build the features of a dataset."""
    from plumbline.data.datasets import dataset_for, load_datasets
    from plumbline.data.features import build_features, write_features

    catalogue = catalogue or listed("datasets")
    folder = places(data=data).data
    output = output or folder / "features" / f"{dataset}.parquet"
    entry = dataset_for(output, load_datasets(catalogue), dataset)
    if entry.file and entry.features:
        raw = raw or folder / "raw" / entry.file
        require_fetched(raw, f"dataset {dataset!r}", dataset, data)
    refuse_losses(output, raw, catalogue)
    table = build_features(entry, raw, jobs)
    write_features(table, output, entry)
    print(f"{output}: {counted(len(table), 'row')}")
