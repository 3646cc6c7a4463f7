import io
import math
from dataclasses import replace

import pytest
import torch
from situations import BOX, QUICK, Situation, ask, box, objective, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, Method, build_method
from plumbline.methods.wrappers.trust_region import Region, TrustRegionOptions, advance, observe, region_box
from plumbline.spaces.search import inside
from plumbline.spaces.table import Table

OPTIONS = TrustRegionOptions(base="ucb")
BEGUN = Region(0.8, best=5.0, seen=10, design=10)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def after(region: Region, *rounds: tuple[float, ...], dim: int = 2, options: TrustRegionOptions = OPTIONS) -> Region:
    for values in rounds:
        region = advance(region, column(*values), dim, options)
    return region


def tr_ucb(place: Situation, **options) -> Method:
    own = {name: options.pop(name) for name in list(options) if name in TrustRegionOptions.model_fields}
    return build_method("trust-region", {"base": {"name": "ucb", "options": {**QUICK, **options}}, **own}, place.domain)


def test_defaults_are_those_of_eriksson_et_al() -> None:
    assert (OPTIONS.initial_length, OPTIONS.min_length, OPTIONS.max_length) == (0.8, 2**-7, 1.6)
    assert (OPTIONS.success_tolerance, OPTIONS.failure_tolerance) == (3, None)


def test_three_successes_in_a_row_double_the_length_up_to_the_greatest() -> None:
    two = after(BEGUN, (6,), (7,))
    assert (two.length, two.successes, two.best, two.seen) == (0.8, 2, 7.0, 12)
    three = after(two, (8,))
    assert (three.length, three.successes, three.failures) == (1.6, 0, 0)
    assert after(three, (9,), (10,), (11,)).length == 1.6


def test_a_failure_ends_a_row_of_successes_and_the_other_way_round() -> None:
    region = after(BEGUN, (6,), (7,), (0,), dim=5)
    assert (region.length, region.successes, region.failures) == (0.8, 0, 1)
    region = after(region, (8,), dim=5)
    assert (region.successes, region.failures) == (1, 0)


@pytest.mark.parametrize(("dim", "q", "rounds"), [(20, 3, 7), (20, 1, 20), (2, 3, 1), (6, 2, 3)])
def test_failures_in_a_row_halve_the_length(dim: int, q: int, rounds: int) -> None:
    miss = (1.0,) * q
    before = after(BEGUN, *[miss] * (rounds - 1), dim=dim)
    assert (before.length, before.failures) == (0.8, rounds - 1)
    there = after(before, miss, dim=dim)
    assert (there.length, there.failures, there.best) == (0.4, 0, 5.0)


def test_failure_tolerance_can_be_given() -> None:
    options = TrustRegionOptions(base="ucb", failure_tolerance=2)
    assert after(BEGUN, (1,), dim=20, options=options).length == 0.8
    assert after(BEGUN, (1,), (1,), dim=20, options=options).length == 0.4


def test_a_batch_succeeds_by_its_best_point_and_a_tie_is_no_success() -> None:
    assert after(BEGUN, (1, 6, 2)).successes == 1
    assert after(BEGUN, (5.0,), dim=9).failures == 1


def test_a_region_too_small_is_given_up_with_its_data() -> None:
    small = replace(BEGUN, length=2**-7, start=3, seen=40)
    assert after(small, (1,), dim=1) == Region(0.8, start=41, seen=41, design=10)
    assert after(replace(small, length=2**-6), (1,), dim=1).length == 2**-7  # the least length is still allowed


def test_a_success_may_have_to_gain_a_share_of_the_best() -> None:
    options = TrustRegionOptions(base="ucb", least_gain=1e-3)
    for best in (5.0, -5.0):
        region = replace(BEGUN, best=best)
        assert after(region, (best + 0.0049,), dim=9, options=options).failures == 1
        assert after(region, (best + 0.0051,), dim=9, options=options).successes == 1
    small = after(BEGUN, (5.004,), dim=9, options=options)
    assert small.best == 5.004  # what is too small a gain is still the best
    assert after(BEGUN, (5.004,), dim=9).successes == 1
    fresh = replace(BEGUN, best=-math.inf)  # whatever was seen so far failed: any number is a success
    assert after(fresh, (-7.0,), dim=9, options=options).successes == 1


