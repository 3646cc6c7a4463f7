"""A round of expected improvement with a thousand restarts beside one with five: the ratio is the result."""

import pytest
import torch
from ratio import paired_ratio

from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import values
from plumbline.spaces.box import Box, uniform

N = 60
PROBLEMS = {
    "rosenbrock": {"dim": 6, "interval": (-2.048, 2.048)},
    "ackley": {"dim": 6},
    "styblinski-tang": {"dim": 6},
}


def play(domain: Domain, history: History, restarts: int, patience: float | None) -> None:
    search = {"restarts": restarts, "raw_samples": restarts, "patience": patience}
    method = build_method("ei", {"model": {"priors": "none"}, "search": search}, domain)
    # The starts of a climb are drawn from the global stream.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        method.ask(history, 1, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("patience", [None, 100.0], ids=["to-the-end", "given-up"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_thousand_restarts_beside_five(benchmark, tmp_path, name, patience):
    """Required: at most ten times as long, of which giving up climbs without prospects makes sure."""
    problem = build_problem(name, PROBLEMS[name], Context(data=tmp_path, generator=torch.Generator().manual_seed(0)))
    X = uniform(problem.bounds, N, torch.Generator().manual_seed(0))
    domain, history = Domain(Box(problem.bounds)), History(X, values(problem, X), N)
    ratio = paired_ratio(
        lambda: play(domain, history, 1000, patience), lambda: play(domain, history, 5, patience), repeats=5
    )
    benchmark.group = f"1,000 restarts on {name}"
    benchmark.extra_info["ratio to 5 restarts"] = ratio
    print(f"\n{name}, patience {patience}: 1,000 restarts take {ratio:.1f} times as long as 5")
    benchmark.pedantic(play, (domain, history, 1000, patience), rounds=1)
    assert patience is None or ratio <= 10
