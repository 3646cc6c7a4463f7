"""The pages of the package's documentation: one a folder, made of the docstrings of its modules."""

from pathlib import Path

from plumbline.analysis.publish.pages import render, write_pages


def modules_of(folder: Path) -> list[str]:
    """The modules of one folder of the package, without `__init__` and `__main__`."""
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))


def folders_of(folder: Path) -> list[Path]:
    """The packages that lie directly in a folder."""
    return sorted(path.parent for path in folder.glob("*/__init__.py"))


def api_pages(folder: Path, package: str) -> dict[str, str]:
    """The pages of a package and of all packages below it, by file name, as reStructuredText."""
    below = folders_of(folder)
    names = [f"{package}.{one.name}" for one in below]
    pages = {f"{package}.rst": render("package.rst.j2", package=package, modules=modules_of(folder), packages=names)}
    for one, name in zip(below, names, strict=True):
        pages |= api_pages(one, name)
    return pages


def write_api_pages(package: Path, folder: Path) -> None:
    """Write the pages of the package in the folder `package`, and of all packages below it, to `folder`."""
    write_pages(api_pages(package, package.name), folder)
