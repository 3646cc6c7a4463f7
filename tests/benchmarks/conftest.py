import pytest
import torch

from plumbline.core.history import History
from plumbline.designs.sobol import sobol
from plumbline.methods.base import Domain
from plumbline.problems.build import problem_of
from plumbline.problems.evaluation import evaluate
from plumbline.problems.synthetic import Ackley, Levy, SixHumpCamel
from plumbline.spaces.box import Box


@pytest.fixture(autouse=True)
def one_thread():
    """Measure what a job of the study does: one core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


PROBLEMS = {
    "six-hump-camel": (lambda: SixHumpCamel(negate=True), 20),
    "levy-5": (lambda: Levy(dim=5, negate=True), 40),
    "ackley-20": (lambda: Ackley(dim=20, negate=True), 60),
}


@pytest.fixture(params=list(PROBLEMS))
def situation(request):
    """A problem with some data on it: name, domain, history."""
    build, n = PROBLEMS[request.param]
    problem = build()
    X = sobol(problem.bounds, n, torch.Generator().manual_seed(0))
    Y, _ = evaluate(problem_of(problem), X, torch.zeros(n, 1, dtype=X.dtype))
    return request.param, Domain(Box(problem.bounds)), History(X, Y)
