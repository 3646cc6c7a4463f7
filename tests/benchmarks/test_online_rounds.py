"""What online conformal prediction adds to a round of expected improvement."""

import pytest
import torch
from ratio import paired_ratio

from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.problems.synthetic import Ackley
from plumbline.spaces.box import Box, uniform

MODEL = {"priors": "none", "ard": False}
LOCAL = {"kappa": 4.0, "lengthscale": 5.0}


@pytest.fixture
def data():
    """Return a domain and 50 observations of a 2-d function, five of them the initial design."""
    generator = torch.Generator().manual_seed(0)
    problem = Ackley(dim=2, negate=True, bounds=[(-10.0, 10.0)] * 2)
    X = uniform(problem.bounds.double(), 50, generator)
    noise = torch.randn(50, 1, generator=generator, dtype=X.dtype)
    return Domain(Box(problem.bounds.double())), History(X, problem(X, noise=False).unsqueeze(-1) + noise, 5)


@pytest.mark.parametrize(
    ("name", "options"),
    [("locbo", {"online": LOCAL}), ("locbo", {"online": {"kappa": 4.0}}), ("ocbo", {"online": LOCAL}), ("ocbo", {})],
    ids=["locbo", "locbo-flat", "ocbo-l", "ocbo"],
)
def test_a_round_beside_expected_improvement(benchmark, data, name, options):
    """Required of LOCBO: at most 1.5, with 45 rounds of thresholds behind it."""
    domain, history = data
    method = build_method(name, {"model": MODEL, **options}, domain)
    generator = torch.Generator().manual_seed(1)
    for x in history.X[5:]:
        events = torch.rand(len(method.threshold.targets), generator=generator) < method.threshold.targets
        method.threshold = method.threshold.update(x, events.to(x.dtype))
    plain = build_method("ei", {"model": MODEL}, domain)

    def ask(which):
        return which.ask(history, 1, torch.Generator().manual_seed(0))

    ratio = paired_ratio(lambda: ask(method), lambda: ask(plain))
    benchmark.extra_info["ratio to ei"] = ratio
    print(f"\n{benchmark.name}: {ratio:.2f} of a round of ei")
    benchmark.pedantic(ask, (method,), rounds=3)
