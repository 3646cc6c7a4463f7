"""What the interventions of the atlas do, in two sentences."""

from collections.abc import Sequence

import pandas as pd

from plumbline.analysis.atlas.interventions import INTERVENTIONS, Finding


def answer_of_atlas(findings: pd.DataFrame) -> tuple[str, str]:
    """Return what the interventions do to the forecasts, by their intervals, and to the search, by corrected tests.

    Args:
        findings: as `interventions.findings` returns them.
    """
    overall = findings[findings["where"] == ""]
    of_all = f" of {len(INTERVENTIONS)} interventions"

    def shown(of: str, direction: int) -> list[str]:
        rows = overall[overall["of"] == of].set_index("analysis", drop=False)
        names = [one.words for one in INTERVENTIONS]
        return [name for name in names if Finding(**rows.loc[name]).direction == direction]

    forecasts = (
        f"Calibration is improved by {_counted(shown('calibration_error', -1), of_all)}, "
        f"and worsened by {_counted(shown('calibration_error', 1))}, by uncorrected 95% intervals."
    )
    search = (
        f"Normalised regret is lowered by {_counted(shown('score', -1), of_all)}, "
        f"and raised by {_counted(shown('score', 1))}, after correction for the nine primary analyses."
    )
    return forecasts, search


def _counted(interventions: Sequence[str], of_all: str = "") -> str:
    """Return the number of interventions and their names; `of_all` stands after the number."""
    return f"{len(interventions)}{of_all} ({'; '.join(interventions)})" if interventions else f"none{of_all}"
