"""The registries of figures and tables: (evidence, options) in, a figure or a frame out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from plumbline.core.options import Options
from plumbline.registry.registry import Registry

if TYPE_CHECKING:
    from plumbline.analysis.evidence.evidence import Evidence

figures = Registry("figure", "plumbline.analysis.figures")
tables = Registry("table", "plumbline.analysis.tables")


@dataclass(frozen=True)
class Names:
    """What options speak of by name, so that typing errors are found before any trial runs.

    A method may be the entry of a whole family.
    """

    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


class OutputOptions(Options):
    """Options of a figure or a table.

    Attributes:
        reads: columns of the records that it reads besides those of its metrics.
        draws_curves: whether it draws metrics over rounds: reference results keep its curves.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    draws_curves: ClassVar[bool] = False

    def names(self) -> Names:
        """Return the tasks, methods and metrics that these options name; what is left to the grid is not among them."""
        return Names()

    def shown(self, evidence: "Evidence") -> str:
        """Return what the lines, bands and bars of the figure of this evidence are, for its footer."""
        return ""
