"""Packages that declare methods and problems, as an installer would leave them in a folder."""

from collections.abc import Mapping
from pathlib import Path

METHOD = '''"""A method of a package."""

from mine.helper import part

from plumbline.core.options import Options
from plumbline.methods.base import Method, Proposal, methods


class MiddleOptions(Options):
    part: float = 0.5


@methods.register("my-middle", MiddleOptions)
class Middle(Method):
    """A point between the corners."""

    def ask(self, history, q, generator):
        low, high = self.domain.bounds
        return Proposal((low + part(self.options.part) * (high - low)).expand(q, -1).clone())
'''

PROBLEM = '''"""A problem of a package."""

import torch
from botorch.test_functions import SyntheticTestFunction

from plumbline.problems.base import problems
from plumbline.problems.build import with_noise
from plumbline.problems.options import ScalableOptions


class Bowl(SyntheticTestFunction):
    _optimal_value = 0.0

    def __init__(self, dim, **more):
        self.dim, self.continuous_inds = dim, list(range(dim))
        self._bounds = [(-1.0, 1.0)] * dim
        super().__init__(**more)

    def _evaluate_true(self, X):
        return (X**2).sum(-1)


@problems.register("my-bowl", ScalableOptions)
def bowl(options, context):
    """Any d, one minimum."""
    return with_noise(Bowl(options.dim, negate=True), options)
'''

FILES = {
    "mine/__init__.py": "",
    "mine/helper.py": "def part(x):\n    return x\n",
    "mine/methods.py": METHOD,
    "mine/problems.py": PROBLEM,
    "mine/unused.py": "x = 1\n",
}
METHODS, PROBLEMS = {"my-middle": "mine.methods"}, {"my-bowl": "mine.problems"}


def write_package(
    folder: Path,
    name: str = "my-package",
    files: Mapping[str, str] = FILES,
    methods: Mapping[str, str] = METHODS,
    problems: Mapping[str, str] = PROBLEMS,
    version: str = "0.1.0",
) -> None:
    """Write files of a package, and what an installer says of it, into a folder."""
    about = folder / f"{name.replace('-', '_')}.dist-info"
    groups = {"plumbline.methods": methods, "plumbline.problems": problems}
    texts = {
        **files,
        f"{about.name}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about.name}/RECORD": "".join(f"{file},,\n" for file in files),
        f"{about.name}/entry_points.txt": "\n".join(
            f"[{group}]\n" + "".join(f"{entry} = {module}\n" for entry, module in points.items())
            for group, points in groups.items()
        ),
    }
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
