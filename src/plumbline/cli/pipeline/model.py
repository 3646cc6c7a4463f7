"""The command `plumbline model`: train a model, or copy one that is kept with the atlas."""

from pathlib import Path
from typing import Annotated

import typer

from plumbline.cli.app import WORKFLOW, DataOption, DeviceOption, app, path_option, places, refuse_losses
from plumbline.cli.pipeline.lists import listed, require_fetched


@app.command(rich_help_panel=WORKFLOW)
def model(
    name: Annotated[str, typer.Argument(help="a model of config/models.yaml")],
    output: Annotated[
        Path | None, path_option("--output", "-o", help="file to write; default: where trials look for it in data")
    ] = None,
    data: DataOption = None,
    catalogue: Annotated[
        Path | None, path_option(help="the list of models; default: config/models.yaml of the workspace")
    ] = None,
    device: DeviceOption = "cpu",
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="processes, for trainers that can use several")] = 1,
    anew: Annotated[bool, typer.Option("--anew", help="train it even if the atlas has it")] = False,
) -> None:
    """Train a model that problems or methods read from a file, or resume an interrupted training.

    A model of the atlas (results/atlas/models) is copied instead, since a new training would give another model.
    """
    import logging

    from plumbline.api.running import one_thread
    from plumbline.core.device import device_called
    from plumbline.data.datasets import load_datasets
    from plumbline.data.models import load_models
    from plumbline.store.keys import input_paths
    from plumbline.trainers.base import train
    from plumbline.trainers.kept import kept_model, take_kept

    catalogue, folder = catalogue or listed("models"), places(data=data).data
    output = output or folder / "models" / f"{name}.npz"
    refuse_losses(output, catalogue, *folder.glob("raw/*"), *folder.glob("features/*"))
    entries = load_models(catalogue)
    if not anew and name in entries and (kept := kept_model(name, entries[name])):
        take_kept(kept, output)
        print(f"{output}: a copy of {kept}")
        return
    if name in entries:
        files = {one.file: dataset for dataset, one in load_datasets(listed("datasets")).items() if one.file}
        for path in map(Path, input_paths("trainer", entries[name].trainer, entries[name].options)):
            if path.parent.name == "raw" and path.name in files:
                require_fetched(folder / path, f"model {name!r}", files[path.name], data)
        output.parent.mkdir(parents=True, exist_ok=True)  # where a training keeps what it has so far
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # a line an epoch
    with one_thread():
        train(name, entries, folder, output, device_called(device), jobs)
    print(output)
