"""Single trials, from spec through loop to record, and the runner of many.

A resumed trial equals an uninterrupted one byte for byte: a round depends only on the spec, the evaluations so far, the
method's state, and random streams derived anew for each round.
"""

from plumbline.trials.runner import run_trial, run_trials

__all__ = ["run_trial", "run_trials"]
