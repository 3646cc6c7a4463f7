"""How reference results lie in files: those of experiments in `results/reference`, and an edition of the atlas."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLAIMS = "claims.csv"
"""The verdicts: of the reference results, and of the results of a preset."""

DOUBTS = "doubts.csv"
"""The doubts about verdicts, beside a table of them."""

COSTS = "costs.csv"
"""Median seconds of a round, by task and method, beside the reference results."""

ANSWER = "answer"
"""The figure that sums the verdicts up, beside the reference results, as PNG and SVG."""

SMALL_SAMPLES = "small-samples.png"
"""The figure of what fewer seeds would have shown, beside the reference results."""


@dataclass(frozen=True)
class ExperimentFiles:
    """The files of one experiment among the reference results; no experiment has all of them.

    Attributes:
        folder: of its files; it has the name of the experiment.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Of the experiment."""
        return self.folder.name

    @property
    def figure(self) -> Path:
        """The figure, a PNG."""
        return self._own(".png")

    @property
    def table(self) -> Path:
        """The table, as it was written."""
        return self._own("-table.csv")

    @property
    def illustration(self) -> Path:
        """What was computed without trials."""
        return self._own("-illustration.parquet")

    @property
    def curves(self) -> Path:
        """Means by round."""
        return self._own("-curves.parquet")

    @property
    def rounds(self) -> Path:
        """Values of single runs by round."""
        return self._own("-rounds.parquet")

    @property
    def runs(self) -> Path:
        """Values of whole runs, which claims are judged by."""
        return self._own("-runs.parquet")

    @property
    def provenance(self) -> Path:
        """Where trials come from."""
        return self.folder / "provenance.json"

    @property
    def illustration_provenance(self) -> Path:
        """Where the illustration comes from."""
        return self.folder / "illustration-provenance.json"

    @property
    def provenances(self) -> Sequence[Path]:
        """The provenances that are there, that of trials first."""
        return [path for path in (self.provenance, self.illustration_provenance) if path.is_file()]

    @property
    def files(self) -> Sequence[Path]:
        """All files that an experiment may have."""
        return (
            self.figure,
            self.table,
            self.illustration,
            self.curves,
            self.rounds,
            self.runs,
            self.provenance,
            self.illustration_provenance,
        )

    def _own(self, ending: str) -> Path:
        return self.folder / f"{self.name}{ending}"


def drawn(reference: Path) -> list[str]:
    """Return the names of the experiments with a figure among the reference results, in order."""
    pictures = reference.glob("*/*.png")
    return sorted(path.parent.name for path in pictures if path == ExperimentFiles(path.parent).figure)


@dataclass(frozen=True)
class EditionFiles:
    """The files of an edition of the atlas.

    Attributes:
        folder: of the edition.
    """

    folder: Path

    @property
    def edition(self) -> Path:
        """Its name, and what it was made with; written last."""
        return self.folder / "edition.json"

    @property
    def cells(self) -> Path:
        """One row per task and method."""
        return self.folder / "cells.csv"

    @property
    def tasks(self) -> Path:
        """One row per task."""
        return self.folder / "tasks.csv"

    def rounds(self, task: str) -> Path:
        """The rounds of a task."""
        return self.folder / f"{task}.parquet"

    def figure(self, kind: str) -> Path:
        """The figure of the primary analyses, as `png` or `svg`."""
        return self.folder / f"interventions.{kind}"
