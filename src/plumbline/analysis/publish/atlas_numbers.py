"""Numbers and tables of an edition of the atlas, for the templates of pages."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plumbline.analysis.atlas.edition import (
    NOT_PLANNED,
    check_edition,
    missing_forecasts,
    missing_pairs,
    read_cells,
    read_rounds,
    read_tasks,
)
from plumbline.analysis.atlas.interventions import DIMENSIONS, INTERVENTIONS, PLACEBOS, TRACK, findings
from plumbline.analysis.atlas.ranks import ranks
from plumbline.analysis.atlas.scores import trials, with_regret
from plumbline.analysis.publish.atlas_answer import answer_of_atlas
from plumbline.analysis.publish.estimates import Estimate, rounded, with_interval
from plumbline.analysis.publish.markdown import table
from plumbline.analysis.publish.pages import listed
from plumbline.core.errors import unknown


class AtlasNumbers:
    """Numbers and tables of an edition, each computed once.

    Args:
        folder: of the edition.
        legends: of methods, by name; one without a legend goes by its name.

    Raises:
        PlumblineError: on the first call, where there is no edition, or another one.
    """

    def __init__(self, folder: Path, legends: Mapping[str, str]) -> None:
        self._folder, self._legends = folder, legends

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What a template can call, by name."""
        found = (
            *(self.atlas_finding, self.atlas_p, self.atlas_answer, self.atlas_interventions, self.atlas_tracks),
            *(self.atlas_dimensions, self.atlas_regrets, self.atlas_pairs, self.atlas_ranking, self.atlas_costs),
            *(self.atlas_total, self.atlas_waiting),
        )
        return {one.__name__: one for one in found}

    def atlas_finding(self, analysis: str, of: str = "score", where: str = "") -> Estimate:
        """One analysis of the protocol, with its interval over tasks.

        Raises:
            PlumblineError: there is no such analysis.
        """
        one = self._finding(analysis, of, where)
        return Estimate(float(one["value"]), float(one["low"]), float(one["high"]))

    def atlas_p(self, analysis: str, of: str = "score") -> float:
        """The p-value of a primary analysis, corrected by Holm's method.

        Raises:
            PlumblineError: there is no such analysis.
        """
        return float(self._finding(analysis, of, "")["p_corrected"])

    def atlas_answer(self) -> str:
        """The effects of the interventions on forecasts and on the search."""
        forecasts, search = answer_of_atlas(self.findings)
        return f"* **Forecasts.** {forecasts}\n* **The values found.** {search}"

    def atlas_interventions(self) -> str:
        """The interventions as a table: their effects on calibration and on the normalised regret."""
        rows = []
        for one in (*INTERVENTIONS, *PLACEBOS):
            score = self._finding(one.words, "score", "")
            rows.append(
                {
                    "intervention": one.words,
                    "tasks": str(int(score["tasks"])),
                    "calibration error": with_interval(self.atlas_finding(one.words, "calibration_error"), 3),
                    "normalised regret": with_interval(self.atlas_finding(one.words), 3),
                    "p, Holm": _p(float(score["p_corrected"])),
                }
            )
        return table(pd.DataFrame(rows))

    def atlas_tracks(self) -> str:
        """The differences in score that the interventions make, by track."""
        there = self.findings["where"][self.findings["tasks"] > 0]
        return self._parts({one.removeprefix(TRACK): one for one in there.unique() if one.startswith(TRACK)})

    def atlas_dimensions(self) -> str:
        """The same by the number of inputs."""
        return self._parts({words: words for words in DIMENSIONS})

    def atlas_regrets(self, wheres: Sequence[str]) -> str:
        """The same by other regrets than the score: keys of `interventions.OTHER_REGRETS` in words."""
        return self._parts({words: words for words in wheres})

    def atlas_pairs(self) -> str:
        """The same for each pair of a method and its baseline."""
        rows = []
        for one in INTERVENTIONS:
            for pair in one.single_pairs or one.pairs:
                where = f"{pair[0]} minus {pair[1]}" if one.single_pairs else ""
                score = self._finding(one.words, "score", where)
                rows.append(
                    {
                        "intervention": one.words,
                        "method": self._legend(pair[0]),
                        "baseline": self._legend(pair[1]),
                        "tasks": str(int(score["tasks"])),
                        "normalised regret": with_interval(self.atlas_finding(one.words, "score", where), 3),
                    }
                )
        return table(pd.DataFrame(rows))

    def atlas_ranking(self, most: int) -> str:
        """The best methods on all tasks, with the percentage of the other methods that they beat, by track."""
        here = self.ranks[self.ranks["cost"] == ""]
        return self._shares(here.assign(column=here["track"]), most)

    def atlas_costs(self, most: int) -> str:
        """The same on all tasks by the cost of an evaluation, ordered by the lowest cost."""
        here = self.ranks[self.ranks["cost"] != ""]
        return self._shares(here.assign(column=here["cost"]), most)

    def atlas_total(self, of: str) -> float:
        """One of the totals of the edition.

        Of trials: `tasks`, `methods`, `trials`, `failed` ones, core-`hours`. Of pairs of task and method: `empty` ones;
        those of them that were `unplanned`; those whose trials are still to be run, `missing`, or, of methods that make
        forecasts, `unanswered`.

        Raises:
            PlumblineError: there is no such number.
        """
        cells = self._cells
        there = cells[cells["seeds"] > 0]
        totals = {
            "tasks": there["task"].nunique(),
            "methods": there["method"].nunique(),
            "trials": there["seeds"].sum(),
            "failed": cells["failed"].sum(),
            "empty": (cells["seeds"] == 0).sum(),
            "unplanned": (cells["empty"] == NOT_PLANNED).sum(),
            "missing": len(self._missing),
            "unanswered": self._unanswered,
            "hours": (there["seconds"] * there["seeds"]).sum() / 3600.0,
        }
        if of not in totals:
            raise unknown("number of the atlas", of, totals)
        return float(totals[of])

    def atlas_waiting(self) -> str:
        """The legends of the methods that are still to be run on some tasks."""
        names = [self._legend(method) for method in self._missing["method"].unique()]
        return listed(names)

    @cached_property
    def _cells(self) -> pd.DataFrame:
        check_edition(self._folder)
        return read_cells(self._folder)

    @cached_property
    def _missing(self) -> pd.DataFrame:
        return missing_pairs(self._folder)

    @cached_property
    def _unanswered(self) -> int:
        return len(missing_forecasts(self._folder))

    @cached_property
    def _tasks(self) -> pd.DataFrame:
        return read_tasks(self._folder)

    @cached_property
    def _rounds(self) -> pd.DataFrame:
        cells = self._cells
        return with_regret(read_rounds(self._folder, cells.loc[cells["seeds"] > 0, "task"].unique()))

    @cached_property
    def findings(self) -> pd.DataFrame:
        """All analyses, as `interventions.findings` returns them."""
        return findings(trials(self._rounds), self._tasks)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The methods by track and cost, as `ranks.ranks` returns them."""
        return ranks(self._rounds, self._tasks)

    def _finding(self, analysis: str, of: str, where: str) -> pd.Series:
        found = self.findings
        here = found[(found["analysis"] == analysis) & (found["of"] == of) & (found["where"] == where)]
        if here.empty:
            raise unknown("analysis of the atlas", analysis, found["analysis"].unique())
        return here.iloc[0]

    def _parts(self, columns: Mapping[str, str]) -> str:
        """Return differences with their intervals, one row per intervention and one column per part of the findings."""
        found = self.findings[self.findings["of"] != "calibration_error"]
        rows = []
        for one in INTERVENTIONS:
            here = found[found["analysis"] == one.words]
            cells = {words: _difference(here[here["where"] == part]) for words, part in columns.items()}
            rows.append({"intervention": one.words, **cells})
        return table(pd.DataFrame(rows))

    def _shares(self, standings: pd.DataFrame, most: int) -> str:
        """Return shares in percent, one row per method and a column each, the first `most` by the first column.

        Methods that run on less than half of the tasks are left out: their rank rests on a few tasks of one kind.
        """
        columns = [str(one) for one in dict.fromkeys(standings["column"])]
        tasks = standings[standings["column"] == columns[0]].set_index("method")["tasks"]
        widely = tasks.index[tasks >= self.atlas_total("tasks") / 2]
        shares = standings.pivot(index="method", columns="column", values="beaten").loc[widely, columns]
        first = shares.sort_values(columns[0], ascending=False, kind="stable").head(most)
        written = (100 * first).map(lambda share: "–" if np.isnan(share) else f"{share:.0f}")
        ends = standings[standings["column"] == columns[0]].set_index("method").loc[first.index, ["low", "high"]]
        written[columns[0]] += [f" ({low:.0f} to {high:.0f})" for low, high in 100 * ends.to_numpy()]
        written = written.reset_index(names="entry")
        written.insert(0, "method", written["entry"].map(self._legend))
        written.insert(2, "tasks", written["entry"].map(tasks).astype(str))
        return table(written)

    def _legend(self, method: str) -> str:
        return self._legends.get(method, method)


def _difference(findings: pd.DataFrame) -> str:
    """Return the one finding there is, with its interval where it is finite; a dash where there is none."""
    if findings.empty or np.isnan(findings["value"].iloc[0]):
        return "–"
    one = findings.iloc[0]
    if np.isinf(one["low"]):
        return rounded(one["value"], 3)
    return with_interval(Estimate(float(one["value"]), float(one["low"]), float(one["high"])), 3)


def _p(value: float) -> str:
    if np.isnan(value):
        return "–"
    return "< .001" if value < 0.001 else rounded(value, 3)
