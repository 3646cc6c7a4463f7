"""Seeds that decide a part: as many as asked for do so nine times in ten, of parts whose truth is known."""

from typing import Any

import numpy as np
import pytest
from verdict_rates import REGRETS, TEST, drawn

from plumbline.analysis.verdicts.part_results import PartResult
from plumbline.analysis.verdicts.rule import judgements
from plumbline.analysis.verdicts.seeds_needed import POWER, contrasts, least_effect, seeds_needed
from plumbline.statistics.inference import TAIL
from plumbline.statistics.power import Power
from plumbline.study.claims import ClaimTest

NORMAL = REGRETS["normal regrets"]
WITHOUT = {"published": {"words": ""}, "matters": None}


def pilot(changes: Any = None, ratio: float = 1.0, seeds: int = 400) -> PartResult:
    test = ClaimTest.model_validate({**TEST.model_dump(), **(changes or {})})
    return drawn(test, NORMAL, ratio, seeds, np.random.default_rng(3), "pilot")


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "expected"), [(1.0, "too small"), (0.75, "holds")])
def test_so_many_seeds_decide_nine_times_in_ten(ratio: float, expected: str) -> None:
    """Whether there is no effect, or one that matters."""
    test = TEST.model_copy(update={"published": ClaimTest.model_validate(TEST.model_dump() | WITHOUT).published})
    seeds, rng = int(seeds_needed(pilot(), 1)), np.random.default_rng(0)
    found = [
        judgements([drawn(test, NORMAL, ratio, seeds, rng, f"{i}")], f"{i}")[0].outcome == expected for i in range(200)
    ]
    assert np.mean(found) >= POWER - 0.06


def test_it_takes_more_of_them_for_less_and_for_more_parts() -> None:
    plain = seeds_needed(pilot(), 1)
    assert seeds_needed(pilot({"matters": {"ratio": 0.9}}), 1) == pytest.approx(plain * (0.25 / 0.1) ** 2, rel=0.2)
    assert plain < seeds_needed(pilot(), 5) < 2 * plain


def test_simulation_with_the_very_test_agrees_where_values_are_normal() -> None:
    one = pilot()
    powers = [Power(some.values, some.mean, f"a.{i}", TAIL) for i, some in enumerate(contrasts(one))]
    simulated = [power.seeds(some.power) for power, some in zip(powers, contrasts(one), strict=True)]
    assert max(simulated) == pytest.approx(seeds_needed(one, 1), rel=0.15)


def test_what_matters_goes_before_what_is_published() -> None:
    both = least_effect(pilot())
    assert both is not None
    assert both.ratio == 0.75
    published = least_effect(pilot({"matters": None}))
    assert published is not None
    assert published.ratio == 0.5
    assert least_effect(pilot(WITHOUT)) is None


def test_without_a_size_it_goes_by_the_effect_as_found_or_says_nothing() -> None:
    assert np.isnan(seeds_needed(pilot(WITHOUT, ratio=0.5), 1))
    assert seeds_needed(pilot(WITHOUT, ratio=0.5), 1, as_found=True) == pytest.approx(
        seeds_needed(pilot({"matters": {"ratio": 0.5}}), 1), rel=0.5
    )


def test_a_range_takes_both_of_its_ends() -> None:
    alike = {**WITHOUT, "direction": "within", "range": (-0.25, 0.25)}
    wider = seeds_needed(pilot(alike | {"range": (-0.25, 9.0)}), 1)
    assert seeds_needed(pilot(alike), 1) == pytest.approx(wider, rel=0.05)
    assert seeds_needed(pilot(alike | {"range": (-0.25, 0.1)}), 1) > 4 * wider


def test_medians_take_half_as_many_again() -> None:
    about = {"matters": {"value": -0.25}, "published": {"words": ""}}
    mean, median = (seeds_needed(pilot({**about, "location": where}), 1) for where in ("mean", "median"))
    assert median == pytest.approx(np.pi / 2 * mean, rel=0.05)


@pytest.mark.parametrize(("share", "expected"), [(0.75, 44), (0.9, 12), (0.501, np.inf)])
def test_counts_of_seeds_are_exact(share: float, expected: float) -> None:
    """Against one half, at a level of .025 on the claimed side."""
    changes = {"statistic": "share-higher", "direction": "greater", "threshold": 0.5, "matters": {"value": share}}
    assert seeds_needed(pilot({"published": {"words": ""}, **changes}), 1) == pytest.approx(expected, abs=3)
