"""The domain of each hyperparameter: CAL, tables 1 and 2, generated from the configuration in use."""

import pandas as pd

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import OutputOptions, tables
from plumbline.core.errors import unknown
from plumbline.study.experiments import Hyperparameter


class SpaceOptions(OutputOptions):
    """Options of the table.

    Attributes:
        space: which of the study's `spaces`.
    """

    space: str


def domain(parameter: Hyperparameter) -> str:
    """Return the type of domain in the words of the paper."""
    kind = "Discrete" if parameter.integer else "Continuous"
    details = ["log-scale"] if parameter.scale == "log" else []
    if parameter.step is not None:
        details.append(f"step size {parameter.step:g}")
    return f"{kind} ({', '.join(details)})" if details else kind


@tables.register("search-space", SpaceOptions)
def search_space(evidence: Evidence, options: SpaceOptions) -> pd.DataFrame:
    """Name, bounds and type of domain of each hyperparameter of a search space.

    Raises:
        PlumblineError: the study has no such search space.
    """
    if options.space not in evidence.spaces:
        raise unknown("search space", options.space, evidence.spaces)
    return pd.DataFrame(
        [
            {
                "hyperparameter": parameter.name,
                "low": f"{parameter.low:g}",
                "high": f"{parameter.high:g}",
                "domain": domain(parameter),
            }
            for parameter in evidence.spaces[options.space]
        ]
    )
