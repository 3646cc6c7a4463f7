import numpy as np
import pytest
import torch
from botorch.acquisition import AcquisitionFunction, ExpectedImprovement, UpperConfidenceBound, qUpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from hypothesis import given
from hypothesis import strategies as st
from torch import Size, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.spaces.box import Box, Climbs, batches, batches_around, climb, climb_each, uniform, units_of
from plumbline.spaces.search import AroundIncumbent, EarlyStopping, MultiStart, Neighbourhood, SearchOptions, inside
from plumbline.spaces.table import Table, best_rows
from plumbline.spaces.with_gradient import Differentiated

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
            found.append(Box(bounds).maximise(utility, MultiStart(q, QUICK, 11)))
    X = found[0]
    assert torch.equal(*found)
    assert X.shape == (q, 2)
    assert not X.requires_grad
    assert (bounds[0] <= X).all()
    assert (bounds[1] >= X).all()


def test_batches_of_one_are_botorchs(bounds: Tensor) -> None:
    assert torch.equal(batches(bounds, 32, 1, 5), draw_sobol_samples(bounds, 32, 1, seed=5))


def test_batches_are_of_one_sequence_that_fills_every_input_evenly() -> None:
    bounds = torch.tensor([[-1.0, 0.0, 5.0], [1.0, 10.0, 6.0]], dtype=torch.float64)
    X = batches(bounds, 16, 4, 5)
    assert X.shape == (16, 4, 3)
    rows = ((X.flatten(0, 1) - bounds[0]) / (bounds[1] - bounds[0]) * 64).floor()
    assert torch.equal(rows.sort(0).values, torch.arange(64.0, dtype=torch.float64).unsqueeze(-1).expand(64, 3))
    assert torch.equal(X, batches(bounds, 16, 4, 5))
    assert not torch.equal(X, batches(bounds, 16, 4, 6))
    assert not torch.equal(X.flatten(0, 1), draw_sobol_samples(bounds, 64, 1, seed=5).squeeze(1))


def test_a_climb_is_botorchs_without_its_copies(model: SingleTaskGP, bounds: Tensor) -> None:
    seen: list[tuple[int, bool]] = []

    class Watched(UpperConfidenceBound):
        def forward(self, X: Tensor) -> Tensor:
            # A leaf is what L-BFGS-B was asked about; with copies in between it would have a history.
            seen.append((len(X), X.grad_fn is None))
            return super().forward(X)

    X = Box(bounds).maximise(Watched(model, 4.0), MultiStart(1, QUICK, 11))
    torch.testing.assert_close(X, Box(bounds).maximise(UpperConfidenceBound(model, 4.0), MultiStart(1, QUICK, 11)))
    assert all(leaf for _, leaf in seen)


def test_a_climb_that_fails_ends_where_it_is(model: SingleTaskGP, bounds: Tensor) -> None:
    seen: list[int] = []

    class Misleading(UpperConfidenceBound):
        """Its gradient points downhill, so that no line search comes to an end."""

        def forward(self, X: Tensor) -> Tensor:
            seen.append(len(X))
            value = super().forward(X)
            return 2 * value.detach() - value

    X = Box(bounds).maximise(Misleading(model, 4.0), MultiStart(1, QUICK, 11))
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
    # BoTorch chooses starts from the global stream: one time in 25 all ten would be there by chance.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Box(bounds).maximise(utility, MultiStart(1, SearchOptions(restarts=10, raw_samples=256, maxiter=1), 11))
    assert bool((utility.worth(asked[0]) > 0).all()) == nonnegative


def test_one_point_does_not_depend_on_the_global_stream(model: SingleTaskGP, bounds: Tensor) -> None:
    utility = UpperConfidenceBound(model, 4.0)
    found = []
    for state in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)
            found.append(Box(bounds).maximise(utility, MultiStart(1, QUICK, 11)))
    assert torch.equal(*found)


def test_finds_the_best_of_a_grid(model: SingleTaskGP, bounds: Tensor) -> None:
    utility = UpperConfidenceBound(model, 4.0)
    axes = [torch.linspace(low, high, 61, dtype=torch.float64) for low, high in bounds.T.tolist()]
    with torch.no_grad():
        best = utility(torch.cartesian_prod(*axes).unsqueeze(1)).max()
    X = Box(bounds).maximise(utility, MultiStart(1, SearchOptions(), 0))
    assert utility(X) >= best - 1e-6


