"""Effects beside a baseline, by hand."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest

from plumbline.analysis.comparisons.effects import ALL, EffectOptions, effects
from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse

PLAIN = {"bowl": [1.0, 2.0, 3.0, 6.0], "valley": [10.0, 30.0, 20.0, 40.0]}
SHIFT = {"bowl": [-1.0, -1.0, 0.0, -2.0], "valley": [5.0, 5.0, 15.0, -5.0]}
BESIDE = {"plain": ("calibrated",)}


@pytest.fixture
def level(folder: Path) -> Evidence:
    """Runs whose regret is the same throughout."""
    trials = [
        made.trial(task=task, method=method, seed=seed, regret=lambda _, __, value=value + shift: value)
        for task in made.TASKS
        for method, apart in (("plain", [0.0] * 4), ("calibrated", SHIFT[task]))
        for seed, (value, shift) in enumerate(zip(PLAIN[task], apart, strict=True))
    ]
    return made.read(folder, *trials)


def test_a_difference_in_deviations_of_the_baseline(level: Evidence) -> None:
    bowl, valley, both = effects(level, BESIDE, "regret")
    assert [one.task for one in (bowl, valley, both)] == ["bowl", "valley", ALL]
    factor = bowl.mean / np.mean(SHIFT["bowl"])  # what made records multiply regrets by
    assert valley.mean == pytest.approx(factor * np.mean(SHIFT["valley"]))
    for one in (bowl, valley):
        spread = np.std(PLAIN[one.task], ddof=1)
        assert one.value == pytest.approx(np.mean(SHIFT[one.task]) / spread)
        assert one.sd == pytest.approx(factor * spread)
        assert one.low < one.value < one.high
        assert one.seeds == 4
    assert both.value == pytest.approx((bowl.value + valley.value) / 2)
    assert np.isnan(both.mean)
    assert (bowl.lower, valley.lower) == (3.5 / 4, 1 / 4)


def test_a_solved_task_does_not_outweigh_the_others(folder: Path) -> None:
    """In the bowl the plain method ends within 4e-6 of the optimum, the other within 4e-5; in the valley none."""

    def falls(end: float) -> made.Curve:
        return lambda seed, evaluation: (1.0 + seed) * (end if evaluation > 2 else 1.0)

    trials = [
        made.trial(task=task, method=method, seed=seed, regret=falls(end))
        for task, ends in (("bowl", (1e-6, 1e-5)), ("valley", (0.4, 0.5)))
        for method, end in zip(("plain", "calibrated"), ends, strict=True)
        for seed in range(4)
    ]
    bowl, valley, both = effects(made.read(folder, *trials), BESIDE, "regret")
    start = np.std([1.0, 2.0, 3.0, 4.0], ddof=1)
    assert bowl.sd == valley.sd == pytest.approx(start)
    assert bowl.value == pytest.approx(2.5 * 9e-6 / start)
    assert bowl.lower == 0.0, "who wins is said beside it"
    assert valley.value == pytest.approx(2.5 * 0.1 / start)
    assert both.value == pytest.approx(valley.value / 2, rel=1e-3)


def test_what_the_start_has_not_is_in_deviations_of_the_end(folder: Path) -> None:
    trials = [made.trial(task="bowl", method=method, seed=seed) for method in made.METHODS for seed in range(4)]
    evidence = made.read(folder, *trials)
    (score,) = effects(evidence, BESIDE, "calibration_score")
    assert score.sd == pytest.approx(final_values(evidence, "bowl", "plain", "calibration_score").std())
    (summed,) = effects(evidence, BESIDE, "cumulative_regret")
    assert summed.sd == pytest.approx(final_values(evidence, "bowl", "plain", "cumulative_regret").std())


def test_a_baseline_that_never_varies_has_no_deviations(folder: Path) -> None:
    trials = [
        made.trial(
            task=task, method=method, seed=seed, regret=lambda s, _, task=task, at=at: at + s * (task == "valley")
        )
        for task in made.TASKS
        for method, at in (("plain", 1.0), ("calibrated", 2.0))
        for seed in range(4)
    ]
    bowl, valley, both = effects(made.read(folder, *trials), BESIDE, "regret")
    assert np.isnan([bowl.value, bowl.low, bowl.high]).all()
    assert bowl.mean > 0
    assert both.value == pytest.approx(valley.value)


def test_a_pair_that_a_preset_leaves_out_is_left_out(folder: Path) -> None:
    evidence = made.read(folder, *(made.trial(task="bowl", seed=seed) for seed in range(3)))
    assert not list(effects(evidence, BESIDE, "regret"))
    with pytest.raises(PlumblineError, match="no trials of a method and its baseline on one task"):
        figures["paired-effects"].build(
            evidence, parse(EffectOptions, {"metrics": {"regret": "regret"}, "baselines": BESIDE}, "figure")
        )


def test_one_task_has_no_line_of_all(folder: Path) -> None:
    trials = [made.trial(task="bowl", method=method, seed=seed) for method in made.METHODS for seed in range(3)]
    assert [one.task for one in effects(made.read(folder, *trials), BESIDE, "regret")] == ["bowl"]


def test_arms_have_a_word_for_each_method() -> None:
    written = {"metrics": {"regret": "regret"}, "baselines": {"plain": ["calibrated"]}, "arms": ["one", "two"]}
    with pytest.raises(PlumblineError, match="`arms` has a word for each method"):
        parse(EffectOptions, written, "figure")
