"""A round of each method beside BoTorch's own loop on the same data: the ratio is the result."""

import pytest
import torch
from botorch.acquisition import ExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch import ExactMarginalLogLikelihood
from ratio import paired_ratio

from plumbline.methods.base import build_method

RESTARTS, RAW_SAMPLES, MAXITER = 10, 256, 200


def botorch_round(domain, history, acquisition):
    """BoTorch's tutorial loop with the same number of starts and of L-BFGS iterations."""
    d = history.X.shape[-1]
    model = SingleTaskGP(
        history.X,
        history.Y,
        input_transform=Normalize(d=d, bounds=domain.bounds),
        outcome_transform=Standardize(m=1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    utility = {
        "ei": lambda: ExpectedImprovement(model, best_f=history.Y.max()),
        "ucb": lambda: UpperConfidenceBound(model, beta=4.0),
    }[acquisition]()
    options = {"seed": 0, "maxiter": MAXITER}
    return optimize_acqf(utility, domain.bounds, 1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES, options=options)


def plumbline_round(domain, history, name, **options):
    # BoTorch's default model is RBF with its dimension-scaled priors: the same here.
    model = {"kernel": "rbf", "priors": "botorch"}
    gp = {"model": model, **options}
    options = {"base": {"name": "ei", "options": gp}} if name == "calibrated" else gp
    return build_method(name, options, domain).ask(history, 1, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("name", "options"), [("ei", {}), ("ucb", {"sqrt_beta": 2.0})])
def test_a_round_beside_botorch(benchmark, situation, name, options):
    """Asked for: at most 1.2."""
    problem, domain, history = situation
    benchmark.group = f"{name} on {problem}"
    benchmark.extra_info["ratio to BoTorch's own loop"] = ratio = paired_ratio(
        lambda: plumbline_round(domain, history, name, **options), lambda: botorch_round(domain, history, name)
    )
    print(f"\n{name} on {problem}: {ratio:.2f} of BoTorch's own loop")
    benchmark.pedantic(plumbline_round, (domain, history, name), options, rounds=3)


def test_calibrated_beside_plain(benchmark, situation):
    """Asked for: at most 1.3, with leave-one-out in closed form."""
    problem, domain, history = situation
    benchmark.group = f"calibrated ei on {problem}"
    benchmark.extra_info["ratio to plain ei"] = ratio = paired_ratio(
        lambda: plumbline_round(domain, history, "calibrated"), lambda: plumbline_round(domain, history, "ei")
    )
    print(f"\ncalibrated ei on {problem}: {ratio:.2f} of plain ei")
    benchmark.pedantic(plumbline_round, (domain, history, "calibrated"), rounds=3)
