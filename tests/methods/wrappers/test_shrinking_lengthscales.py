import math

import pytest
import torch
from adaptation_cases import check_resumed, constant, with_queries
from situations import BOX, QUICK, QUICK_CONFORMAL, Situation, ask, box, rows

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import build_method
from plumbline.methods.wrappers.shrinking_lengthscales import NormBound, ShrinkingMethod, information
from plumbline.methods.wrappers.trust_region import region_box
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.likelihood import Hyperparameters
from plumbline.models.gp.process import conditioned
from plumbline.spaces.search import inside


def shrinking(place: Situation, base: str = "ucb", base_options: dict | None = None, **own) -> ShrinkingMethod:
    given = {"name": base, "options": QUICK if base_options is None else base_options}
    method = build_method("shrinking-lengthscales", {"base": given, **own}, place.domain)
    assert isinstance(method, ShrinkingMethod)
    return method


def plain(place: Situation) -> torch.Tensor:
    return fit_process(place.history.X, place.history.Y, BOX, ModelOptions()).lengthscale


@pytest.mark.parametrize(("power", "queries", "divisor"), [(None, 15, 16 ** (1 / 8)), (0.5, 3, 2.0), (1.0, 7, 8.0)])
def test_lengthscales_are_the_estimates_divided_by_a_power_of_the_round(
    power: float | None, queries: int, divisor: float
) -> None:
    place = with_queries(box(n=20), queries)
    method = shrinking(place, power=power)
    proposal = ask(method, place.history, 1)
    assert proposal.notes == {"lengthscale_divisor": pytest.approx(divisor)}
    found = method.fit(place.history)
    torch.testing.assert_close(found.lengthscale, plain(place) / divisor)
    points = rows(4, 3)
    by_hand = conditioned(
        place.history.X, place.history.Y, BOX, "matern52", found.at._replace(lengthscale=plain(place) / divisor)
    )
    torch.testing.assert_close(proposal.predict(points).mean, by_hand.posterior_moments(points, joint=False)[0])
    torch.testing.assert_close(method.predictor(place.history)(points).sd, proposal.predict(points).sd)


@pytest.mark.parametrize("base", ["ucb", "ei", "ts", "nei", "kg"])
def test_in_the_first_round_it_is_the_base(base: str) -> None:
    place = box()
    proposal = ask(shrinking(place, base), place.history, 1)
    assert torch.equal(proposal.X, ask(build_method(base, QUICK, place.domain), place.history, 1).X)
    assert proposal.notes["lengthscale_divisor"] == 1.0


@pytest.mark.parametrize(
    ("base", "options", "outcomes"), [("cei", QUICK_CONFORMAL, 1), ("locbo", QUICK, 1), ("ehvi", QUICK, 2)]
)
def test_every_outcome_and_every_method_with_exact_processes(base: str, options: dict, outcomes: int) -> None:
    place = with_queries(box(n=10, outcomes=outcomes), 4)
    method = shrinking(place, base, options, power=0.5)
    inner, outer = method.base.fit(place.history), method.fit(place.history)
    if outcomes == 1 and base == "locbo":
        inner, outer = [inner], [outer]
    assert len(outer) == outcomes
    for one, other in zip(inner, outer, strict=True):
        torch.testing.assert_close(other.lengthscale, one.lengthscale / 5**0.5)
    assert torch.isfinite(ask(method, place.history, 1).X).all()


def test_in_a_trust_region_all_rounds_count() -> None:
    place = with_queries(box(n=9), 3)
    inner = {"name": "shrinking-lengthscales", "options": {"base": {"name": "ei", "options": QUICK}, "power": 1.0}}
    method = build_method("trust-region", {"base": inner}, place.domain)
    ask(method, place.history, 1)
    method.region = type(method.region)(0.8, start=4, seen=9, design=4)
    proposal = ask(method, place.history, 1)
    assert proposal.notes["lengthscale_divisor"] == 4.0


def test_around_a_kernel_that_is_selected() -> None:
    place = with_queries(box(n=9), 3)
    method = shrinking(place, "kernel-selection", {"base": {"name": "ei", "options": QUICK}}, power=1.0)
    assert set(ask(method, place.history, 1).notes) == {"kernel", "lengthscale_divisor"}


