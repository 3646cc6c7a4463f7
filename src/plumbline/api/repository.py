"""The configuration: that of the workspace around the working directory, else what comes with the package."""

from collections.abc import Collection
from pathlib import Path

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.places import STUDIES, shipped, workspace
from plumbline.core.strict_yaml import yaml_files
from plumbline.study.experiments import Study, load_study, named_in_studies
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
    for path, names in named_in_studies(repository / STUDIES, "experiments", unread):
        if experiment in names:
            return path, load_study(path)
        known += names
    if unread:
        raise unread[0]
    raise unknown("experiment", experiment, known, "plumbline experiments")


def studies_with_claims(repository: Path, claims: Collection[str], first: Collection[str] = ()) -> list[Study]:
    """Return the studies of a repository that have some of these claims, each with these alone.

    No other study is checked. A claim that several studies have is that of one of the `first`, where these have it.
    Claims that no study has are left out.

    Raises:
        PlumblineError: a claim is in none of the files that can be read, with what is wrong in the first other one.
    """
    unread: list[PlumblineError] = []
    found: list[Study] = []
    wanted = set(claims)
    files = list(named_in_studies(repository / STUDIES, "claims", unread))
    for path, names in sorted(files, key=lambda one: one[0].stem not in first):
        if not wanted.isdisjoint(names):
            study = load_study(path)
            found.append(
                study.model_copy(update={"claims": {name: one for name, one in study.claims.items() if name in wanted}})
            )
            wanted -= names
    if unread and wanted:
        raise unread[0]
    return found
