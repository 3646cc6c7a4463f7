"""What the page of figures asks: each registered kind with an example, its least use and its options."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from plumbline.analysis.publish.markdown import escaped
from plumbline.analysis.publish.result_pages import LINK
from plumbline.core.errors import PlumblineError, unknown
from plumbline.registry.catalogue import catalogue
from plumbline.store.reference_files import ExperimentFiles
from plumbline.study.experiments import Experiment, Study
from plumbline.study.schemas import option_table

WIDTH = 100
"""Of a line of YAML."""


class FigureKinds:
    """The kinds of figures of this package, and the experiments that have one among the reference results.

    Args:
        reference: reference results.
        studies: with their experiments.
    """

    def __init__(self, reference: Path, studies: Sequence[Study]) -> None:
        self._reference = reference
        self._experiments = {name: one for study in studies for name, one in study.experiments.items()}

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What a template can call, by name."""
        return {"figure_kinds": self.figure_kinds, "figure_kind": self.figure_kind}

    def figure_kinds(self) -> str:
        """Every kind with what it draws, as a table that leads to the sections."""
        rows = [f"| [`{name}`](#{name}) | {escaped(one.summary)} |" for name, one in catalogue().figure.items()]
        return "\n".join(["| kind | what is drawn |", "|---|---|", *rows])

    def figure_kind(self, kind: str, example: str) -> str:
        """One kind: the figure of an experiment, the least that an experiment says to have one, and all options.

        Raises:
            PlumblineError: no such kind or experiment, or an experiment without a reference figure of this kind.
        """
        listing = catalogue().find("figure", kind)
        experiment = self._example(kind, example)
        use = least_use(experiment, listing.options.get("required", ()))
        options = option_table(listing.options, inside=True).rstrip()
        return "\n\n".join(
            [
                f"![{escaped(experiment.title)}]({LINK}/{example}/{example}.png)",
                f"{escaped(listing.summary)} *Example: {escaped(experiment.title)} ([{example}]({LINK}/{example})).*",
                f"```yaml\n{yaml.safe_dump(use, sort_keys=False, default_flow_style=None, width=WIDTH)}```",
                options if listing.options["properties"] else "No options.",
            ]
        )

    def _example(self, kind: str, name: str) -> Experiment:
        if name not in self._experiments:
            raise unknown("experiment", name, self._experiments)
        experiment = self._experiments[name]
        if experiment.figure is None or experiment.figure.kind != kind:
            raise PlumblineError(f"the figure of {name} is not of the kind {kind}: name an experiment that has one")
        if not ExperimentFiles(self._reference / name).figure.is_file():
            raise PlumblineError(f"{name} has no reference figure: name an experiment that has one")
        return experiment


def least_use(experiment: Experiment, required: Sequence[str]) -> dict[str, Any]:
    """Return what an experiment must say to have a figure: the kind, with the required options as this one has them.

    The illustration and the snapshots of models that the figure shows belong to it.
    """
    assert experiment.figure is not None, "the caller has looked"
    use: dict[str, Any] = {}
    if experiment.illustration:
        use["illustration"] = {"kind": experiment.illustration.kind}
    if experiment.diagnostics.snapshots:
        use["diagnostics"] = {"snapshots": {"rounds": list(experiment.diagnostics.snapshots.rounds)}}
    options = {name: value for name, value in experiment.figure.options.items() if name in required}
    return use | {"figure": {"kind": experiment.figure.kind} | ({"options": options} if options else {})}