def test_every_climb_ends_and_the_best_end_comes_first(model: SingleTaskGP, bounds: Tensor) -> None:
    utility = UpperConfidenceBound(model, 4.0)
    ends = Box(bounds).ends(utility, MultiStart(1, QUICK, 11))
    assert ends.shape == (QUICK.restarts, 1, bounds.shape[1])
    values = utility(ends)
    assert bool((values.diff() <= 1e-12).all())
    assert torch.equal(ends[0], Box(bounds).maximise(utility, MultiStart(1, QUICK, 11)))


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


class Hills(Differentiated):
    """A hill at 1 of height 1, and one at -1 of another height."""

    def __init__(self, model: SingleTaskGP, lower: float) -> None:
        super().__init__(model)
        self.lower = lower
        self.asked: list[int] = []

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        self.asked.append(len(X))
        with torch.enable_grad():
            X = X.detach().requires_grad_()
            square = (X[..., 0, 0] - X.new_tensor([[1.0], [-1.0]])).square() * 2 + X[..., 0, 1:].square().sum(-1)
            value = (X.new_tensor([[1.0], [self.lower]]) * (-square).exp()).sum(0)
            (gradient,) = torch.autograd.grad(value.sum(), X)
        return value.detach(), gradient


SQUARE = torch.tensor([[-2.0, -2.0], [2.0, 2.0]], dtype=torch.float64)


@pytest.mark.parametrize("patience", [1.0, 100.0])
def test_climbs_without_prospects_are_given_up(model: SingleTaskGP, patience: float) -> None:
    found = []
    for limit in (None, patience):
        hills = Hills(model, 0.5)
        options = SearchOptions(restarts=64, raw_samples=64, patience=limit)
        found.append((Box(SQUARE).maximise(hills, MultiStart(1, options, 3)), sum(hills.asked)))
    (X, asked), (same, fewer) = found
    torch.testing.assert_close(same, X, atol=1e-4, rtol=0)
    assert fewer < asked


@pytest.mark.parametrize("patience", [None, 10.0])
def test_searches_that_climb_together_end_where_each_would_alone(model: SingleTaskGP, patience: float | None) -> None:
    generator = torch.Generator().manual_seed(0)
    searches = []
    for i in range(4):
        region = SQUARE + 0.1 * i * torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
        searches.append(
            Climbs(Hills(model, 0.2 * i), uniform(region, 6, generator).unsqueeze(1), region, units_of(SQUARE))
        )
    together = climb_each(searches, 50, patience)
    for search, (ends, values) in zip(searches, together, strict=True):
        own, own_values = climb(search, 50, patience)
        assert torch.equal(own, ends)
        assert torch.equal(own_values, values)
        assert torch.equal(ends, ends.clamp(*search.bounds))


def test_a_climb_is_not_judged_by_a_step_too_long() -> None:
    heat = EarlyStopping(3, 10.0)
    first = torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64)
    assert not heat.lost([0, 1, 2], first).any()
    # The first has come a hundredth of the way, the third has tried a step that was too long.
    assert heat.lost([0, 2], torch.tensor([0.01, 0.1], dtype=torch.float64)).tolist() == [True, False]
    # Its gain is what it has over the best that it had.
    assert heat.lost([2], torch.tensor([0.501], dtype=torch.float64)).tolist() == [True]
    assert heat.lost([2], torch.tensor([0.6], dtype=torch.float64)).tolist() == [False]
    # Who leads is not lost, however little it gains.
    assert heat.lost([1], torch.tensor([1.0 + 1e-9], dtype=torch.float64)).tolist() == [False]


def test_starts_are_among_the_points_that_are_looked_at() -> None:
    with pytest.raises(PlumblineError, match="1000 starts cannot be chosen from 256 points: raise `raw_samples`"):
        parse(SearchOptions, {"restarts": 1000}, "config")


