"""The lists of datasets and models: `config/datasets.yaml` and `config/models.yaml`."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import path_option

DatasetsOption = Annotated[
    Path | None, path_option(help="the list of datasets; default: config/datasets.yaml of the workspace")
]


def listed(kind: str) -> Path:
    """Return the list of `datasets` or `models` of the workspace, or of the package."""
    from plumbline.api.repository import find_repository

    return find_repository() / "config" / f"{kind}.yaml"
