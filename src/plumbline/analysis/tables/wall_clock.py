"""How long runs take, and how many times as long as another method's: AABO, table 3."""

import numpy as np
import pandas as pd
from pydantic import Field, PositiveFloat

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import Names, OutputOptions, tables
from plumbline.core.errors import PlumblineError
from plumbline.metrics.registry import by_round
from plumbline.statistics.means import Ratio
from plumbline.statistics.over_seeds import known_error, mean_and_standard_error


class WallClockOptions(OutputOptions):
    """Options of the table.

    Attributes:
        baseline: the method whose time is the unit.
        published: minutes of a run as a document has them, by method; the baseline's among them.
    """

    baseline: str
    published: dict[str, PositiveFloat] = Field(default_factory=dict)

    reads = ("round_seconds",)

    def names(self) -> Names:
        """Return the methods."""
        return Names(methods=(self.baseline, *self.published))


def ratio(seconds: pd.DataFrame, unit: pd.DataFrame, name: str) -> dict[str, float]:
    """Return the ratio of the times of two methods on the same seeds and rounds, with its 95% interval.

    Raises:
        PlumblineError: they share no seed and round.
    """
    ours, theirs = seconds.align(unit, join="inner")
    if ours.empty:
        raise PlumblineError(f"{name}: no seed and round that both methods have")
    found = Ratio(ours.mean(axis=1).to_numpy(), theirs.mean(axis=1).to_numpy(), name)
    low, high = found.interval()
    return {"ratio": found.value, "ratio low": low, "ratio high": high}


@tables.register("wall-clock", WallClockOptions)
def wall_clock(evidence: Evidence, options: WallClockOptions) -> pd.DataFrame:
    """Seconds a round, minutes a run without its initial design, and ratios to the baseline, ours and published."""
    rows = []
    for task, method in evidence.pairs:
        seconds = by_round(evidence.trials(task, method), "round_seconds")
        minutes, error = mean_and_standard_error(seconds.sum(axis=1).to_numpy() / 60)
        row: dict[str, object] = {
            "task": task,
            "method": method,
            "seeds": len(seconds),
            "rounds": seconds.shape[1],
            "seconds a round": float(np.nanmean(seconds)),
            "minutes": float(minutes),
            "minutes ±": known_error(float(error), len(seconds)),
        }
        if (task, options.baseline) in evidence.pairs:
            unit = by_round(evidence.trials(task, options.baseline), "round_seconds")
            row |= ratio(seconds, unit, f"{task} {method}")
        if method in options.published:
            row["published minutes"] = options.published[method]
            if options.baseline in options.published:
                row["published ratio"] = options.published[method] / options.published[options.baseline]
        rows.append(row)
    return pd.DataFrame(rows)
