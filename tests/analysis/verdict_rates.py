"""How often the rule errs: claims whose truth is known, judged from seeds that are drawn.

docs/results/verdict-rule.md has the tables; `python tests/analysis/verdict_rates.py` prints them, in half an
hour of one core.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.analysis.verdicts.part_results import PartResult, inferred
from plumbline.analysis.verdicts.rule import Judgement, judgements, verdict
from plumbline.statistics.telescope import p_of_telescope
from plumbline.study.claims import ClaimTest

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

PUBLISHED, MATTERS = 0.5, 0.75
"""Ratios of regrets: the claim halves it, and a quarter less matters."""

REGRETS: Mapping[str, Draw] = MappingProxyType(
    {
        "normal regrets": lambda rng, n: 1.0 + 0.4 * rng.standard_normal(n),
        "lognormal regrets": lambda rng, n: np.exp(rng.standard_normal(n) - 0.5),
        "one run in six stuck": lambda rng, n: 0.4 + 0.1 * rng.standard_normal(n) + 3.6 * (rng.random(n) < 1 / 6),
    }
)
"""Regrets of a method, seed by seed, with a mean of one."""

TEST = ClaimTest.model_validate(
    {
        "statistic": "difference",
        "metric": "regret",
        "task": "made",
        "method": "new",
        "baseline": "plain",
        "direction": "less",
        "published": {"words": "half", "ratio": PUBLISHED},
        "matters": {"ratio": MATTERS},
    }
)

UNPUBLISHED = TEST.model_copy(update={"published": ClaimTest.model_fields["published"].default})
"""The same where the document gives no size."""

ALIKE = ClaimTest.model_validate(
    {
        **TEST.model_dump(exclude={"published", "matters", "threshold"}),
        "statistic": "ratio",
        "direction": "within",
        "range": (0.8, 1.25),
        "floor": "random",
    }
)


def drawn(test: ClaimTest, regrets: Draw, ratio: float, seeds: int, rng: np.random.Generator, name: str) -> PartResult:
    """Return the result of a part whose method has `ratio` times the baseline's mean regret."""
    table = pd.DataFrame({"method": ratio * regrets(rng, seeds), "baseline": regrets(rng, seeds)})
    return PartResult(test, (table,), inferred(test, [table], name))


def study(
    regrets: Draw, ratios: Sequence[float], seeds: int, rng: np.random.Generator, name: str, test: ClaimTest = TEST
) -> list[Judgement]:
    """Return what is made of one claim, with a part a ratio."""
    parts = [drawn(test, regrets, ratio, seeds, rng, f"{name}.{i}") for i, ratio in enumerate(ratios)]
    return judgements(parts, name)


def verdicts(
    regrets: Draw, ratios: Sequence[float], seeds: int, repetitions: int, test: ClaimTest = TEST
) -> Counter[str]:
    """Return the verdicts on so many studies of a claim with a part a ratio."""
    rng = np.random.default_rng([seeds, repetitions, len(ratios)])
    return Counter(verdict(study(regrets, ratios, seeds, rng, f"study {i}", test)) for i in range(repetitions))


def printed_estimates(
    regrets: Draw, ratio: float, paper: int, seeds: int, repetitions: int, selective: bool
) -> tuple[float, float]:
    """Return how often our seeds exclude the size that a paper prints, which has the same methods and fewer seeds.

    Args:
        regrets: of both methods, but for `ratio`.
        ratio: the true one.
        paper: the paper's seeds; it prints its own estimate.
        seeds: ours.
        repetitions: papers that print one.
        selective: whether a paper prints only what stands out of its 70% intervals, or all that is ahead.

    Returns:
        The share of papers that print a size, and of these the share that is called smaller than published.
    """
    rng = np.random.default_rng([seeds, paper, int(100 * ratio)])
    smaller = papers = tried = 0
    while papers < repetitions:
        tried += 1
        theirs, plain = ratio * regrets(rng, paper), regrets(rng, paper)
        gap = plain.mean() - theirs.mean()
        error = np.sqrt((theirs.var(ddof=1) + plain.var(ddof=1)) / paper)
        estimate = theirs.mean() / plain.mean()
        if not 0 < estimate < 1 or gap < selective * 1.04 * error:
            continue
        papers += 1
        test = TEST.model_copy(update={"published": TEST.published.model_copy(update={"ratio": estimate})})
        smaller += verdict(study(regrets, [ratio], seeds, rng, f"{tried}", test)) == "smaller than published"
    return papers / tried, smaller / repetitions


def telescopes(effect: float, paper: int, seeds: int, repetitions: int) -> tuple[float, float, float]:
    """Return what the rule of small telescopes would say of normal differences with a true effect.

    Returns:
        The share of papers whose mean is ahead, that of studies whose sign test sees the effect, and that of studies
        that exclude every effect which the paper's seeds would see one time in three.
    """
    rng = np.random.default_rng([seeds, paper, int(100 * effect)])
    ahead = (effect + rng.standard_normal((repetitions, paper))).mean(axis=1) > 0
    samples = effect + rng.standard_normal((repetitions, seeds))
    found = samples.mean(axis=1) / samples.std(axis=1, ddof=1)
    excluded = [p_of_telescope(one, seeds, paper) <= 0.025 for one in found]
    seen = found * np.sqrt(seeds) > 2.01
    return float(ahead.mean()), float(seen.mean()), float(np.mean(excluded))


