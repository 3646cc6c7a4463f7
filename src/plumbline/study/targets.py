"""Names of the workflow's rules: studies and experiments, which are targets of Snakemake too, have others."""

import re
from pathlib import Path
from typing import NamedTuple, Self

from plumbline.core.places import shipped


class RuleNames(NamedTuple):
    """Names of rules.

    Attributes:
        whole: of those that are written out.
        beginnings: of those that the workflow makes in a loop.
    """

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    @classmethod
    def read(cls, root: Path) -> Self:
        """Return the names of the rules of the workflow at `root`, or in a workspace of that of the package."""
        folder = next(one / "workflow" for one in (root, shipped()) if (one / "workflow").is_dir())
        files = [path for path in folder.rglob("*") if path.suffix == ".smk" or path.name == "Snakefile"]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        return cls(
            frozenset(re.findall(r"^ *(?:rule|checkpoint) (\w+):", text, re.MULTILINE)),
            tuple(re.findall(r"^ *name:\s+f\"([\w-]+)\{", text, re.MULTILINE)),
        )

    def have(self, name: str) -> bool:
        """Return whether a rule has the name, or may have it."""
        return name in self.whole or name.startswith(self.beginnings)