@given(
    n=st.integers(2, 64),
    q=st.integers(1, 3),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 100),
    at=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    unit=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_a_share_of_the_samples_lies_around_the_incumbent(
    n: int, q: int, share: float, seed: int, at: tuple[float, float], unit: float
) -> None:
    box = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)
    incumbent = box[0] + (box[1] - box[0]) * torch.tensor(at, dtype=torch.float64)
    options = AroundIncumbent(share=share, closest=1e-3, farthest=1e-2)
    plain = batches(box, n, q, seed)
    X = batches_around(box, Neighbourhood(incumbent, options), n, q, seed)
    some = max(1, round(share * n))
    assert torch.equal(X[:-some], plain[:-some])
    near = X[-some:]
    assert torch.equal(near[0], incumbent.expand(q, 2))
    assert ((near - incumbent) / (box[1] - box[0])).abs().max() < 0.06
    assert ((box[0] <= X) & (box[1] >= X)).all()
    assert torch.equal(X, batches_around(box, Neighbourhood(incumbent, options), n, q, seed))
    scaled = batches_around(unit * box, Neighbourhood(unit * incumbent, options), n, q, seed)
    torch.testing.assert_close(scaled, unit * X, rtol=1e-12, atol=1e-12 * unit)


def test_distances_from_the_incumbent_are_of_every_size_between_two() -> None:
    box = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    middle = torch.tensor([0.5], dtype=torch.float64)
    X = batches_around(box, Neighbourhood(middle, AroundIncumbent(share=0.999)), 4000, 1, 0)[5:]
    # log |N(0, 1)| has mean -0.635.
    logs = (X - middle).abs().log().flatten() + 0.635
    assert logs.mean() == pytest.approx(np.log([1e-4, 0.1]).mean(), abs=0.15)
    assert logs.std() == pytest.approx(np.sqrt(np.diff(np.log([1e-4, 0.1])) ** 2 / 12 + np.pi**2 / 8)[0], rel=0.1)


@pytest.mark.parametrize("q", [1, 2])
def test_a_narrow_peak_at_the_incumbent_is_found_from_around_it(q: int) -> None:
    """Everywhere else the function is flat: no other sample has a slope to climb."""
    peak = torch.full((6,), 0.3, dtype=torch.float64)

    class Peak(AcquisitionFunction):
        def forward(self, X: Tensor) -> Tensor:
            return torch.exp(-((X - peak) / 0.01).square().sum(-1)).sum(-1)

    box = Box(torch.stack([torch.zeros(6), torch.ones(6)]).double())
    utility = Peak(None)
    close = Neighbourhood(peak + 0.005, AroundIncumbent())
    assert utility(box.maximise(utility, MultiStart(q, QUICK, 1)).unsqueeze(0)) < 0.01
    assert utility(box.ends(utility, MultiStart(q, QUICK, 1, close))[:1]) > 0.99


def test_an_incumbent_outside_of_a_region_is_cut_to_it() -> None:
    region = torch.tensor([[0.4, 0.4], [0.6, 0.6]], dtype=torch.float64)
    outside = torch.tensor([0.5, 0.9], dtype=torch.float64)
    X = batches_around(region, Neighbourhood(outside, AroundIncumbent(share=0.5)), 64, 1, 3)
    assert inside(X.squeeze(1), region).all()
    assert X[32].flatten().tolist() == [0.5, 0.6]


def test_a_table_has_no_surroundings() -> None:
    rows = torch.linspace(0, 1, 7, dtype=torch.float64).unsqueeze(-1)
    table = Table(torch.tensor([[0.0], [1.0]], dtype=torch.float64), rows)

    class Rise(AcquisitionFunction):
        def forward(self, X: Tensor) -> Tensor:
            return X.sum((-1, -2))

    around = Neighbourhood(rows[0], AroundIncumbent())
    assert torch.equal(
        table.ends(Rise(None), MultiStart(1, QUICK, 0, around)), table.ends(Rise(None), MultiStart(1, QUICK, 0))
    )


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.0}, {"closest": 0.2}, {"closest": 0.0}, {"far": 1.0}])
def test_odd_neighbourhoods_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(PlumblineError):
        parse(AroundIncumbent, options, "search.around_incumbent")
