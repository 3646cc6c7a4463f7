"""A study to run commands on, and what a mistake on the command line looks like."""

METHODS = """
dice: {name: random, legend: dice}
bound: {name: ucb, options: {search: {restarts: 1, raw_samples: 8, maxiter: 5}}}
"""
TASKS = """
branin: {problem: branin, initial: {design: uniform, size: 3}, rounds: 2}
forrester: {problem: forrester, initial: {design: uniform, size: 3}, rounds: 1}
"""
STUDY = """
study: tiny
title: A tiny study
citation: Nobody.
experiments:
  TINY-T1:
    title: A table
    grid: [{tasks: [branin], methods: [dice]}]
    seeds: 2
    table: {kind: final-values, options: {metrics: [regret]}}
    quick: {}
  TINY-F1:
    title: A figure
    grid: [{tasks: [forrester], methods: [bound]}]
    diagnostics: {snapshots: {rounds: [1], points: 9}}
    figure: {kind: model-steps, options: {task: forrester, methods: [bound]}}
    quick: {}
  TINY-F2:
    title: Not in the quick preset
    grid: [{tasks: [forrester], methods: [bound]}]
    figure: {kind: model-steps, options: {task: forrester, methods: [bound]}}
  TINY-I1:
    title: An illustration
    illustration: {kind: conformal-density, options: {points: 41}}
    figure: {kind: conformal-density}
    quick: {}
claims:
  K1:
    source: nowhere
    statement: Dice win.
    experiments: [TINY-T1]
    primary:
      statistic: share-above
      metric: regret
      task: branin
      method: dice
      direction: greater
      options: {level: 1.0}
"""


def check_one_line(result: tuple[int, str, str], *parts: str) -> None:
    code, _, errors = result
    assert code == 2
    assert errors.startswith("plumbline: error: ")
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    for part in parts:
        assert part in errors