def test_information_is_that_of_a_gaussian() -> None:
    place = box(n=6)
    at = Hyperparameters(0.3, BOX.new_tensor([0.1]), 1.7, BOX.new_tensor([0.2, 0.4]))
    process = conditioned(place.history.X, place.history.Y, BOX, "matern32", at)
    K = process.prior(process.U, process.U)
    expected = 0.5 * torch.logdet(torch.eye(6).double() + K / 0.1)
    assert information(process) == pytest.approx(float(expected))


def test_the_bound_grows_with_the_norm_as_we_remember_the_paper() -> None:
    """That the norm grows as g(t)^d is from memory: `docs/methods/adaptive.md`."""
    at = Hyperparameters(0.3, BOX.new_tensor([0.08]), 2.0, BOX.new_tensor([0.2, 0.4]))
    process = conditioned(*(box().history.X, box().history.Y), BOX, "rbf", at)
    found = NormBound(initial=3.0, power=0.5, delta=0.05).sqrt_beta(process, 4, divisor=1.5)
    expected = 2 * 1.5**2 * 3 + 4 * 0.2 * math.sqrt(information(process) + 1 + math.log(20))
    assert found == pytest.approx(expected)


def test_the_utility_is_the_bound_of_the_norm() -> None:
    place = with_queries(box(n=9), 3)
    method = shrinking(place, norm={"initial": 1.5}, base_options={**QUICK, "schedule": {}})
    proposal = ask(method, place.history, 1)
    process = method.fit(place.history)
    sqrt_beta = NormBound(initial=1.5).sqrt_beta(process, 4, 4 ** (1 / 8))
    assert proposal.notes == {"lengthscale_divisor": 4 ** (1 / 8), "sqrt_beta": pytest.approx(sqrt_beta)}
    points = rows(5, 3)
    mean, variance = process.posterior_moments(points, joint=False)
    torch.testing.assert_close(proposal.acquisition(points), mean + sqrt_beta * variance.sqrt())


@pytest.mark.parametrize("norm", [None, {}])
def test_resumed_equals_uninterrupted(norm: dict | None) -> None:
    place = box(n=4)
    notes = check_resumed(lambda: shrinking(place, norm=norm), place)
    divisors = [one["lengthscale_divisor"] for one in notes]
    assert divisors == sorted(divisors)
    assert divisors[-1] == pytest.approx(6 ** (1 / 8))


@pytest.mark.parametrize("norm", [None, {}])
@pytest.mark.parametrize("place", [box(n=1), constant()], ids=["one", "constant"])
def test_a_single_observation_and_a_constant_objective(place: Situation, norm: dict | None) -> None:
    place = with_queries(place, len(place.history) - 1)
    proposal = ask(shrinking(place, norm=norm, power=1.0), place.history, 1)
    assert torch.isfinite(proposal.X).all()
    assert torch.isfinite(proposal.predict(place.history.X).mean).all()


def test_a_batch_counts_evaluations() -> None:
    place = with_queries(box(n=10), 6)
    assert ask(shrinking(place, power=1.0), place.history, 3).notes == {"lengthscale_divisor": 7.0}


@pytest.mark.parametrize("base", ["sobol", "elbo-ei", "penalised-ei", "offline"])
def test_methods_without_gps_are_refused_by_name(base: str) -> None:
    with pytest.raises(PlumblineError, match=rf"base '{base}' does not provide '.*' .*: use .*\bucb\b") as caught:
        shrinking(box(), base)
    assert "\n" not in str(caught.value)


def test_around_a_trust_region_both_do_their_part() -> None:
    place = with_queries(box(n=12), 3)
    inner = {"base": {"name": "ucb", "options": QUICK}, "initial_length": 0.1}
    method = shrinking(place, "trust-region", inner, power=0.5)
    proposal = ask(method, place.history, 1)
    assert proposal.notes == {"lengthscale_divisor": 2.0, "region_length": 0.1}
    found = method.fit(place.history)
    torch.testing.assert_close(found.lengthscale, plain(place) / 2)
    best = place.history.X[place.history.Y[:, 0].argmax()]
    assert inside(proposal.X, region_box(best, found.lengthscale, 0.1, BOX)).all()


def test_a_norm_is_for_confidence_bounds() -> None:
    with pytest.raises(PlumblineError, match="norm: it is for the base 'ucb', and 'ei' has no such confidence bound"):
        shrinking(box(), "ei", norm={})


def test_history_says_which_round_it_is() -> None:
    place = box(n=5)
    later = History(place.history.X, place.history.Y, 2)
    assert shrinking(place, power=1.0).fit(later).lengthscale.tolist() == (plain(place) / 4).tolist()
