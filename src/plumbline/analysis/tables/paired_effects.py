"""Paired effects of methods against a baseline, in numbers."""

import pandas as pd

from plumbline.analysis.comparisons.effects import HEADINGS, Effect, EffectOptions, effects
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import tables


@tables.register("paired-effects", EffectOptions)
def paired_effects(evidence: Evidence, options: EffectOptions) -> pd.DataFrame:
    """Mean difference to a baseline, seed by seed, in units of the metric, and in deviations over seeds."""
    found = (one for metric in options.metrics for one in effects(evidence, options.baselines, metric))
    return pd.DataFrame(found, columns=Effect._fields).rename(columns=HEADINGS)
