"""Where configuration, workflow and reference results are.

A workspace is a folder with `config/studies`: a checkout, or what `plumbline init` wrote. What comes with the package
lies beside `src` in a checkout, and inside the package once it is installed (`force-include` in pyproject.toml).
"""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parents[1]
"""The repository, where the package is not installed from a wheel."""

STUDIES = Path("config/studies")
REFERENCE = Path("results/reference")
ATLAS = Path("results/atlas")
STORE = Path("results/store")
TRIALS = Path("results/trials")
DATA = Path("data")


def installed() -> bool:
    """Return whether the package is installed from a wheel, without a checkout around it."""
    return (PACKAGE / "_share").is_dir()


def shipped() -> Path:
    """Return the folder with all that comes with the package; nothing is written there."""
    return PACKAGE / "_share" if installed() else CHECKOUT


def workspace(start: Path | None = None) -> Path | None:
    """Return the folder with `config/studies` at `start` or above it; None where there is none.

    Args:
        start: the working directory where None.
    """
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / STUDIES).is_dir()), None)


def own_folder() -> Path:
    """Return the folder that results and data go to: the workspace, else the working directory."""
    return workspace() or Path.cwd()


def own(path: Path) -> Path:
    """Return where results or data are in that folder, relative to the working directory if they are the same.

    Args:
        path: relative to the folder, such as STORE; an absolute one stays as it is.
    """
    home = own_folder()
    return path if home == Path.cwd() else home / path


def or_shipped(path: Path) -> Path:
    """Return where a file or folder of reference results is: the path, or the package's where the workspace has none.

    Args:
        path: one outside of the workspace's REFERENCE is returned as it is.
    """
    home = own(REFERENCE).resolve()
    if path.exists() or not path.resolve().is_relative_to(home):
        return path
    return shipped() / REFERENCE / path.resolve().relative_to(home)


def reference_folders() -> dict[str, Path]:
    """Return the folder of each experiment with reference results, the workspace's own before the package's."""
    folders = [home for home in (shipped() / REFERENCE, own(REFERENCE)) if home.is_dir()]
    return {path.name: path for home in folders for path in sorted(home.iterdir()) if path.is_dir()}


def own_or_shipped(path: Path) -> Path:
    """Return where reference results are: in the workspace if it has them, else with the package.

    Args:
        path: below REFERENCE or ATLAS.
    """
    here = own_folder() / path
    # A folder may have a figure of the atlas, and no edition.
    sign = here / "edition.json" if path == ATLAS else here
    return here if sign.exists() else shipped() / path