def test_a_region_may_keep_its_data_when_it_starts_over() -> None:
    options = TrustRegionOptions(base="ucb", keeps_data=True)
    small = replace(BEGUN, length=2**-7, start=0, seen=40, successes=0, failures=0)
    again = after(small, (1,), dim=1, options=options)
    assert again == replace(small, length=0.8, seen=41)
    assert again.begun
    place = box(n=4)
    method = tr_ucb(place, initial_length=0.01, failure_tolerance=1, keeps_data=True)
    history = told(method, place.history, 2, 0, offset=-1e3)
    assert method.region.start == 0
    assert method.region.length == 0.01
    proposal = ask(method, history, 1, 1)  # no points to begin with: there is a model of all data
    best = history.X[history.Y[:, 0].argmax()]
    assert proposal.predict is not None
    assert (proposal.X - best).abs().max() < 0.01 * 15


def test_points_that_a_region_begins_with_count_neither_way() -> None:
    fresh = Region(0.8, start=41, seen=41, design=4)
    region = after(fresh, (1, 2), (3, 0))
    assert (region.successes, region.failures, region.best, region.begun) == (0, 0, 3.0, True)
    assert after(region, (4, 0)).successes == 1


def test_behold_reads_the_region_off_the_history() -> None:
    history = History(torch.zeros(5, 1), column(9, 1, 3, 2, 0).unsqueeze(-1))
    first = observe(Region(0.8), history, 100)
    assert (first.best, first.seen, first.design, first.begun) == (9.0, 5, 5, True)
    later = observe(Region(0.8, start=1, design=2), history, 100)
    assert (later.best, later.design) == (3.0, 2)
    empty = observe(Region(0.8, start=5, design=2), history, 100)
    assert (empty.best, empty.begun) == (-math.inf, False)


def test_a_great_design_is_not_asked_for_again() -> None:
    """A run may begin with thousands of points that cost nothing; a new region's are asked for, and cost."""
    history = History(torch.zeros(50, 1), torch.arange(50.0).double().unsqueeze(-1))
    first = observe(Region(0.01), history, 4)
    assert (first.begun, first.design) == (True, 4)
    options = TrustRegionOptions(base={"name": "ucb"}, initial_length=0.01, failure_tolerance=1, largest_restart=4)
    fresh = advance(first, torch.tensor([-1.0]).double(), 1, options)
    assert (fresh.start, fresh.design, fresh.begun) == (51, 4, False)
    assert after(fresh, (0, 1), (0, 1)).begun


def test_box_sides_by_hand() -> None:
    bounds = torch.tensor([[-10.0, 0.0], [10.0, 100.0]], dtype=torch.float64)
    # Lengthscales 0.2 and 0.8 have geometric mean 0.4: weights 1/2 and 2, sides 0.05 and 0.2 of the domain's.
    found = region_box(column(0, 50), column(0.2, 0.8), 0.1, bounds)
    torch.testing.assert_close(found, torch.tensor([[-0.5, 40.0], [0.5, 60.0]], dtype=torch.float64))
    cut = region_box(column(9.9, 5), column(0.2, 0.8), 0.1, bounds)
    torch.testing.assert_close(cut, torch.tensor([[9.4, 0.0], [10.0, 15.0]], dtype=torch.float64))
    shared = region_box(column(0, 50), column(0.3), 0.1, bounds)
    torch.testing.assert_close(shared, torch.tensor([[-1.0, 45.0], [1.0, 55.0]], dtype=torch.float64))


