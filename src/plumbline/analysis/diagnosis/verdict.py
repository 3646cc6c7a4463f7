"""What is wrong with forecasts, and what recalibration would have done, in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from plumbline.analysis.comparisons.numbers import NO_INTERVAL, ends_in_words
from plumbline.analysis.diagnosis.measures import BIAS, GROWTH, SHAPE, SHIFT, SPREAD, Measure
from plumbline.analysis.diagnosis.replay import GAIN
from plumbline.statistics.inference import CONFIDENCE

LEVEL = 1 - CONFIDENCE
"""Of all tests together: of twenty surrogates whose forecasts are right one is found at fault."""


def _size(one: Measure, sign: int = 1) -> str:
    low, high = sorted((sign * one.low, sign * one.high))
    return _with_ends(sign * one.value, low, high, ".2g")


def _with_ends(value: float, low: float, high: float, form: str) -> str:
    ends = ends_in_words(low, high, lambda end: format(end, form))
    return f"{value:{form}} ({'' if ends == NO_INTERVAL else '95% interval '}{ends})"


def _bias(one: Measure) -> str:
    way, sign = ("low", 1) if one.value > 0 else ("high", -1)
    return f"biased: means are too {way}, by {_size(one, sign)} standard deviations"


def _spread(one: Measure) -> str:
    way = "over" if one.value > 1 else "under"
    return f"{way}-confident: errors are {_size(one)} times as large as sd says"


def _growth(one: Measure) -> str:
    way = "grow" if one.value > 0 else "shrink"
    return f"drifting: errors in units of sd {way} over the rounds, rank correlation {_size(one)}"


def _shift(one: Measure) -> str:
    return f"drifting: the bias changes over the rounds, rank correlation {_size(one)}"


WORDS: Mapping[str, Callable[[Measure], str]] = {BIAS: _bias, SPREAD: _spread, GROWTH: _growth, SHIFT: _shift}


def faults(judged: Sequence[Measure]) -> Iterator[str]:
    """Yield what is wrong with forecasts, by the corrected p-values; nothing where no test rejects."""
    rejected = [one for one in judged if one.p_corrected < LEVEL]
    for one in rejected:
        if one.name in WORDS:
            yield WORDS[one.name](one)
        elif one.part == "inputs":
            yield f"uneven: {one.name} is {_size(one)}"
        elif not {BIAS, SPREAD} & {other.name for other in rejected}:
            assert one.name == SHAPE
            yield f"of another shape: PIT values are not uniform, distance {_size(one)}"


TEACHERS = {"earlier": "earlier forecasts", "other": "all other forecasts"}


def remedies(replayed: Sequence[Measure]) -> Iterator[str]:
    """Yield what recalibration would have done, of each of its kinds."""
    for one in replayed:
        if one.name == GAIN:
            if one.p >= LEVEL:
                done = "made no significant difference"
            else:
                done = "been better" if one.value < 0 else "been worse"
            yield f"recalibrated on {TEACHERS[one.part]} they would have {done}: negative log density {_signed(one)}"


def _signed(one: Measure) -> str:
    return _with_ends(one.value, one.low, one.high, "+.2g")
