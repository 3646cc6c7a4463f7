"""The radio problem against loops over its links, closed forms, and chance."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import exp1
from torch import Tensor

import plumbline.problems.radio as module
from plumbline.core.errors import PlumblineError
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem, problem_of
from plumbline.problems.evaluation import observe
from plumbline.problems.radio import (
    AIR,
    BORESIGHTS,
    CORRIDORS,
    GROUND,
    MAST,
    NOISE,
    SITES,
    Layout,
    Links,
    Radio,
    RadioOptions,
    antenna_gain,
    make_layout,
    make_links,
    mean_rates,
    milliwatts,
    path_loss_ground,
    path_loss_uav,
    rates,
    received_power,
)
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.box import Box, uniform
from plumbline.trials import run_trial


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def radio(**options: Any) -> Radio:
    return Radio(RadioOptions(**options))


def points(n: int, seed: int = 0) -> Tensor:
    return uniform(RADIO.bounds, n, stream(seed))


RADIO = radio()


class TestDecibels:
    def test_milliwatts(self) -> None:
        assert milliwatts(vector(0.0, 30.0, 46.0, -100.0)).tolist() == pytest.approx([1.0, 1e3, 39810.717, 1e-10])

    def test_path_losses_at_a_hundred_metres(self) -> None:
        assert path_loss_ground(vector(100.0)).item() == pytest.approx(97.7206, abs=1e-4)
        assert path_loss_uav(vector(100.0)).item() == pytest.approx(78.0206, abs=1e-4)

    @pytest.mark.parametrize(("loss", "slope"), [(path_loss_ground, 39.08), (path_loss_uav, 22.0)])
    @given(distance=st.floats(1.0, 1e4), factor=st.floats(1.01, 100.0))
    def test_loss_grows_by_so_much_a_decade(
        self, loss: Callable[[Tensor], Tensor], slope: float, distance: float, factor: float
    ) -> None:
        near, far = loss(vector(distance, distance * factor)).tolist()
        assert far - near == pytest.approx(slope * math.log10(factor), rel=1e-6)


class TestAntenna:
    @pytest.mark.parametrize(
        ("tilt", "elevation", "azimuth", "gain"),
        [
            (0.0, 0.0, 0.0, 8.0),
            (5.0, 0.0, 0.0, 5.0),  # half a beamwidth off: three decibels
            (0.0, 0.0, 32.5, 5.0),
            (20.0, 30.0, 65.0, -16.0),
            (0.0, 40.0, 0.0, -30.0),
            (0.0, 0.0, 180.0, -30.0),
        ],
    )
    def test_gain_by_hand(self, tilt: float, elevation: float, azimuth: float, gain: float) -> None:
        assert antenna_gain(vector(tilt), vector(elevation), vector(azimuth)).item() == pytest.approx(gain)

    @given(st.floats(-90, 90), st.floats(-90, 90), st.floats(-180, 180))
    def test_it_is_the_same_on_both_sides_of_its_axis_and_never_more_than_along_it(
        self, tilt: float, elevation: float, azimuth: float
    ) -> None:
        gain = antenna_gain(vector(tilt), vector(elevation), vector(azimuth))
        assert -30.0 <= gain.item() <= 8.0
        assert torch.equal(gain, antenna_gain(vector(tilt), vector(elevation), vector(-azimuth)))
        assert torch.equal(gain, antenna_gain(vector(-tilt), vector(-elevation), vector(azimuth)))


class TestLayout:
    def test_nine_sectors_on_three_masts(self) -> None:
        layout = make_layout(stream(0))
        for i, (x, y) in enumerate(SITES):
            for j, azimuth in enumerate(BORESIGHTS):
                at = (x + math.cos(math.radians(azimuth)), y + math.sin(math.radians(azimuth)))
                assert layout.sectors[3 * i + j].tolist() == pytest.approx(at, abs=1e-12)
                assert layout.boresights[3 * i + j].item() == azimuth

    def test_four_users_in_each_sector_uniform_over_its_part_of_the_ring(self) -> None:
        layouts = [make_layout(stream(seed)) for seed in range(200)]
        away = torch.cat([(x.ground.reshape(9, 4, 2) - x.sectors.unsqueeze(1)).transpose(0, 1) for x in layouts])
        radius = away.norm(dim=-1)
        off = (torch.atan2(away[..., 1], away[..., 0]).rad2deg() - vector(*BORESIGHTS * 3) + 180) % 360 - 180
        assert radius.min() >= 10.0 - 1e-9
        assert radius.max() <= 120.0 + 1e-9
        assert off.abs().max() <= 60.0 + 1e-9
        for share in ((radius**2 - 100) / 14300, (off + 60) / 120):
            quantiles = share.flatten().quantile(vector(0.1, 0.5, 0.9)).tolist()
            assert quantiles == pytest.approx([0.1, 0.5, 0.9], abs=0.02)

    def test_seven_uavs_on_the_diagonal_of_each_corridor(self) -> None:
        uavs = make_layout(stream(0)).uavs.reshape(4, 7, 2)
        for (x, y), line in zip(CORRIDORS, uavs, strict=True):
            assert line[0].tolist() == [x[0], y[0]]
            assert line[-1].tolist() == [x[1], y[1]]
            torch.testing.assert_close(line.diff(dim=0), line.diff(dim=0)[:1].expand(6, 2))

    def test_links_by_hand(self) -> None:
        """A sector that looks along the second axis, a user 100 m to its right, and a UAV 125 m behind it."""
        layout = Layout(
            sectors=vector(0.0, 0.0).unsqueeze(0),
            boresights=vector(90.0),
            ground=vector(100.0, 0.0).unsqueeze(0),
            uavs=vector(0.0, -125.0).unsqueeze(0),
        )
        links = make_links(layout)
        assert links.ground == 1
        assert links.elevation.flatten().tolist() == pytest.approx([-math.degrees(math.atan(0.235)), 45.0])
        assert links.azimuth.flatten().tolist() == pytest.approx([-90.0, -180.0])
        far = [path_loss_ground(vector(math.hypot(100, 23.5))), path_loss_uav(vector(125 * math.sqrt(2)))]
        assert links.loss.flatten().tolist() == pytest.approx([loss.item() for loss in far])


def slow_rates(problem: Radio, x: list[float], fading: Tensor) -> list[float]:
    """Return equation (42) for every user, a loop over links and nothing shared with the code it checks."""
    layout = problem.layout
    users = [(*at, GROUND) for at in layout.ground.tolist()] + [(*at, AIR) for at in layout.uavs.tolist()]
    found = []
    for k, (x1, x2, height) in enumerate(users):
        mean = []
        for b in range(9):
            s1, s2 = layout.sectors[b].tolist()
            flat = math.hypot(x1 - s1, x2 - s2)
            distance = math.hypot(flat, height - MAST)
            if height == AIR:
                loss = 28.0 + 22.0 * math.log10(distance) + 20 * math.log10(2)
            else:
                loss = 13.54 + 39.08 * math.log10(distance) + 20 * math.log10(2)
            axis = (math.cos(math.radians(BORESIGHTS[b % 3])), math.sin(math.radians(BORESIGHTS[b % 3])))
            cosine = (axis[0] * (x1 - s1) + axis[1] * (x2 - s2)) / flat
            azimuth = math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
            elevation = math.degrees(math.atan((height - MAST) / flat))
            gain = 8 - 12 * ((x[9 + b] - elevation) / 10) ** 2 - 12 * (azimuth / 65) ** 2
            mean.append(10 ** ((x[b] + min(8.0, max(-30.0, gain)) - loss) / 10))
        best = mean.index(max(mean))
        faded = [power * fading[k, b].item() for b, power in enumerate(mean)]
        interference = sum(power for b, power in enumerate(faded) if b != best)
        found.append(math.log2(1 + faded[best] / (interference + 1e-10)))
    return found


class TestRates:
    def test_they_are_those_of_a_loop_over_links(self) -> None:
        fading = RADIO.draw_fading(3, stream(1))
        for x in points(4):
            for h in fading:
                expected = slow_rates(RADIO, x.tolist(), h)
                torch.testing.assert_close(rates(RADIO.received(x), h), vector(*expected), rtol=1e-9, atol=1e-12)

    def test_powers_add_in_decibels(self) -> None:
        links = Links(vector(90.0).reshape(1, 1), vector(0.0).reshape(1, 1), vector(0.0).reshape(1, 1), 1)
        assert received_power(vector(30.0), vector(0.0), links).item() == pytest.approx(10**-5.2)

    def test_one_sector_alone_has_the_textbook_mean(self) -> None:
        """Without interference `E ln(1 + s h) = exp(1/s) E1(1/s)`."""
        s = 10 ** torch.linspace(-5, 9, 29, dtype=torch.float64)
        expected = [math.exp(1 / v) * exp1(1 / v) / math.log(2) if v > 2e-3 else None for v in s.tolist()]
        for ours, exact, v in zip(mean_rates(s.unsqueeze(-1), noise=1.0).tolist(), expected, s.tolist(), strict=True):
            if exact is None:  # E1 underflows: its series
                exact = (v - v**2 + 2 * v**3) / math.log(2)
            assert ours == pytest.approx(exact, rel=1e-4 if v <= 2e-3 else 1e-8, abs=2e-9)

    @given(st.lists(st.floats(-5, 8), min_size=2, max_size=5))
    def test_means_are_the_integral(self, decades: list[float]) -> None:
        received = 10 ** vector(*decades)
        signal = received.max()
        shares, noise = (received / signal).tolist(), 1 / signal.item()

        def integrand(t: float) -> float:
            u = math.exp(t)
            return u * math.exp(-u * noise) / math.prod(1 + u * share for share in shares)

        expected = sum(quad(integrand, low, low + 5, epsabs=1e-13)[0] for low in range(-45, 30, 5)) / math.log(2)
        assert mean_rates(received).shape == ()
        assert mean_rates(received, noise=1.0).item() == pytest.approx(expected, abs=2e-9)

    def test_means_are_those_of_many_draws(self) -> None:
        received = RADIO.received(points(1))
        draws = rates(received, RADIO.draw_fading(20_000, stream(3)))
        z = (draws.mean(dim=0) - mean_rates(received)) / (draws.std(dim=0) / math.sqrt(20_000))
        assert z.abs().max() < 4.5
        assert z.std().item() == pytest.approx(1.0, abs=0.35)

    @given(st.lists(st.floats(-3, 6), min_size=9, max_size=9), st.floats(0.01, 2), st.randoms(use_true_random=False))
    def test_order_of_sectors_does_not_matter_and_more_signal_or_less_noise_helps(
        self, decades: list[float], more: float, shuffle: Any
    ) -> None:
        received = 10 ** vector(*decades)
        mean = mean_rates(received, noise=1.0).item()
        order = list(range(9))
        shuffle.shuffle(order)
        assert mean_rates(received[order], noise=1.0).item() == pytest.approx(mean, rel=1e-9)
        stronger = received.clone()
        stronger[received.argmax()] *= 10**more
        assert mean_rates(stronger, noise=1.0).item() > mean
        assert mean_rates(received, noise=10**-more).item() >= mean - 1e-9

    def test_weak_interference_is_not_lost_beside_a_strong_signal(self) -> None:
        received = vector(1.0, 1e-17)
        assert rates(received, torch.ones(2), noise=0.0).item() == pytest.approx(math.log2(1 + 1e17))


class TestObjective:
    def weighted(self, problem: Radio, ground: float, uavs: float) -> float:
        return problem.capacity(torch.cat([torch.full((36,), ground), torch.full((28,), uavs)]).double()).item()

    def test_the_papers_weights(self) -> None:
        assert self.weighted(RADIO, 1.0, 0.0) == pytest.approx(0.3)
        assert self.weighted(RADIO, 0.0, 1.0) == pytest.approx(0.7)

    def test_the_published_codes_weights(self) -> None:
        code = radio(balance_on="ground", uav_divisor=200)
        assert self.weighted(code, 1.0, 0.0) == pytest.approx(0.7)
        assert self.weighted(code, 0.0, 1.0) == pytest.approx(0.3 * 28 / 200)

    def test_uavs_without_fading_have_the_rate_of_mean_powers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "BALANCE", 1.0)
        problem = radio(uav_fading=False)
        X = points(3)
        received = problem.received(X)
        plain = rates(received, torch.ones_like(received))[:, 36:].mean(dim=-1)
        torch.testing.assert_close(problem(X, noise=False), plain)
        torch.testing.assert_close(problem.observe(X, [stream(i) for i in range(3)]).squeeze(-1), plain)
        monkeypatch.setattr(module, "BALANCE", 0.0)  # ground users alone
        still, faded = radio(uav_fading=False), radio()
        torch.testing.assert_close(still(X, noise=False), faded(X, noise=False))

    def test_shadowing_is_one_draw_a_user_and_site(self) -> None:
        shadow = radio(shadowing=6.0).links.loss - RADIO.links.loss
        by_site = shadow.reshape(64, 3, 3)
        torch.testing.assert_close(by_site, by_site[..., :1].expand(64, 3, 3))
        assert by_site[..., 0].std().item() == pytest.approx(6.0, rel=0.15)
        assert torch.equal(radio(shadowing=6.0).layout.ground, RADIO.layout.ground)

    def test_gradients_are_differences(self) -> None:
        X = points(3, seed=5).requires_grad_()
        for problem in (RADIO, radio(uav_fading=False), radio(truth_draws=20)):
            (slope,) = torch.autograd.grad(problem(X, noise=False).sum(), X)
            assert slope.abs().max() > 1e-3
            step = 1e-5
            for i in range(18):
                shift = step * torch.eye(18, dtype=torch.float64)[i]
                with torch.no_grad():
                    difference = (problem(X + shift, noise=False) - problem(X - shift, noise=False)) / (2 * step)
                torch.testing.assert_close(slope[:, i], difference, atol=1e-7, rtol=1e-5)

    @pytest.mark.slow
    def test_many_points_at_once_are_those_one_by_one(self) -> None:
        X = points(300)
        for problem in (RADIO, radio(truth_draws=7)):
            one = torch.cat([problem(row.unsqueeze(0), noise=False) for row in X])
            torch.testing.assert_close(problem(X, noise=False), one, rtol=1e-12, atol=0.0)

    def test_the_best_of_few_random_points_beats_the_start(self) -> None:
        """At the start all sectors shout at each other's users."""
        assert RADIO(points(100), noise=False).max() > 3 * RADIO(RADIO.space.start, noise=False)

    def test_tilting_up_serves_uavs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All sectors at 40 degrees point at UAVs some 150 m away; at -40 degrees, at their own feet."""
        monkeypatch.setattr(module, "BALANCE", 1.0)
        problem = radio()
        power = torch.full((9,), 46.0)
        up, down = (problem(torch.cat([power, torch.full((9,), t)]).double(), noise=False) for t in (40.0, -40.0))
        assert up > 2 * down


class TestTruthByDraws:
    def test_it_is_the_mean_over_fixed_fadings_of_what_a_loop_gives(self) -> None:
        problem = radio(truth_draws=3)
        x = points(1)[0]
        each = [slow_rates(problem, x.tolist(), h) for h in problem._fixed]
        expected = sum(0.7 * sum(r[36:]) / 28 + 0.3 * sum(r[:36]) / 36 for r in each) / 3
        assert problem(x, noise=False).item() == pytest.approx(expected, rel=1e-9)

    def test_its_error_is_what_it_says(self) -> None:
        X = points(40)
        problem = radio(truth_draws=400)
        each = torch.cat([problem._capacities(row, problem._fixed) for row in X.split(1)])
        error = each.std(dim=-1) / math.sqrt(400)
        z = (problem(X, noise=False) - RADIO(X, noise=False)) / error
        assert z.abs().max() < 4.5
        assert (error / RADIO(X, noise=False)).max() < 0.01


class TestObservations:
    def test_it_observes_itself(self) -> None:
        X = points(3)
        problem = build_problem("radio", {}, Context(Path(), stream(0)))
        Y, F = observe(problem, X, [stream(i) for i in range(3)])
        assert Y.shape == F.shape == (3, 1)
        assert torch.equal(Y, RADIO.observe(X, [stream(i) for i in range(3)]))
        assert torch.equal(F.squeeze(-1), RADIO(X, noise=False))

    def test_the_chance_is_the_streams_wherever_one_asks(self) -> None:
        """Two methods at one evaluation see one channel: the first realisation too, however many follow."""
        X = points(2)
        one = radio(n_ch=2)
        alone = one.observe(X[1:], [stream(7)])
        assert torch.equal(one.observe(X, [stream(3), stream(7)])[1:], alone)
        assert torch.equal(one.draw_fading(1, stream(7))[0], one.draw_fading(4, stream(7))[0])
        assert not torch.equal(one.observe(X[1:], [stream(8)]), alone)

    def test_one_stream_for_many_rows_goes_on(self) -> None:
        same = points(1).expand(300, -1)
        values = radio(n_ch=3).observe(same, [stream(0)] * 300)
        assert len(values.unique()) == 300

    @pytest.mark.slow
    @pytest.mark.parametrize("n_ch", [1, 4])
    def test_they_are_right_on_average_and_as_noisy_as_their_number_says(self, n_ch: int) -> None:
        X = points(5, seed=2)
        Y = radio(n_ch=n_ch).observe(X.repeat(3000, 1), [stream(1)] * 15_000).reshape(3000, 5)
        F = RADIO(X, noise=False)
        z = (Y.mean(dim=0) - F) / (Y.std(dim=0) / math.sqrt(3000))
        assert z.abs().max() < 4.0
        single = RADIO.observe(X.repeat(3000, 1), [stream(2)] * 15_000).reshape(3000, 5).std(dim=0)
        torch.testing.assert_close(Y.std(dim=0), single / math.sqrt(n_ch), rtol=0.08, atol=0.0)

    def test_an_observation_is_the_mean_over_its_fadings(self) -> None:
        problem = radio(n_ch=2)
        x = points(1)
        fading = problem.draw_fading(2, stream(4))
        each = [slow_rates(problem, x[0].tolist(), h) for h in fading]
        expected = sum(0.7 * sum(r[36:]) / 28 + 0.3 * sum(r[:36]) / 36 for r in each) / 2
        assert problem.observe(x, [stream(4)]).item() == pytest.approx(expected, rel=1e-9)

    def test_called_it_is_noisy_from_the_global_stream(self) -> None:
        """BoTorch's own loops call the problem itself."""
        X = points(6).reshape(2, 3, 18)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            Y = RADIO(X)
        assert Y.shape == (2, 3)
        assert not torch.equal(Y, RADIO(X, noise=False))
        assert ((Y - RADIO(X, noise=False)).abs() < 2.0).all()


