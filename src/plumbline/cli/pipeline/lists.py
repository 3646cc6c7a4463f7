"""The lists of datasets and models: `config/datasets.yaml` and `config/models.yaml`."""

import shlex
from pathlib import Path
from typing import Annotated

from plumbline.cli.app import path_option
from plumbline.core.errors import PlumblineError

DatasetsOption = Annotated[
    Path | None, path_option(help="the list of datasets; default: config/datasets.yaml of the workspace")
]


def listed(kind: str) -> Path:
    """Return the list of `datasets` or `models` of the workspace, or of the package."""
    from plumbline.api.repository import find_repository

    return find_repository() / "config" / f"{kind}.yaml"


def require_fetched(path: Path, whose: str, dataset: str, data: Path | None) -> None:
    """Raise PlumblineError, with the command that downloads it, unless a downloaded file is there.

    Args:
        path: of the file.
        whose: what is built from it, for the message: "dataset 'libsvm-dna'".
        dataset: its name in config/datasets.yaml.
        data: the folder that was named on the command line.
    """
    if not path.is_file():
        where = f" --data {shlex.quote(str(data))}" if data else ""
        raise PlumblineError(
            f"{whose} is built from {path}, which is not there: `plumbline fetch {dataset}{where}` gets it"
        )
