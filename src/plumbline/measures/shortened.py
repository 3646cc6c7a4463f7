"""Names of metrics of shortened runs, as a table of runs has them: `regret@0.95` is after 95% of the rounds."""

_AFTER = "@"


def shortened(metric: str, share: float) -> str:
    """Return what a metric is called after a share of the rounds."""
    return f"{metric}{_AFTER}{share:g}"


def whole(name: str) -> tuple[str, float]:
    """Return the metric and the share that `shortened` named; a share of 1 of a metric by its own name."""
    metric, _, share = name.partition(_AFTER)
    return metric, float(share or 1.0)
