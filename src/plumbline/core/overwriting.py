"""No command writes over what it reads."""

from collections.abc import Iterable
from pathlib import Path

from plumbline.core.errors import PlumblineError


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path | None] = (), folders: Iterable[Path] = ()) -> None:
    """Refuse outputs of a command that would overwrite what is no output of it.

    Args:
        outputs: files that it writes.
        inputs: files that it reads; None for those that were not given.
        folders: where it may not write.

    Raises:
        PlumblineError: an output is an input or another output, is in one of the folders, or is no file.
    """
    sources, seen = [path for path in inputs if path is not None], list[Path]()
    for output in outputs:
        if output.exists() and not output.is_file():
            kind = "a folder" if output.is_dir() else "a device or a pipe"
            raise PlumblineError(f"output {output} is {kind}: name a file")
        if any(_same(output, other) for other in seen):
            raise PlumblineError(f"output {output} is named twice: give each output a file of its own")
        if any(_same(output, source) for source in sources):
            raise PlumblineError(f"output {output} is an input of this command too: name another file")
        for folder in folders:
            if output.resolve().is_relative_to(folder.resolve()):
                raise PlumblineError(f"output {output} is in {folder}, where no command may write: name another file")
        seen.append(output)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever names and links."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
