"""EULBO's methods with all departures of the published code, beside that code, on the same data and random numbers.

The code (github.com/nataliemaus/aabo, commit b107273) is no part of this repository. The tests run where the variable
PLUMBLINE_AABO of the environment names the folder of a clone.
"""

import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from botorch.test_functions import Hartmann
from gpytorch.likelihoods import GaussianLikelihood
from torch import Generator, Tensor

from plumbline.methods.sparse.eulbo import EulboMethodOptions
from plumbline.methods.sparse.eulbo_objective import maximise_eulbo
from plumbline.methods.sparse.options import SparseOptions
from plumbline.methods.sparse.soft_improvement import SoftBatchImprovement, SoftImprovement
from plumbline.methods.sparse.soft_knowledge_gradient import SoftKnowledgeGradient
from plumbline.methods.sparse.soft_utility import SoftUtility
from plumbline.models.standardisation import Standardisation
from plumbline.models.svgp.inducing import improvement_quality, place_inducing
from plumbline.models.svgp.minibatches import Shuffled
from plumbline.models.svgp.objective import Layout
from plumbline.models.svgp.process import SVGP
from plumbline.models.svgp.training import fit

FOLDER = os.environ.get("PLUMBLINE_AABO", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs the published code: PLUMBLINE_AABO")

CODE = EulboMethodOptions(variant="code")
M, D = 100, 6
LAYOUT = Layout(M, D)
PLACES = ("svgp", "utils", "tasks")


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The published module of trainings, in double precision, with minibatches that `Shuffled` draws too."""
    monkeypatch.syspath_prepend(FOLDER)
    precision = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        import svgp.train_model as published  # type: ignore[import-not-found]
        import utils.mossetal_inducing_pts_init as placement  # type: ignore[import-not-found]

        pivoted = placement._pivoted_cholesky_init
        # Its `kernel_matrix.diag()` is a method that lazy tensors no longer have.
        monkeypatch.setattr(
            placement,
            "_pivoted_cholesky_init",
            lambda *, kernel_matrix, **others: pivoted(kernel_matrix=kernel_matrix.to_dense().detach(), **others),
        )
        monkeypatch.setattr(published, "DataLoader", SeededMinibatches)
        yield published
    finally:
        torch.autograd.set_detect_anomaly(False)
        torch.set_default_dtype(precision)
        for name in [name for name in sys.modules if name.partition(".")[0] in PLACES]:
            del sys.modules[name]


class SeededMinibatches:
    """Minibatches of a data set in the order of `Shuffled`; each attempt of the code begins them anew."""

    seed = 0

    def __init__(self, data: Any, batch_size: int, shuffle: bool) -> None:
        self.data, self.batch_size = data.tensors, batch_size
        self.begin()

    def begin(self) -> None:
        self.generator = Generator().manual_seed(SeededMinibatches.seed)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.data[1]), generator=self.generator)
        for rows in order.split(self.batch_size):
            yield self.data[0][rows], self.data[1][rows]


def row_of(model: Any) -> Tensor:
    """The parameters of a published model in the order of ours."""
    strategy = model.variational_strategy
    beliefs = strategy._variational_distribution
    parts = [
        strategy.inducing_points,
        beliefs.variational_mean,
        beliefs.chol_variational_covar.tril(),
        model.mean_module.constant,
        model.covar_module.base_kernel.raw_lengthscale,
        model.covar_module.raw_outputscale,
        model.likelihood.noise_covar.raw_noise,
    ]
    return torch.cat([part.detach().flatten() for part in parts])


def data_of(seed: int) -> tuple[Tensor, Tensor]:
    """A hundred standardised values of Hartmann's function."""
    X = torch.rand(M, D, generator=Generator().manual_seed(seed))
    y = Hartmann(negate=True)(X)
    return X, (y - y.mean()) / y.std()


def begun(X: Tensor, learned: bool = True) -> Any:
    """A published model at the initial inducing points of the code."""
    from svgp.model import GPModel  # type: ignore[import-not-found]
    from utils.set_inducing_points_with_moss23 import get_optimal_inducing_points  # type: ignore[import-not-found]

    first = GPModel(X.clone(), GaussianLikelihood(), learned)
    model = GPModel(get_optimal_inducing_points(first, X), GaussianLikelihood(), learned)
    model(X[:2])  # or else the first call would draw the mean of the inducing values
    return model


def minibatches(X: Tensor, y: Tensor) -> Any:
    return lambda: [Shuffled(X, y, Generator().manual_seed(SeededMinibatches.seed))]


def train(code: ModuleType, model: Any, X: Tensor, y: Tensor, **how: Any) -> None:
    """Train a published model as `scripts/run_bo.py` does."""
    usual = {"lr": 0.01, "train_bsz": 32, "grad_clip": 2.0, "max_allowed_n_failures_improve_loss": 3}
    code.update_model_elbo(model, X, y, **usual, max_allowed_n_epochs=30, **how)


@pytest.mark.parametrize("seed", range(3))
def test_training_to_convergence(code: ModuleType, seed: int) -> None:
    """In three rounds, each begun with the parameters of the one before."""
    X, y = data_of(seed)
    model = begun(X)
    for turn in range(3):
        SeededMinibatches.seed, start = 10 * seed + turn, row_of(model)
        train(code, model, X, y)
        ours = fit(start[None], LAYOUT, "rbf", minibatches(X, y), "elbo", SparseOptions(variant="code").first_training)
        assert (ours.trained[0][0] - start).abs().max() > 0.01
        torch.testing.assert_close(ours.trained[0][0], row_of(model), rtol=0, atol=1e-7)


@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("utility", ["improvement", "gradient"])
def test_refinement(code: ModuleType, utility: str, q: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In three rounds, with equal samples; with the knowledge gradient the first attempts fail in both."""
    X, y = data_of(0)
    model = begun(X)
    torch.manual_seed(0)
    for turn in range(3):
        SeededMinibatches.seed = turn
        train(code, model, X, y, train_to_convergence=False, n_epochs=10)
        start, query, base = row_of(model), torch.rand(q, D), torch.randn(64, q)
        soft, points = utility_of(utility, model, y, query, base)
        moved = refined_by_the_code(code, model, X, y, query, points[q:], base, utility == "gradient", monkeypatch)
        options = CODE.eulbo.model_copy(update={"frozen_factors": utility == "gradient"})
        box = torch.stack([torch.zeros(D), torch.ones(D)])[None]
        ours = maximise_eulbo(start[None], points[None], box, LAYOUT, "rbf", soft, minibatches(X, y), "elbo", options)
        assert (ours.attempts[0] > 1) == (utility == "gradient")
        torch.testing.assert_close(ours.trained[0][0], row_of(model), rtol=0, atol=1e-11)
        torch.testing.assert_close(ours.trained[1][0, :q], moved, rtol=0, atol=1e-11)


def utility_of(name: str, model: Any, y: Tensor, query: Tensor, base: Tensor) -> tuple[SoftUtility, Tensor]:
    """Our utility and its points: the queries, and for the gradient the maximisers of 64 posterior samples."""
    best, q = y.max().view(1), len(query)
    if name == "improvement":
        return (SoftImprovement(best) if q == 1 else SoftBatchImprovement(best, q, base[None])), query
    examined = torch.rand(512, D)
    with torch.no_grad():
        sampled = model.eval()(examined).rsample(torch.Size([64]))
    soft = SoftKnowledgeGradient(best, q, base[None], doubled=True, appended=True, centred=False)
    return soft, torch.cat([query, examined[sampled.argmax(-1)]])


def refined_by_the_code(
    code: ModuleType,
    model: Any,
    X: Tensor,
    y: Tensor,
    query: Tensor,
    maximisers: Tensor,
    base: Tensor,
    gradient: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> Tensor:
    """Return the published query after its refinement, with given samples in the place of the code's own."""
    loop = code.eulbo_training_loop

    def attempt(train_loader: SeededMinibatches, **others: Any) -> Any:
        train_loader.begin()
        return loop(train_loader=train_loader, **others)

    def samples(model: Any, **others: Any) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            model.posterior(query)  # as its sampler does, this leaves the model in evaluation mode
        return maximisers.clone().requires_grad_(), base.squeeze(-1) if len(query) == 1 else base

    def normal(*size: int, **others: Any) -> Tensor:
        assert tuple(size) == tuple(base.shape)
        return base

    with monkeypatch.context() as patched:
        patched.setattr(code, "eulbo_training_loop", attempt)
        patched.setattr(code, "get_kg_samples_and_zs", samples)
        patched.setattr(torch, "randn", normal)
        found = code.update_model_and_generate_candidates_eulbo(
            model=model,
            train_x=X,
            train_y=y,
            lb=0,
            ub=1,
            init_x_next=query,
            train_bsz=32,
            normed_best_f=y.max(),
            acquisition_bsz=len(query),
            max_allowed_n_failures_improve_loss=3,
            max_allowed_n_epochs=30,
            use_kg=gradient,
            use_turbo=False,
        )
    return found["x_next"]


@pytest.mark.parametrize("seed", range(3))
def test_placement_of_inducing_points(code: ModuleType, seed: int) -> None:
    from utils.set_inducing_points_with_moss23 import set_inducing_points_with_moss23  # type: ignore[import-not-found]

    X, y = data_of(seed)
    model = begun(X, learned=False)
    unit = Standardisation(torch.zeros(D), torch.ones(D), 0.0, 1.0)
    for turn in range(5):
        SeededMinibatches.seed = turn
        train(code, model, X, y)
        process = SVGP(row_of(model), LAYOUT, "rbf", unit)
        Z = process.parameters.inducing[0]
        ours = place_inducing(Z, LAYOUT, process, improvement_quality(process, Z, noisy=True), Z, fill_first=True)
        set_inducing_points_with_moss23(model)
        assert torch.equal(ours, model.variational_strategy.inducing_points)
