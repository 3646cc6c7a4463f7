"""A round of several outcomes by hypervolume beside BoTorch's own loop on the same data: the ratio is the result.

BoTorch's loop has its compiled kernel where there is a compiler.
"""

import pytest
import torch
from botorch.acquisition.multi_objective.logei import (
    qLogExpectedHypervolumeImprovement,
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions.multi_objective import BraninCurrin, Penicillin
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.mlls import SumMarginalLogLikelihood
from ratio import paired_ratio

from plumbline.core.history import History
from plumbline.core.outcomes import Outcome
from plumbline.designs.sobol import sobol
from plumbline.methods.base import Domain, build_method
from plumbline.spaces.box import Box

RESTARTS, RAW_SAMPLES, MAXITER, SAMPLES, DATA = 10, 256, 200, 128, 60
PROBLEMS = {"branin-currin": BraninCurrin, "penicillin": Penicillin}


def sampled(name: str) -> tuple[Domain, History]:
    """Return a problem's domain and data with a tenth of their standard deviation as noise."""
    problem = PROBLEMS[name](negate=True).double()
    X = sobol(problem.bounds, DATA, torch.Generator().manual_seed(0))
    Y = problem(X)
    noise = torch.randn(Y.shape, generator=torch.Generator().manual_seed(1), dtype=Y.dtype)
    outcomes = tuple(Outcome(f"objective-{i}", reference=float(r)) for i, r in enumerate(problem.ref_point))
    return Domain(Box(problem.bounds), outcomes), History(X, Y + 0.1 * Y.std(0) * noise, DATA)


def botorch_round(domain, history, name, q):
    """BoTorch's tutorial loop with the same number of starts and of L-BFGS iterations."""
    bounds, (X, Y) = domain.bounds, (history.X, history.Y)
    models = [
        SingleTaskGP(X, y, input_transform=Normalize(d=X.shape[-1], bounds=bounds), outcome_transform=Standardize(m=1))
        for y in Y.split(1, -1)
    ]
    model = ModelListGP(*models)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    ref_point, sampler = (
        torch.tensor([one.reference for one in domain.outcomes]).to(Y),
        SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=0),
    )
    if name == "ehvi":
        free = FastNondominatedPartitioning(ref_point=ref_point, Y=Y)
        utility = qLogExpectedHypervolumeImprovement(model, ref_point, free, sampler)
    else:
        utility = qLogNoisyExpectedHypervolumeImprovement(model, ref_point, X, sampler, prune_baseline=True)
    options = {"seed": 0, "maxiter": MAXITER}
    return optimize_acqf(utility, bounds, q, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES, options=options)


def plumbline_round(domain, history, name, q):
    """BoTorch's default model and search."""
    options = {
        "model": {"kernel": "rbf", "priors": "botorch"},
        "search": {"restarts": RESTARTS, "raw_samples": RAW_SAMPLES, "maxiter": MAXITER},
        "mc_samples": SAMPLES,
    }
    return build_method(name, options, domain).ask(history, q, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("name", ["ehvi", "nehvi"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_round_beside_botorch(benchmark, problem, name, q):
    """Required: at most a third, of 128 draws after 60 observations."""
    domain, history = sampled(problem)

    def alike(work):
        # The starts of a climb are drawn from the global stream.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return work(domain, history, name, q)

    ratio = paired_ratio(lambda: alike(plumbline_round), lambda: alike(botorch_round), repeats=3)
    benchmark.group = f"{name} of {q} on {problem}"
    benchmark.extra_info["ratio to BoTorch's own loop"] = ratio
    print(f"\n{name} of {q} on {problem}: {ratio:.3f} of BoTorch's own loop")
    benchmark.pedantic(alike, (plumbline_round,), rounds=1)
    assert ratio <= 1 / 3
