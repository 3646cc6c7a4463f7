"""Rounds of the dear acquisition functions beside BoTorch's own loop with the same function and search, and paths."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qMaxValueEntropy
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.utils import get_optimal_samples
from botorch.exceptions.errors import OptimizationGradientError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise import draw_matheron_paths
from botorch.utils.sampling import draw_sobol_samples, manual_seed
from botorch.utils.transforms import normalize, unnormalize
from exact_gpytorch import gpytorch_model
from gpytorch import ExactMarginalLogLikelihood
from ratio import paired_ratio
from test_rounds import sampled

from plumbline.methods.base import build_method
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.pathwise import draw_paths

SEARCH = {"restarts": 4, "raw_samples": 64, "maxiter": 200}
OPTIMA, FANTASIES = 16, 64
NAMES = ["kg", "mes", "jes", "pes"]


def botorch_round(domain, history, name):
    """BoTorch's tutorials: a fit, optimal samples by its own paths, and a search in the unit cube."""
    bounds, d = domain.bounds, history.X.shape[-1]
    cube = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    X = normalize(history.X, bounds)
    model = SingleTaskGP(X, history.Y, outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with manual_seed(0):
        if name == "kg":
            utility = qKnowledgeGradient(model, FANTASIES)
        elif name == "mes":
            utility = qMaxValueEntropy(model, draw_sobol_samples(cube, 1000, 1).squeeze(1), num_mv_samples=OPTIMA)
        else:
            inputs, outputs = get_optimal_samples(model, cube, OPTIMA)
            utility = (
                qJointEntropySearch(model, inputs, outputs)
                if name == "jes"
                else qPredictiveEntropySearch(model, inputs)
            )
        hard = {"num_restarts": SEARCH["restarts"], "raw_samples": SEARCH["raw_samples"]}
        found, _ = optimize_acqf(utility, cube, 1, options={"seed": 0, "maxiter": SEARCH["maxiter"]}, **hard)
    return unnormalize(found, bounds)


def plumbline_round(domain, history, name):
    options = {"model": {"kernel": "rbf", "priors": "botorch"}, "search": SEARCH}
    with manual_seed(0):
        return build_method(name, options, domain).ask(history, 1, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("n", "d"), [(20, 2), (60, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_a_round_beside_botorch(benchmark, name, n, d):
    """Required: no slower."""
    asked = (*sampled(n, d), name)
    try:
        botorch_round(*asked)
    except OptimizationGradientError as error:
        pytest.skip(f"BoTorch's own loop of {name} ends without a proposal, n = {n}, d = {d}: {error}")
    ratio = paired_ratio(lambda: plumbline_round(*asked), lambda: botorch_round(*asked), 3)
    benchmark.group = f"n = {n}, d = {d}"
    benchmark.extra_info["ratio to BoTorch's own loop"] = ratio
    print(f"\n{name}, n = {n}, d = {d}: {ratio:.2f} of BoTorch's own loop")
    benchmark.pedantic(plumbline_round, asked, rounds=1)
    assert ratio < 1.1


@pytest.mark.parametrize(("n", "d"), [(20, 2), (60, 20)])
def test_evaluations_of_paths(benchmark, n, d):
    """Required: 1,000 evaluations of 256 paths under half a second."""
    domain, history = sampled(n, d)
    process = fit_process(history.X, history.Y, domain.bounds, ModelOptions())
    X = draw_sobol_samples(domain.bounds, 1000, 1, seed=0).squeeze(1)
    paths = draw_paths(process, 256, torch.Generator().manual_seed(0))
    theirs = draw_matheron_paths(gpytorch_model(process), torch.Size([256]))

    def botorch():
        with torch.no_grad():
            return theirs(X)

    ratio = paired_ratio(lambda: paths.everywhere(X), botorch)
    benchmark.extra_info["ratio to BoTorch's paths"] = ratio
    benchmark.pedantic(paths.everywhere, (X,), rounds=5)
    print(f"\n256 paths at 1,000 points, n = {n}, d = {d}: {benchmark.stats['median']:.3f} s, {ratio:.2f} of BoTorch's")
    assert benchmark.stats["median"] < 0.5
