"""The rule: from the results of a claim's parts to their outcomes and the verdict.

`docs/results/verdict-rule.md` has the rule in words, and its error rates.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from plumbline.analysis.verdicts.part_results import PartResult, p_of_size, perfect
from plumbline.statistics.inference import TAIL, Inference
from plumbline.statistics.multiple_tests import holm
from plumbline.statistics.over_seeds import LIKENESS
from plumbline.study.claims import ClaimTest, Size
from plumbline.study.verdicts import OUTCOMES, Outcome, Verdict

MIN_SEEDS = 4
"""With fewer seeds a test stays open."""

HALF = 0.5
"""Share of the document's rounds below which a part cannot count against it."""


class Judgement(NamedTuple):
    """What is made of a part.

    Attributes:
        outcome: of the part.
        p: of such data if the part were false or if it were true, the lesser of both, after Holm's correction.
        size_p: of such data, were the effect of the published size; NaN where there is none that these runs can test.
        because: why the part cannot show anything; empty for all others.
    """

    outcome: Outcome
    p: float
    size_p: float = float("nan")
    because: str = ""

    @property
    def smaller(self) -> bool:
        """Whether an effect of the published size is excluded."""
        return self.size_p <= TAIL


def probabilities(test: ClaimTest, found: Inference) -> tuple[float, float]:
    """Return the p-values against the claim being false and against its being true, each at the boundary."""
    if test.range is not None:
        low, high = test.range
        return max(found.p_above(low), found.p_below(high)), min(found.p_below(low), found.p_above(high))
    sides = found.p_above(test.threshold), found.p_below(test.threshold)
    return sides if test.direction == "greater" else sides[::-1]


def says_alike(test: ClaimTest) -> bool:
    """Whether the test is one of likeness: that methods differ by little, or that neither is the better one."""
    return test.range is not None or (test.statistic in LIKENESS and test.direction == "less")


def at_a_ceiling(one: PartResult, name: str) -> bool:
    """Whether the part does not hold, and would not with a method that is perfect in every seed either."""
    if probabilities(one.test, one.found)[0] <= TAIL:
        return False
    best = perfect(one, name)
    return best is not None and probabilities(one.test, best)[0] > TAIL


def on_the_floor(one: PartResult) -> bool:
    """Whether these runs do not show that a method that is no search would fail the test of likeness."""
    return one.test.range is not None and one.floor is not None and probabilities(one.test, one.floor)[1] > TAIL


def is_short(one: PartResult) -> bool:
    """Whether the runs have less than half of the document's rounds, or are of a task that it does not have."""
    return one.rounds < HALF * one.full or one.full == 0


def judgements(results: Sequence[PartResult], name: str) -> list[Judgement]:
    """Return what is made of each part of a family of tests.

    Holding, failing, the published size and the effect that matters are four families, each corrected by Holm's method
    for all its parts but those that cannot end that way: at a ceiling, on the floor, or without a size.

    Args:
        results: of the parts.
        name: of claim and role; seeds resamples.
    """
    names = [f"{name}.{number}" for number in range(len(results))]
    ceiling = [at_a_ceiling(one, named) for one, named in zip(results, names, strict=True)]
    floor, short = [on_the_floor(one) for one in results], [is_short(one) for one in results]
    pairs = [probabilities(one.test, one.found) for one in results]
    published = [published_size(one) for one in results]
    matters = [None if short[i] else one.test.matters for i, one in enumerate(results)]

    def family(p: Callable[[int], float], counts: Callable[[int], object]) -> dict[int, float]:
        chosen = [i for i in range(len(results)) if not ceiling[i] and counts(i)]
        return dict(zip(chosen, holm([p(i) for i in chosen]), strict=True))

    def of_sizes(sizes: Sequence[Size | None]) -> dict[int, float]:
        return family(lambda i: p_of_size(results[i], sizes[i], names[i]), lambda i: sizes[i] is not None)

    holding = family(lambda i: pairs[i][0], lambda i: not floor[i])
    failing = family(lambda i: pairs[i][1], lambda i: True)
    smaller, negligible = of_sizes(published), of_sizes(matters)

    def judged(i: int) -> Judgement:
        one = results[i]
        holds, fails = holding.get(i, 1.0), failing.get(i, 1.0)
        found = Judgement("open", min(holds, fails))
        if one.seeds < MIN_SEEDS:
            return found
        found = found._replace(size_p=smaller.get(i, found.size_p))
        if ceiling[i]:
            return found._replace(outcome="cannot show", because="a perfect method would not hold either")
        if min(holds, fails) <= TAIL:
            outcome: Outcome = "holds" if holds < fails else "fails"
            if not short[i] or (outcome == "holds" and not says_alike(one.test)):
                return found._replace(outcome=outcome)
            return found._replace(outcome="cannot show", because=f"it {outcome}, but {_short_in_words(one)}")
        if floor[i]:
            return found._replace(
                outcome="cannot show", because=f"that {one.test.floor} would fail the test is not shown"
            )
        return found._replace(outcome="too small") if negligible.get(i, 1.0) <= TAIL else found

    return [judged(i) for i in range(len(results))]


def published_size(one: PartResult) -> Size | None:
    """Return the least effect that agrees with the document's size; None where these runs cannot be held against it.

    They can at the document's end, and at the number of evaluations after which it has the size.
    """
    at = one.test.published.evaluations
    comparable = not is_short(one) if at is None else one.evaluations == at
    return one.test.published_size if comparable else None


def _short_in_words(one: PartResult) -> str:
    if one.full == 0:
        return "on a task that the document does not have"
    return f"after {one.rounds:,} of the {one.full:,} rounds of the preset paper"


def verdict(parts: Sequence[Judgement], complete: bool = True) -> Verdict:
    """Return the verdict from what is made of the parts of the primary test.

    Args:
        parts: judged.
        complete: whether all parts were run.
    """
    showing = [one for one in parts if one.outcome != "cannot show"]
    found = {one.outcome for one in showing}
    if "fails" in found:
        return "mixed" if "holds" in found else "not reproduced"
    # A size is compared only where it can be, also of a part that fails too early to show a sign.
    if any(one.smaller for one in parts):
        return "smaller than published"
    if "holds" in found:
        return "reproduced" if complete and len(showing) == len(parts) and found == {"holds"} else "partly"
    return "too small to matter" if found == {"too small"} else "inconclusive at this scale"


def counts(outcomes: Iterable[str]) -> str:
    """Return the numbers of tests by outcome, in words: `1 holds, 2 fail`."""
    found = Counter(outcomes)
    several = {"holds": "hold", "fails": "fail"}
    words = [(found[one], several.get(one, one) if found[one] > 1 else one) for one in OUTCOMES if found[one]]
    return ", ".join(f"{number} {word}" for number, word in words)
