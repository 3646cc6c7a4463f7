"""LOCBO and OCBO: what they remember, what they ask, and what they do when things go wrong."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from situations import BOX, QUICK, ask, box, objective, rows

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.methods.composed import Round
from plumbline.methods.localised.forecasts import LocalisedPredictive
from plumbline.methods.localised.online import OnlineAcquisition, OnlineMethod
from plumbline.methods.localised.posterior import CalibratedPosterior
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.models.gp.process import GP

LOCAL = {"kappa": 2.0, "lengthscale": 4.0, "eta0": 0.05}


def make(name: str = "locbo", domain: Domain | None = None, **options: Any) -> OnlineMethod:
    method = build_method(name, QUICK | options, domain or box().domain)
    assert isinstance(method, OnlineMethod)
    return method


def told(method: OnlineMethod, history: History, rounds: int = 3, q: int = 1, far: bool = True) -> History:
    """Go through rounds in which every observation lies far outside of (or at the middle of) its set."""
    for i in range(rounds):
        proposal = ask(method, history, q, seed=i)
        mean = proposal.predict(proposal.X).mean  # type: ignore[misc]
        Y = (mean + (1e4 if far else 0.0)).unsqueeze(-1)
        method.tell(proposal.X, Y)
        history = history.join(proposal.X, objective(proposal.X))
    return history


class TestThreshold:
    def test_starts_at_alpha_and_lets_the_initial_design_be(self) -> None:
        method = make(alpha=0.3)
        method.tell(rows(3, 1), objective(rows(3, 1)))
        assert method.threshold.constants.tolist() == [0.3]
        assert len(method.threshold.centres) == 0

    def test_falls_where_observations_are_missed(self) -> None:
        method = make(alpha=0.2, online=LOCAL)
        told(method, box().history, rounds=2)
        eta = [0.05 * t**-0.05 for t in (1, 2)]
        assert method.threshold.constants.item() == pytest.approx(0.2 - 0.8 * sum(eta))
        assert len(method.threshold.centres) == 2

    def test_rises_where_they_are_not(self) -> None:
        method = make(alpha=0.2, online=LOCAL)
        told(method, box().history, rounds=1, far=False)
        assert method.threshold.constants.item() == pytest.approx(0.2 + 0.2 * 0.05)

    def test_a_batch_updates_in_order_and_is_judged_by_what_it_was_promised(self) -> None:
        method = make(alpha=0.2, online=LOCAL)
        told(method, box().history, rounds=1, q=3)
        assert len(method.threshold.centres) == 3
        eta = [0.05 * t**-0.05 for t in (1, 2, 3)]
        assert method.threshold.constants.item() == pytest.approx(0.2 - 0.8 * sum(eta))

    def test_its_kernel_can_be_measured_in_sides_of_the_box(self) -> None:
        cube = make(units="cube", online=LOCAL | {"lengthscale": 0.5})
        X = rows(4, 3)
        low, high = BOX
        assert torch.equal(cube.located(X), (X - low) / (high - low))
        assert torch.equal(make().located(X), X)

    @pytest.mark.parametrize(("name", "options"), [("locbo", {"alpha": 0.2}), ("ocbo", {"levels": 3})])
    def test_a_resumed_method_goes_on_where_it_was(self, name: str, options: dict[str, Any]) -> None:
        whole, first = make(name, online=LOCAL, **options), make(name, online=LOCAL, **options)
        history = told(whole, box().history, rounds=2)
        told(first, box().history, rounds=2)
        resumed = make(name, online=LOCAL, **options)
        resumed.load_state_dict(first.state_dict())
        assert torch.equal(ask(resumed, history, 1, seed=9).X, ask(whole, history, 1, seed=9).X)


class TestRecalibrator:
    def test_starts_as_the_model_and_moves_each_level_by_its_own_event(self) -> None:
        method = make("ocbo", levels=3, online={"eta0": 0.05})
        assert method.threshold.constants.tolist() == [0.25, 0.5, 0.75]
        told(method, box().history, rounds=1)  # above every quantile: no event happens
        assert method.threshold.constants.tolist() == pytest.approx([0.25 * 1.05, 0.5 * 1.05, 0.75 * 1.05])

    def test_moves_where_it_looked_if_localised(self) -> None:
        method = make("ocbo", levels=3, online={"eta0": 0.05, "kappa": 2.0, "lengthscale": 0.5})
        told(method, box().history, rounds=1)
        here = method.thresholds_at(method.threshold.centres)
        away = method.thresholds_at(method.threshold.centres + 100)
        assert (here > away).all()

    def test_is_the_model_before_any_round(self) -> None:
        place = box()
        ocbo, plain = (
            build_method(name, QUICK | {"model": {"priors": "none", "ard": False}}, place.domain).predictor(
                place.history
            )
            for name in ("ocbo", "ei")
        )
        X, y = rows(5, 7), objective(rows(5, 7)).squeeze(-1)
        torch.testing.assert_close(ocbo(X).cdf(y), plain(X).cdf(y), atol=1e-5, rtol=1e-4)  # type: ignore[misc, union-attr]


class TestWhenThingsGoWrong:
    def test_an_infinite_observation_is_refused(self) -> None:
        method = make()
        X = ask(method, box().history, 1).X
        with pytest.raises(PlumblineError, match="must be finite"):
            method.tell(X, torch.full((1, 1), math.inf, dtype=torch.float64))

    def test_an_evaluation_that_failed_moves_nothing(self) -> None:
        method = make(online=LOCAL)
        X = ask(method, box().history, 2).X
        method.tell(X, torch.tensor([[math.nan], [1e4]], dtype=torch.float64))
        assert len(method.threshold.centres) == 1

    def test_a_learning_rate_beyond_lemma_1_is_refused_before_any_round(self) -> None:
        with pytest.raises(PlumblineError, match="Lemma 1"):
            make(online={"eta0": 300.0, "forgetting": 0.01})

    @pytest.mark.parametrize("far", [True, False])
    def test_thresholds_that_leave_their_range_are_clipped_and_told_of(self, *, far: bool) -> None:
        """Below 0 and above 1: posteriors of sets of 4.9 standard deviations, and of the mean alone."""
        method = make(alpha=0.5, online={"eta0": 2.0, "kappa": 3.0, "lengthscale": math.inf})
        history = told(method, box().history, rounds=1, far=far)
        proposal = ask(method, history, 1)
        assert proposal.notes["clipped_thresholds"] == 1.0
        assert proposal.notes["threshold"] == (1e-6 if far else 1.0)
        assert torch.isfinite(proposal.acquisition(rows(9, 4))).all()  # type: ignore[misc]
        forecast = proposal.predict(proposal.X)  # type: ignore[misc]
        width = forecast.width(0.5) / forecast.model_sd  # type: ignore[attr-defined]
        assert width.item() == pytest.approx(2 * 4.8916 if far else 0.0, abs=1e-3)

    def test_sets_without_length_are_missed_by_all_but_their_middle(self) -> None:
        method = make(alpha=0.5, online={"eta0": 2.0})
        told(method, box().history, rounds=1, far=False)
        assert method.threshold.unclipped(rows(1, 0)).item() > 1
        forecast = method.predictor(box().history)(rows(4, 9))
        assert forecast.width(0.5).tolist() == [0.0] * 4
        assert forecast.covers(objective(rows(4, 9)).squeeze(-1), 0.5).tolist() == [0.0] * 4

    def test_noise_at_its_floor_leaves_the_label_for_the_function(self) -> None:
        """A gain next to one: `f` is the label, and nothing divides by zero."""
        one = torch.ones(3, dtype=torch.float64)
        posterior = CalibratedPosterior(0 * one, one, 1e-12 * one, 0.2 * one, 0.2)
        values = posterior.expected_improvement(torch.tensor(0.5, dtype=torch.float64))
        label = LocalisedPredictive(0 * one, one, 0.2 * one, 0.2)
        u = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
        gain = (label.quantile(u.unsqueeze(-1).expand(-1, 3)) - 0.5).clamp_min(0).mean(dim=0)
        torch.testing.assert_close(values, gain, rtol=1e-4, atol=1e-6)

    def test_two_data_are_enough(self) -> None:
        X = rows(2, 0)
        proposal = ask(make(), History(X, objective(X)), 1)
        assert torch.isfinite(proposal.X).all()


class TestLemmas:
    def test_their_numbers_are_noted_each_round(self) -> None:
        method = make(alpha=0.2, online=LOCAL)
        history = told(method, box().history, rounds=2)
        notes = ask(method, history, 1).notes
        assert notes["bound_kappa"] == 2.0
        assert notes["bound_y"] == pytest.approx(0.2 + notes["bound_beta"] / 3**0.5 + 2.0)
        assert notes["bound_f"] == pytest.approx(2 * notes["bound_y"])
        assert notes["bound_diameter"] == pytest.approx(float(BOX.abs().amax(dim=0).norm()))


class TestScripts:
    """What the published scripts do otherwise; the formulas are in test_as_published.py."""

    DEPARTURES = (
        {"tails": "as-coded"},
        {"inside": "as-coded"},
        {"integral": "redrawn"},
        {"label_mean": "zero"},
        {"online": LOCAL | {"counted_from": 9}},
        {"incumbent": "queries"},
        {"model": {"priors": "botorch-0.9", "inputs": "raw"}},
        {"refit_every": 10},
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("departure", DEPARTURES, ids=str)
    @pytest.mark.parametrize("q", [1, 2])
    def test_each_is_a_method_of_its_own(self, departure: dict[str, Any], q: int) -> None:
        values = []
        for options in ({}, departure):
            method = make(**({"online": LOCAL} | options))
            history = told(method, box().history, rounds=2)
            values.append(ask(method, history, q).acquisition(rows(6, 5)))  # type: ignore[misc]
        assert torch.isfinite(values[1]).all()
        assert not torch.allclose(values[0], values[1], rtol=1e-6)

    @pytest.mark.parametrize("extremes", ["ackley-script", "radio-script"])
    def test_rules_of_extreme_thresholds_leave_others_alone(self, extremes: str) -> None:
        values = [ask(make(extremes=rule), box().history, 1).acquisition(rows(6, 5)) for rule in ("clipped", extremes)]  # type: ignore[misc]
        torch.testing.assert_close(values[0], values[1])

    def test_the_first_incumbent_of_queries_is_far_below_all(self) -> None:
        method, place = make(incumbent="queries"), box()
        history = place.history
        process = method.fit(history)
        round = method.start_round(history, 1, torch.Generator())
        assert method.incumbent(process, round).item() == -100.0
        asked = history.join(rows(2, 7), objective(rows(2, 7)))
        process = method.fit(asked)
        round = method.start_round(asked, 1, torch.Generator())
        expected = (objective(rows(2, 7)).max() - asked.Y.mean()) / asked.Y.std()
        assert method.incumbent(process, round).item() == pytest.approx(expected.item())

    def utility(self, **options: Any) -> tuple[GP, OnlineAcquisition]:
        method, history = make(**options), box().history
        process = method.fit(history)
        return process, method.utility(process, method.start_round(history, 1, torch.Generator()))

    def test_labels_regress_to_what_the_data_say_of_a_zero_mean(self) -> None:
        """The scripts multiply standardised observations by what a new label leaves them of their weights."""
        process, utility = self.utility(label_mean="zero")
        X = rows(4, 9)
        assert utility.other is not None
        found, other = process.marginal_posterior(X), utility.other.marginal_posterior(X)
        gain = found.spread.square() / (found.spread.square() + process.noise)
        U = process.standardisation.inputs(X)
        for i, u in enumerate(U):
            everything = torch.cat([process.U, u.unsqueeze(0)])
            K = process.prior(everything, everything) + process.noise * torch.eye(len(everything))
            weights = process.prior(u.unsqueeze(0), everything) @ torch.linalg.inv(K)
            assert gain[i].item() == pytest.approx(weights[0, -1].item(), rel=1e-6)
            left = (1 - gain[i]) * other.location[i]
            assert left.item() == pytest.approx((weights[0, :-1] @ process.y).item(), rel=1e-5)

    @pytest.mark.parametrize("tails", ["equation-29", "as-coded"])
    def test_their_gradients_are_differences(self, tails: str) -> None:
        _, utility = self.utility(label_mean="zero", tails=tails)
        X = rows(3, 12)
        _, gradient = utility.value_and_gradient(X.unsqueeze(1))
        for j in range(2):
            step = torch.zeros(2).double()
            step[j] = 1e-5
            ends = [utility.values((X + side * step).unsqueeze(1)) for side in (1, -1)]
            torch.testing.assert_close(gradient[:, 0, j], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-8)

    def test_draws_come_from_the_round_alone(self) -> None:
        points = [ask(make(integral="redrawn"), box().history, 1, seed=seed).X for seed in (1, 1, 2)]
        assert torch.equal(points[0], points[1])
        assert not torch.equal(points[0], points[2])

    def test_misses_are_counted_as_they_are_judged(self) -> None:
        method, history = make(online=LOCAL), box().history
        assert "counted_misses" not in ask(method, history, 1).notes
        history = told(method, history, rounds=2, far=True)
        history = told(method, history, rounds=2, far=False)
        assert ask(method, history, 1).notes["counted_misses"] == 0.5

    def test_an_unknown_departure_is_refused(self) -> None:
        with pytest.raises(PlumblineError, match="tails"):
            make(tails="no-such-thing")


class TestExtremeThresholds:
    """Beyond 0 and 1: what is judged, by the letter of eq. 24 or as the radio script has it."""

    def extreme(self, threshold: float, **options: Any) -> OnlineMethod:
        method = make(alpha=0.5, online={"eta0": 0.1}, **options)
        method.threshold = replace(method.threshold, constants=torch.tensor([threshold], dtype=torch.float64))
        return method

    def missed(self, threshold: float, z: float, **options: Any) -> bool:
        """Return whether an observation so many standard deviations from the mean is found to be missed."""
        method = self.extreme(threshold, **options)
        proposal = ask(method, box().history, 1)
        forecast = proposal.predict(proposal.X)  # type: ignore[misc]
        method.tell(proposal.X, (forecast.mean + z * forecast.model_sd).unsqueeze(-1))  # type: ignore[attr-defined, union-attr]
        step = float(method.threshold.constants) - threshold
        assert step == pytest.approx(-0.05) or step == pytest.approx(0.05)
        return step < 0

    @pytest.mark.parametrize("extremes", ["clipped", "ackley-script", "radio-script"])
    def test_from_zero_down_nothing_is_missed(self, extremes: str) -> None:
        assert not self.missed(0.0, 30.0, extremes=extremes)
        assert not self.missed(-0.3, -30.0, extremes=extremes)

    @pytest.mark.parametrize("extremes", ["clipped", "ackley-script"])
    def test_above_one_everything_is(self, extremes: str) -> None:
        assert self.missed(1.2, 0.0, extremes=extremes)
        assert self.missed(1.2, 0.5, extremes=extremes)

    def test_the_radio_script_swaps_the_ends_back(self) -> None:
        """The set of a threshold of 1.2 is that of .8: a quarter of a standard deviation to either side."""
        assert not self.missed(1.2, 0.25, extremes="radio-script")
        assert self.missed(1.2, 0.26, extremes="radio-script")

    def test_a_threshold_that_never_learns_stays(self) -> None:
        method = make(alpha=0.3, online=LOCAL | {"eta0": 0.0})
        history = told(method, box().history, rounds=3)
        assert method.thresholds_at(rows(4, 2)).unique().tolist() == [0.3]
        assert {"bound_y", "counted_misses"}.isdisjoint(ask(method, history, 1).notes)


@pytest.mark.parametrize("units", ["problem", "cube"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("locbo", {}),
        ("locbo", {"tails": "as-coded", "extremes": "radio-script", "label_mean": "zero"}),
        ("locbo-ucb", {}),
        ("ocbo", {"levels": 3}),
    ],
    ids=["locbo", "scripted", "locbo-ucb", "ocbo"],
)
def test_gradients_of_utilities_are_those_of_finite_differences(name: str, options: dict[str, Any], units: str) -> None:
    place = box()
    lengthscale = 4.0 if units == "problem" else 0.5
    method = make(name, online=LOCAL | {"lengthscale": lengthscale}, units=units, **options)
    history = told(method, place.history, rounds=2)
    round = Round(history, history, place.domain.space, 1, torch.Generator().manual_seed(0))
    utility = method.utility(method.fit(history), round)
    X = rows(4, 3).unsqueeze(1)
    values, found = utility.value_and_gradient(X)
    torch.testing.assert_close(utility.values(X), values)
    step = 1e-5 * torch.eye(X.shape[-1], dtype=X.dtype)
    expected = torch.stack([(utility.values(X + h) - utility.values(X - h)) / 2e-5 for h in step], dim=-1).unsqueeze(1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)


def test_a_believer_expects_no_less_and_is_surer() -> None:
    place = box()
    process = fit_process(place.history.X, place.history.Y, BOX, ModelOptions())
    x, elsewhere = rows(1, 8), rows(5, 9)
    (before, unsure), (after, surer) = process.posterior_moments(x), process.kriging_believer(x).posterior_moments(x)
    torch.testing.assert_close(after, before, rtol=1e-8, atol=1e-8)
    assert (surer < unsure).all()
    torch.testing.assert_close(
        process.kriging_believer(x).posterior_moments(elsewhere)[0],
        process.posterior_moments(elsewhere)[0],
        rtol=1e-8,
        atol=1e-8,
    )
