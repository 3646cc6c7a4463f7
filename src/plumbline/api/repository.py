"""The configuration: that of the workspace around the working directory, else what comes with the package."""

from pathlib import Path

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.places import STUDIES, shipped, workspace
from plumbline.core.strict_yaml import read_yaml, yaml_files
from plumbline.study.experiments import Study, load_study
from plumbline.study.settings import Config, read_config


def find_repository(start: Path | None = None) -> Path:
    """Return the folder with the configuration: the workspace at `start` or above it, else that of the package.

    Args:
        start: the working directory where None.
    """
    return workspace(start) or shipped()


def study_names(repository: Path) -> list[str]:
    """Return the names of all studies of a repository, in the configuration or not; raise as `yaml_files` does."""
    return [path.stem for path in yaml_files(repository / STUDIES)]


def read_configuration(repository: Path) -> Config:
    """Return the configuration of `config/config.yaml`."""
    return read_config(repository / "config/config.yaml")


def find_study(repository: Path, experiment: str) -> tuple[Path, Study]:
    """Return the file and the content of the study that has an experiment, of all of a repository.

    No other study is checked: one that is being written hinders nobody.

    Raises:
        PlumblineError: there is none, with the nearest names, or with what is wrong in a file that may have it.
    """
    known: list[str] = []
    unread: list[PlumblineError] = []
    for name in study_names(repository):
        path = repository / STUDIES / f"{name}.yaml"
        try:
            content = read_yaml(path)
        except PlumblineError as error:
            unread.append(error)
            continue
        names = content.get("experiments") if isinstance(content, dict) else None
        if isinstance(names, dict):
            if experiment in names:
                return path, load_study(path)
            known += map(str, names)
    if unread:
        raise unread[0]
    raise unknown("experiment", experiment, known, "plumbline experiments")
