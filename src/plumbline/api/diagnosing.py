"""A check of the forecasts of a surrogate model, from any library."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from plumbline.api.arguments import checked
from plumbline.core.errors import PlumblineError, unknown

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.methods.calibrated.recalibration import Array

Recalibrator = Literal["isotonic", "gp"]


LONGEST_WINDOW = 1_000_000
"""Earlier forecasts from which a recalibrator learns at most."""


@checked
def diagnose(
    forecasts: "pd.DataFrame | str | Path", *, window: int = 50, recalibrator: "Recalibrator" = "isotonic"
) -> "pd.DataFrame":
    """Compare Gaussian forecasts with observations, and compute the effect of recalibration.

    The model must make each forecast before it has seen the observation: one step ahead, or for held-out points. The
    standard deviations include the noise.

    Args:
        forecasts: a table, or the path of a CSV file, with one row for each forecast, 10 to 2,000 in all: `y`, `mean`
            and `sd`; `round` if rows are not in order; and the inputs `x1`, `x2`, ... if errors may depend on them.
        window: the greatest number of earlier forecasts from which a recalibrator learns.
        recalibrator: the model of levels, as in calibrated Bayesian optimisation
            (`pb.classes("method", "calibrated")`): isotonic, or gp, which takes longer.

    Returns:
        A row for each measure: its `part` and `name`; its `value` with the 95% interval `low` to `high`; the value
        `expected` of right forecasts; the two-sided `p` of that value; and `p_corrected` by Holm's method for the
        number of tests. The parts `earlier` and `other` are for forecasts recalibrated on those before, and on all
        others. The attribute `attrs["verdict"]` has one sentence for each fault of the forecasts, and
        `attrs["recalibration"]` the effect of recalibration.

    Raises:
        PlumblineError: `forecasts` is neither a table nor the path of one, a column is missing, a cell is not a finite
            number, an sd is not above zero, or there are too few or too many rows.

    Examples:
        >>> found = pb.diagnose(pd.DataFrame({"y": y, "mean": mean, "sd": sd}))
        >>> found.attrs["verdict"], found[["name", "value", "low", "high"]]
    """
    import pandas as pd

    from plumbline.analysis.diagnosis.forecasts import forecasts_of, read_forecasts
    from plumbline.analysis.diagnosis.measures import Measure, beside, judged
    from plumbline.analysis.diagnosis.replay import FEWEST, from_earlier, from_others, replayed
    from plumbline.analysis.diagnosis.verdict import faults, remedies
    from plumbline.methods.calibrated.recalibration import recalibrated_scale

    if recalibrator not in get_args(Recalibrator):
        raise unknown("recalibrator", recalibrator, get_args(Recalibrator))
    if window > LONGEST_WINDOW:
        raise PlumblineError(f"window: at most {LONGEST_WINDOW:,} (got {window})")
    if window < FEWEST:
        raise PlumblineError(f"window: a recalibrator learns from {FEWEST} forecasts at least (got {window})")
    if isinstance(forecasts, pd.DataFrame):
        known = forecasts_of(forecasts)
    elif isinstance(forecasts, str | PathLike):
        known = read_forecasts(Path(forecasts))
    else:
        kind = type(forecasts).__name__
        raise PlumblineError(f"forecasts: a pandas DataFrame or the path of a CSV file is wanted (got {kind})")

    def scale(pit: "Array") -> float:
        return recalibrated_scale(pit, recalibrator)

    tested = judged(known)
    replays = [
        *replayed("earlier", known, from_earlier(known, scale, window)),
        *replayed("other", known, from_others(known, scale)),
    ]
    found = pd.DataFrame([*tested, *beside(known), *replays], columns=Measure._fields)
    found.attrs.update(
        forecasts=len(known.y),
        verdict=list(faults(tested)),
        recalibration=list(remedies(replays)),
        ignored=list(known.ignored),
    )
    return found
