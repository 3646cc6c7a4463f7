"""What conformal optimisation costs beside its plain counterparts, in time and in memory."""

import json
import math
import os
import subprocess
import sys
from itertools import pairwise
from statistics import median
from time import perf_counter

import pytest
import torch
from botorch.acquisition import qUpperConfidenceBound
from botorch.sampling import SobolQMCNormalSampler
from ratio import paired_ratio

from plumbline.acquisition.conformal import ConformalAcquisition, ConformalPosteriorOptions
from plumbline.calibration.density_ratio import RatioOptions, fit_ratio
from plumbline.designs.sobol import sobol
from plumbline.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.models.exact import ModelOptions, fit_gp, make_gp
from plumbline.problems.build import problem_of
from plumbline.problems.evaluation import evaluate
from plumbline.problems.synthetic import Ackley, Levy
from plumbline.spaces.box import Box

PROBLEMS = {"levy-5": lambda: Levy(dim=5, negate=True), "ackley-20": lambda: Ackley(dim=20, negate=True)}
SCHEDULE = "max(.05, 1/sqrt(n))"
SEEDS = range(5)


def observed(name, n):
    """A problem's domain, and noisy data on it."""
    problem = PROBLEMS[name]()
    generator = torch.Generator().manual_seed(0)
    X = sobol(problem.bounds, n, generator)
    F, _ = evaluate(problem_of(problem), X, torch.zeros(n, 1, dtype=X.dtype))
    Y = F + 0.1 * F.std() * torch.randn(n, 1, generator=generator, dtype=X.dtype)
    return Domain(Box(problem.bounds)), History(X, Y)


def rounds(name, domain, history):
    """The same round with several seeds: how long the search for a plain bound takes depends on its starts."""
    method = build_method(name, {"model": {"priors": "conformal"}, "alpha": SCHEDULE}, domain)
    return [method.ask(history, 1, torch.Generator().manual_seed(seed)) for seed in SEEDS]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_conformal_round_beside_a_plain_one(benchmark, problem):
    """Asked for: at most 2, after 60 observations."""
    domain, history = observed(problem, 60)
    benchmark.group = f"cucb on {problem}"
    benchmark.extra_info["ratio to plain ucb"] = ratio = paired_ratio(
        lambda: rounds("cucb", domain, history), lambda: rounds("ucb", domain, history), repeats=5
    )
    seconds = {name: rounds(name, domain, history)[0].seconds for name in ("cucb", "ucb")}
    print(f"\ncucb on {problem}: {ratio:.2f} of plain ucb; seconds of one round {seconds}")
    benchmark.pedantic(rounds, ("cucb", domain, history), rounds=1)


def conformal_bound(domain, history, model):
    """The acquisition of a round of cucb, with a classifier of data against uniform queries."""
    method = build_method("cucb", {}, domain)
    alpha = max(0.05, len(history) ** -0.5)
    utility = method.utility([model], history, alpha, torch.Generator())
    data = model.train_inputs[0]
    queries = torch.rand(*data.shape, generator=torch.Generator().manual_seed(1), dtype=data.dtype)
    ratio = fit_ratio(data, queries, RatioOptions(steps=50), torch.Generator().manual_seed(2))
    return ConformalAcquisition([model], utility, ratio, alpha, ConformalPosteriorOptions(), seed=0)


def gradient(acquisition, X):
    X = X.detach().requires_grad_()
    return torch.autograd.grad(acquisition(X).sum(), X)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_conformal_gradient_beside_a_plain_one(benchmark, problem):
    """Asked for: at most 3, at 5 points, 256 labels beside 64 samples."""
    domain, history = observed(problem, 60)
    model = fit_gp(history.X, history.Y, domain.bounds, ModelOptions(priors="conformal"))
    conformal = conformal_bound(domain, history, model)
    plain = qUpperConfidenceBound(model, 4.0, sampler=SobolQMCNormalSampler(torch.Size([64]), seed=0))
    X = sobol(domain.bounds, 5, torch.Generator().manual_seed(3)).unsqueeze(-2)
    benchmark.group = f"gradient of cucb on {problem}"
    benchmark.extra_info["ratio to qUpperConfidenceBound"] = ratio = paired_ratio(
        lambda: [gradient(conformal, X) for _ in range(20)], lambda: [gradient(plain, X) for _ in range(20)], repeats=15
    )
    print(f"\ngradient of cucb on {problem}: {ratio:.2f} of BoTorch's qUpperConfidenceBound")
    benchmark.pedantic(gradient, (conformal, X), rounds=50, warmup_rounds=5)


MEASURE = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from test_conformal_rounds import conformal_bound, gradient, observed
from plumbline.models.exact import ModelOptions, make_gp
domain, history = observed("levy-5", 160)
model = make_gp(history.X, history.Y, domain.bounds, ModelOptions(priors="conformal")).eval()
acquisition = conformal_bound(domain, history, model)
X = domain.bounds[0] + (domain.bounds[1] - domain.bounds[0]) * torch.rand(64, 1, 5).double()
gradient(acquisition, X[:1])  # what is loaded at the first call is no cost of the points
pages = int(open("/proc/self/statm").read().split()[1])
resident = pages * resource.getpagesize() / 2**20
gradient(acquisition, X)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([resident, peak]))
"""


def test_memory_of_a_gradient(benchmark):
    """Asked for: under 200 MB above what is resident before; 160 observations, 256 labels, 64 points.

    The peak is that of the whole process: an earlier one, of the imports, can only make the difference too large.
    """
    command = [sys.executable, "-c", MEASURE, os.path.dirname(__file__)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = benchmark.pedantic(subprocess.run, (command,), {"capture_output": True, "text": True, "env": env}, rounds=1)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    benchmark.extra_info["MB above the baseline"] = after - before
    assert after - before < 200
    print(f"\na conformal gradient at 64 points: {after - before:.0f} MB above {before:.0f} MB")


def test_cost_in_the_number_of_observations(benchmark):
    """The exponent of a gradient's cost, once the model is factorised: at most 2, from the n x n inverse."""
    sizes, seconds = (50, 100, 200, 400), {}
    for n in sizes:
        domain, history = observed("levy-5", n)
        model = make_gp(history.X, history.Y, domain.bounds, ModelOptions(priors="conformal")).eval()
        acquisition = conformal_bound(domain, history, model)
        X = sobol(domain.bounds, 5, torch.Generator().manual_seed(3)).unsqueeze(-2)
        gradient(acquisition, X)
        times = []
        for _ in range(30):
            started = perf_counter()
            gradient(acquisition, X)
            times.append(perf_counter() - started)
        seconds[n] = median(times)
    exponents = {f"{a}-{b}": math.log2(seconds[b] / seconds[a]) for a, b in pairwise(sizes)}
    logs = torch.tensor([[math.log(n), math.log(seconds[n])] for n in sizes], dtype=torch.float64)
    away = logs - logs.mean(dim=0)
    exponent = float((away[:, 0] * away[:, 1]).sum() / away[:, 0].square().sum())
    benchmark.extra_info.update({"exponent": exponent, **{f"seconds at {n}": s for n, s in seconds.items()}})
    shown = ", ".join(f"{1e3 * s:.2f} ms at {n}" for n, s in seconds.items())
    print(f"\na conformal gradient grows as n^{exponent:.2f}: {shown}; by doubling {exponents}")
    benchmark.pedantic(gradient, (acquisition, X), rounds=30)
