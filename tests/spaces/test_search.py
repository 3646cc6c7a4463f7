import pytest
import torch
from botorch.acquisition import ExpectedImprovement, UpperConfidenceBound, qUpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from torch import Size, Tensor

from plumbline.acquisition.differentiated import Differentiated
from plumbline.errors import PlumblineError
from plumbline.options import parse
from plumbline.spaces.box import Box
from plumbline.spaces.search import SearchOptions, inside
from plumbline.spaces.table import best_rows

QUICK = SearchOptions(restarts=3, raw_samples=32, maxiter=30)


def batch_utility(model: SingleTaskGP) -> qUpperConfidenceBound:
    return qUpperConfidenceBound(model, 4.0, sampler=SobolQMCNormalSampler(Size([32]), seed=0))


@pytest.mark.parametrize("q", [1, 3])
def test_same_seed_same_points_in_the_box(model: SingleTaskGP, bounds: Tensor, q: int) -> None:
    utility = UpperConfidenceBound(model, 4.0) if q == 1 else batch_utility(model)
    found = []
    for _ in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found.append(Box(bounds).maximise(utility, q, QUICK, seed=11))
    X = found[0]
    assert torch.equal(*found)
    assert X.shape == (q, 2)
    assert not X.requires_grad
    assert (bounds[0] <= X).all()
    assert (bounds[1] >= X).all()


def test_a_climb_is_botorchs_without_its_copies(model: SingleTaskGP, bounds: Tensor) -> None:
    seen: list[tuple[int, bool]] = []

    class Watched(UpperConfidenceBound):
        def forward(self, X: Tensor) -> Tensor:
            # A leaf is what L-BFGS-B was asked about; with copies in between it would have a history.
            seen.append((len(X), X.grad_fn is None))
            return super().forward(X)

    X = Box(bounds).maximise(Watched(model, 4.0), 1, QUICK, seed=11)
    torch.testing.assert_close(X, Box(bounds).maximise(UpperConfidenceBound(model, 4.0), 1, QUICK, seed=11))
    assert all(leaf for _, leaf in seen)


def test_a_climb_that_fails_ends_where_it_is(model: SingleTaskGP, bounds: Tensor) -> None:
    seen: list[int] = []

    class Misleading(UpperConfidenceBound):
        """Its gradient points downhill, so that no line search comes to an end."""

        def forward(self, X: Tensor) -> Tensor:
            seen.append(len(X))
            value = super().forward(X)
            return 2 * value.detach() - value

    X = Box(bounds).maximise(Misleading(model, 4.0), 1, QUICK, seed=11)
    assert inside(X, bounds).all()
    assert seen.count(QUICK.raw_samples) == 1


@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_climb_starts_where_a_utility_is_not_zero(model: SingleTaskGP, bounds: Tensor, nonnegative: bool) -> None:
    asked: list[Tensor] = []

    class Peak(Differentiated):
        """Zero but for a tenth of the first input."""

        def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
            asked.append(X)
            return self.worth(X), torch.zeros_like(X)

        def values(self, X: Tensor) -> Tensor:
            return self.worth(X)

        def worth(self, X: Tensor) -> Tensor:
            share = (X[:, 0, 0] - bounds[0, 0]) / (bounds[1, 0] - bounds[0, 0])
            return (share > 0.9).to(X) * share

    utility = Peak(model)
    utility.nonnegative = nonnegative
    Box(bounds).maximise(utility, 1, SearchOptions(restarts=10, raw_samples=256, maxiter=1), seed=11)
    assert bool((utility.worth(asked[0]) > 0).all()) == nonnegative


def test_one_point_does_not_depend_on_the_global_stream(model: SingleTaskGP, bounds: Tensor) -> None:
    utility = UpperConfidenceBound(model, 4.0)
    found = []
    for state in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)
            found.append(Box(bounds).maximise(utility, 1, QUICK, seed=11))
    assert torch.equal(*found)


def test_finds_the_best_of_a_grid(model: SingleTaskGP, bounds: Tensor) -> None:
    utility = UpperConfidenceBound(model, 4.0)
    axes = [torch.linspace(low, high, 61, dtype=torch.float64) for low, high in bounds.T.tolist()]
    with torch.no_grad():
        best = utility(torch.cartesian_prod(*axes).unsqueeze(1)).max()
    X = Box(bounds).maximise(utility, 1, SearchOptions(), seed=0)
    assert utility(X) >= best - 1e-6


@pytest.mark.parametrize("make", [lambda m: ExpectedImprovement(m, 40.0), lambda m: UpperConfidenceBound(m, 4.0)])
def test_table_search_is_the_argmax(model: SingleTaskGP, bounds: Tensor, make) -> None:
    U = torch.rand(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    choices = bounds[0] + (bounds[1] - bounds[0]) * U
    utility = make(model)
    with torch.no_grad():
        best = choices[utility(choices.unsqueeze(1)).argmax()]
    assert torch.equal(best_rows(utility, choices, 1), best.unsqueeze(0))


def test_table_search_returns_distinct_rows_the_best_first(model: SingleTaskGP, bounds: Tensor) -> None:
    U = torch.rand(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    choices = bounds[0] + (bounds[1] - bounds[0]) * U
    utility = batch_utility(model)
    X = best_rows(utility, choices, 4)
    rows = [tuple(row) for row in X.tolist()]
    assert len(set(rows)) == 4
    assert set(rows) <= {tuple(row) for row in choices.tolist()}
    assert utility.X_pending is None
    with torch.no_grad():
        assert torch.equal(X[0], choices[utility(choices.unsqueeze(1)).argmax()])


def test_options_are_positive() -> None:
    with pytest.raises(PlumblineError, match="restarts"):
        parse(SearchOptions, {"restarts": 0}, "config")