class TestAsAProblem:
    def test_its_network_is_that_of_all_seeds(
        self, context: Callable[[int], Context], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other = (build_problem("radio", {}, context(seed)) for seed in (0, 1))
        X = points(4)
        assert torch.equal(one.function(X, noise=False), other.function(X, noise=False))
        monkeypatch.setattr(module, "LAYOUT_SEED", 1)
        assert not torch.equal(one.function(X, noise=False), radio()(X, noise=False))

    def test_a_block_is_a_sectors_power_and_tilt(self) -> None:
        blocks = RADIO.space
        assert isinstance(blocks, Blocks)
        assert blocks.indices == tuple((b, b + 9) for b in range(9))
        assert blocks.start.tolist() == [46.0] * 9 + [0.0] * 9
        assert blocks.candidates == 100
        assert type(radio(proposals="box").space) is Box

    def test_its_optimum_is_unknown(self) -> None:
        assert problem_of(RADIO).optimum is None
        assert problem_of(RADIO).optimisers is None

    def test_a_trial_changes_one_sector_a_round(self, cheap_spec: Callable[..., Any], tmp_path: Path) -> None:
        spec = cheap_spec({"name": "radio", "options": {"n_ch": 2}}, "ei", rounds=3, size=5)
        rows = run_trial(spec, tmp_path, tmp_path).table(spec, points=True).to_pylist()
        asked = torch.tensor([row["x"] for row in rows[5:]], dtype=torch.float64)
        values = torch.tensor([row["y"][0] for row in rows[5:]], dtype=torch.float64)
        for t in range(3):
            kept = asked[values[:t].argmax()] if t > 0 else RADIO.space.start
            moved = (asked[t] != kept).nonzero().flatten().tolist()
            assert moved == [t, t + 9]
        assert all(math.isnan(row["optimum"]) for row in rows)
        assert all(row["y"] != row["f"] for row in rows)

    @pytest.mark.parametrize(
        "options", [{"n_ch": 0}, {"balance_on": "uav"}, {"truth_draws": 0}, {"proposals": "sector"}]
    )
    def test_wrong_options_are_one_line(self, options: dict[str, Any], context: Callable[[int], Context]) -> None:
        with pytest.raises(PlumblineError, match=next(iter(options))):
            build_problem("radio", options, context(0))


def test_the_noise_is_a_tenth_of_a_picowatt() -> None:
    assert pytest.approx(milliwatts(vector(-100.0)).item()) == NOISE


def test_a_departure_can_be_judged_by_the_papers_objective() -> None:
    """Observations are of its own objective, the noise-free value of the paper's."""
    X = points(4)
    odd = radio(balance_on="ground", uav_divisor=200.0)
    judged = radio(balance_on="ground", uav_divisor=200.0, judge="paper")
    paper = radio()
    assert torch.equal(judged(X, noise=False), paper(X, noise=False))
    assert torch.equal(judged.observe(X, [stream(i) for i in range(4)]), odd.observe(X, [stream(i) for i in range(4)]))
    assert not torch.allclose(judged(X, noise=False), odd(X, noise=False))
