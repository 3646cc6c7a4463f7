"""A round of a guarded method beside one of the method alone: the ratio is the result."""

from collections.abc import Callable

import pytest
import torch
from ratio import paired_ratio
from test_rounds import sampled

from plumbline.methods.base import build_method

SEARCH = {"restarts": 4, "raw_samples": 64}
ROUNDS = range(10)


def rounds_of(name: str, options: dict) -> Callable[[], None]:
    domain, history = sampled(60, 2)
    method = build_method(name, options, domain)

    def play() -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for seed in ROUNDS:
                method.ask(history, 1, torch.Generator().manual_seed(seed))

    return play


@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("base", ["jes", "ei"])
def test_guarded_rounds_beside_unguarded_ones(benchmark, base, gamma):
    """Required: at most 1.05; gamma is 0 where the guard never steps in, 1 where it always does."""
    alone = rounds_of(base, {"search": SEARCH})
    guarded = rounds_of("exploit", {"base": {"name": base, "options": {"search": SEARCH}}, "gamma": gamma})
    ratio = paired_ratio(guarded, alone, repeats=5)
    benchmark.group = f"guarded {base}, n = 60, d = 2"
    benchmark.extra_info["ratio to the base's rounds"] = ratio
    print(f"\n{base}, gamma = {gamma}: {ratio:.3f} of the base's rounds")
    benchmark.pedantic(guarded, rounds=1)
    assert gamma > 0 or ratio < 1.05