def test_box_has_the_volume_of_a_cube_of_its_length() -> None:
    unit = torch.tensor([[0.0] * 5, [1.0] * 5], dtype=torch.float64)
    scales = torch.rand(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5
    low, high = region_box(torch.full((5,), 0.5, dtype=torch.float64), scales, 0.1, unit)
    assert (high - low).prod().item() == pytest.approx(0.1**5)


@pytest.mark.parametrize("priors", ["botorch", "conformal"])
@pytest.mark.parametrize("q", [1, 3])
def test_proposes_in_the_region_around_the_best_observation(q: int, priors: str) -> None:
    place = box(n=8)
    method = tr_ucb(place, initial_length=0.1, model={"priors": priors})
    proposal = ask(method, place.history, q)
    scales = method.steps.fit(place.history).lengthscale
    best = place.history.X[place.history.Y[:, 0].argmax()]
    assert scales.shape == (2,)
    region = region_box(best, scales, 0.1, BOX)
    assert inside(proposal.X, region).all()
    assert proposal.notes == {"region_length": 0.1}
    values = proposal.acquisition(torch.cat([best.unsqueeze(0), BOX]))
    assert torch.isfinite(values[0])
    assert (values[1:] == -torch.inf).all()  # the domain's corners are far from the region


@pytest.mark.parametrize("q", [1, 3])
def test_a_search_around_the_incumbent_stays_in_the_region(q: int) -> None:
    place = box(n=8)
    method = tr_ucb(place, initial_length=0.1, search={**QUICK["search"], "around_incumbent": {"share": 0.5}})
    region = region_box(
        place.history.X[place.history.Y[:, 0].argmax()], method.steps.fit(place.history).lengthscale, 0.1, BOX
    )
    ends = ask(method, place.history, q).ends
    assert inside(ends.flatten(0, 1), region).all()


def test_in_a_great_region_it_is_ucb() -> None:
    place = table()
    options = {"initial_length": 100.0, "max_length": 100.0, "alpha": "1/sqrt(n)"}
    plain = ask(build_method("ucb", {**QUICK, "alpha": "1/sqrt(n)"}, place.domain), place.history, 1)
    assert torch.equal(ask(tr_ucb(place, **options), place.history, 1).X, plain.X)


def test_of_a_table_the_rows_in_the_region_are_taken_if_they_are_enough() -> None:
    X = torch.linspace(0, 1, 101, dtype=torch.float64).unsqueeze(-1)
    domain = Domain(Table(column(0, 1).unsqueeze(-1), X))
    seen = X[[0, 30, 60, 100]]
    history = History(seen, -(seen - 0.58).square())
    near = ask(tr_ucb(Situation(domain, history), initial_length=0.1), history, 3).X
    assert ((near - 0.6).abs() <= 0.05 + 1e-12).all()
    wide = ask(tr_ucb(Situation(domain, history), initial_length=0.015), history, 1)
    assert (wide.X - 0.6).abs().item() > 0.0075  # no row but the centre is inside: all are looked at
    assert torch.isfinite(wide.acquisition(X)).all()


def told(method: Method, history: History, q: int, seed: int, offset: float = 0.0) -> History:
    X = ask(method, history, q, seed).X
    Y = objective(X) + offset
    method.tell(X, Y)
    return history.join(X, Y)


def test_restarts_with_a_design_and_forgets() -> None:
    place = box(n=4)
    method = tr_ucb(place, initial_length=0.01, failure_tolerance=1)
    history = told(method, place.history, 2, 0, offset=-1e3)  # a failure: 0.005 is below the least length
    assert method.region == Region(0.01, start=6, seen=6, design=4)
    for seed in (1, 2):
        proposal = ask(method, history, 2, seed)
        assert proposal.predict is None
        assert proposal.acquisition is None
        history = told(method, history, 2, seed, offset=-2e3)
    assert len(torch.unique(history.X, dim=0)) == 10
    assert method.region.begun
    proposal = ask(method, history, 2, 3)
    own = History(history.X[6:], history.Y[6:])
    assert proposal.predict(own.X).mean.mean() == pytest.approx(own.Y.mean().item(), abs=50)
    centre = own.X[own.Y[:, 0].argmax()]  # worse than anything before the restart
    assert (proposal.X - centre).abs().max() < 0.01 * 15
    method.tell(proposal.X, own.Y.max().expand(2, 1) + 1)
    assert method.region.successes == 1  # though 2,000 below the best of all


def test_restarts_in_a_table_too() -> None:
    place = table(size=30, seen=4)
    method = tr_ucb(place, initial_length=0.01, failure_tolerance=1)
    history = told(method, place.history, 2, 0, offset=-1e3)
    for seed in range(1, 5):
        history = told(method, history, 2, seed, offset=-1e3)
    assert len(torch.unique(history.X, dim=0)) == len(history) == 14


def test_resumed_equals_uninterrupted() -> None:
    place = box(n=3)
    options = {"initial_length": 0.02, "failure_tolerance": 1}
    whole = tr_ucb(place, **options)
    history = place.history
    resumed = tr_ucb(place, **options)
    lengths = []
    for seed in range(9):
        again = ask(resumed, history, 1, seed).X
        X = ask(whole, history, 1, seed).X
        assert torch.equal(X, again)
        Y = objective(X) + (50.0 if seed % 5 == 1 else -50.0 * seed)
        whole.tell(X, Y)
        history = history.join(X, Y)
        lengths.append(whole.region.length)
        file = io.BytesIO()
        torch.save(whole.state_dict(), file)
        file.seek(0)
        resumed = tr_ucb(place, **options)
        resumed.load_state_dict(torch.load(file, weights_only=True))
        assert resumed.region == whole.region
    assert min(lengths) < 0.02  # it shrank
    assert whole.region.start > 3  # and started over


def test_initial_points_that_are_told_change_nothing() -> None:
    place = box()
    method = tr_ucb(place)
    before = method.region
    method.tell(rows(2, 4), objective(rows(2, 4)))
    assert method.region == before


def test_lengths_are_checked() -> None:
    with pytest.raises(PlumblineError, match="min_length <= initial_length <= max_length"):
        tr_ucb(box(), initial_length=2.0)