def likeness(ratio: float, random: float, seeds: int, repetitions: int) -> Counter[str]:
    """Return the outcomes of a part that says that two methods are alike, where random search has a ratio too."""
    rng, regrets = np.random.default_rng([seeds, int(100 * random)]), REGRETS["normal regrets"]
    found: Counter[str] = Counter()
    for i in range(repetitions):
        one = drawn(ALIKE, regrets, ratio, seeds, rng, f"{i}")
        floor = [one.numbers[0].assign(method=random * regrets(rng, seeds))]
        found[judgements([one._replace(floor=inferred(ALIKE, floor, f"{i}"))], f"{i}")[0].outcome] += 1
    return found


SHOWN = ("reproduced", "smaller than published", "inconclusive at this scale", "not reproduced")


def table_of_verdicts(repetitions: int) -> str:
    """Return the verdicts by population, seeds and truth as Markdown, in percent."""
    lines = [f"| regrets | seeds | true ratio | {' | '.join(SHOWN)} |", "|---|--:|--:|" + "--:|" * len(SHOWN)]
    for name, regrets in REGRETS.items():
        for seeds in (7, 25, 50):
            for ratio in (0.5, 0.75, 1.0, 1.25):
                found = verdicts(regrets, [ratio], seeds, repetitions)
                cells = " | ".join(f"{100 * found[one] / repetitions:.1f}" for one in SHOWN)
                lines.append(f"| {name} | {seeds} | {ratio:g} | {cells} |")
    return "\n".join(lines)


def table_of_margins(repetitions: int) -> str:
    """Return the same for a claim that has no published size, by what matters alone."""
    words = ("reproduced", "too small to matter", *SHOWN[2:])
    lines = [f"| regrets | seeds | true ratio | {' | '.join(words)} |", "|---|--:|--:|" + "--:|" * len(words)]
    for name, regrets in REGRETS.items():
        for seeds, ratio in ((50, 0.75), (50, 1.0), (200, 0.75), (200, 0.9), (200, 1.0)):
            found = verdicts(regrets, [ratio], seeds, repetitions, UNPUBLISHED)
            cells = " | ".join(f"{100 * found[one] / repetitions:.1f}" for one in words)
            lines.append(f"| {name} | {seeds} | {ratio:g} | {cells} |")
    return "\n".join(lines)


def table_of_families(repetitions: int) -> str:
    """Return the same for claims of five parts with the same truth, at fifty seeds."""
    words = ("reproduced", "partly", "mixed", *SHOWN[1:])
    lines = [f"| true ratio of five parts | {' | '.join(words)} |", "|--:|" + "--:|" * len(words)]
    for ratio in (0.5, 0.75, 1.0):
        found = verdicts(REGRETS["normal regrets"], [ratio] * 5, 50, repetitions)
        lines.append(f"| {ratio:g} | {' | '.join(f'{100 * found[one] / repetitions:.1f}' for one in words)} |")
    return "\n".join(lines)


def table_of_papers(repetitions: int) -> str:
    """Return how often the size that a paper prints is excluded where its methods are ours."""
    lines = [
        "| true ratio | the paper prints | papers that print a size | smaller than published |",
        "|--:|---|--:|--:|",
    ]
    for ratio in (0.5, 0.75, 1.0):
        for selective, words in ((False, "all that is ahead"), (True, "what stands out of 70% intervals")):
            print_it, smaller = printed_estimates(REGRETS["normal regrets"], ratio, 7, 50, repetitions, selective)
            lines.append(f"| {ratio:g} | {words} | {100 * print_it:.0f} | {100 * smaller:.0f} |")
    return "\n".join(lines)


def table_of_telescopes(repetitions: int) -> str:
    """Return what small telescopes would say, as Markdown, in percent."""
    lines = ["| true effect, sd | five seeds look as claimed | fifty seeds see it | telescope excludes it |"]
    lines.append("|--:|--:|--:|--:|")
    for effect in (0.0, 0.2, 0.3, 0.5, 0.7, 0.89):
        cells = " | ".join(f"{100 * one:.1f}" for one in telescopes(effect, 5, 50, repetitions))
        lines.append(f"| {effect:g} | {cells} |")
    return "\n".join(lines)


def table_of_floors(repetitions: int) -> str:
    """Return the outcomes of likeness by the ratio of random search, as Markdown, in percent."""
    words = ("holds", "cannot show", "fails")
    lines = [f"| true ratio | random search | {' | '.join(words)} |", "|--:|--:|" + "--:|" * len(words)]
    for ratio, random in ((1.0, 1.0), (1.0, 1.25), (1.0, 1.6), (1.6, 1.0), (1.6, 1.6)):
        found = likeness(ratio, random, 25, repetitions)
        cells = " | ".join(f"{100 * found[one] / repetitions:.1f}" for one in words)
        lines.append(f"| {ratio:g} | {random:g} | {cells} |")
    return "\n".join(lines)


REPETITIONS = {
    table_of_verdicts: 400,
    table_of_margins: 250,
    table_of_families: 200,
    table_of_papers: 200,
    table_of_telescopes: 2000,
    table_of_floors: 200,
}
"""Of the tables of the page."""


if __name__ == "__main__":
    for made, repetitions in REPETITIONS.items():
        print(made(repetitions), end="\n\n", flush=True)
