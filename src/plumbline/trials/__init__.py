"""One seed: spec -> loop -> record, and the runner of many.

Interrupted and resumed equals uninterrupted, byte for byte: nothing that a round computes depends on anything but the
spec, the evaluations so far, the method's state, and random streams that are derived anew for each round.
"""

from plumbline.trials.runner import run_trial, run_trials

__all__ = ["run_trial", "run_trials"]
