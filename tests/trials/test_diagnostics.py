"""How what a model said fared."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from handy import Make, Register, rows_of
from torch import Tensor

from plumbline.core.history import History
from plumbline.core.seeding import generator, identity
from plumbline.forecasts.predictive import GaussianPredictive, JointGaussianPredictive
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Method, Proposal
from plumbline.methods.gp.single_outcome import GPMethod
from plumbline.problems.evaluation import observe_holdout, values
from plumbline.store.spec import TrialSpec
from plumbline.trials import run_trial
from plumbline.trials.diagnostics import (
    PICTURE,
    assess,
    coverage,
    coverage_of_a_share,
    mean_width,
    middle,
    picture,
    relative_widths,
    within,
)
from plumbline.trials.trial import Trial

OF_Y = ("nll", "covered", "pit", "crps")
OF_POINTS = ("predicted_mean", "predicted_sd", "alpha", "width", "f_covered")


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def test_by_hand() -> None:
    forecast = GaussianPredictive(torch.zeros(2).double(), torch.ones(2).double())
    found = assess(forecast, column(0.0, 3.0), column(0.0, 0.5), [0.05, 0.5])
    assert set(found) == {*OF_Y, *OF_POINTS}
    assert found["pit"].tolist() == pytest.approx([0.5, 0.99865], abs=1e-5)
    assert found["nll"].tolist() == pytest.approx([0.918939, 5.418939], abs=1e-5)
    assert found["covered"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert found["f_covered"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert found["width"][0].tolist() == pytest.approx([2 * 1.959964, 2 * 0.67449], abs=1e-5)
    assert found["alpha"].tolist() == [[0.05, 0.5]] * 2


def test_what_was_not_observed_is_not_judged() -> None:
    forecast = GaussianPredictive(torch.zeros(3).double(), torch.ones(3).double())
    whole = assess(forecast, column(0.0, 1.0, 2.0), column(0.0, 1.0, 2.0), [0.1])
    found = assess(forecast, column(0.0, torch.nan, 2.0), column(0.0, 1.0, 2.0), [0.1])
    for name in OF_Y:
        assert found[name][1].isnan().all()
        assert torch.equal(found[name][[0, 2]], whole[name][[0, 2]])
    for name in OF_POINTS:
        assert torch.equal(found[name], whole[name])


def test_a_joint_forecast_is_judged_where_all_outcomes_are_there() -> None:
    forecast = JointGaussianPredictive(torch.zeros(2, 2).double(), torch.ones(2, 2).double())
    Y = torch.tensor([[0.0, 0.0], [0.0, torch.nan]]).double()
    found = assess(forecast, Y, torch.zeros(2, 2).double(), [0.1])
    assert set(found) == {"nll", "covered", "f_covered", "width", "alpha"}
    assert found["covered"][0].item() == 1.0
    assert found["covered"][1].isnan()
    assert found["nll"].isnan().tolist() == [False, True]


def test_coverage_is_of_what_was_observed() -> None:
    forecast = GaussianPredictive(torch.zeros(4).double(), torch.ones(4).double())
    assert coverage(forecast, column(0.0, 0.1, 9.0, 9.0), [0.1, 0.99]).tolist() == [0.5, 0.25]
    assert coverage(forecast, column(0.0, torch.nan, 9.0, torch.nan), [0.1]).tolist() == [0.5]


def test_widths_are_averaged() -> None:
    def predict(X: Tensor) -> GaussianPredictive:
        return GaussianPredictive(X[:, 0], X[:, 0])

    expected = 2 * 1.959964 * 1.5
    assert mean_width(predict, column(1.0, 2.0), [0.05]).tolist() == pytest.approx([expected], abs=1e-5)


def test_pictures() -> None:
    bounds = torch.tensor([[0.0], [2.0]]).double()
    proposal = Proposal(column(1.0), lambda X: GaussianPredictive(X[:, 0], 1 + X[:, 0]))
    found = picture(proposal, lambda X: 3 * X[:, 0], bounds, 3, 0.05)
    assert found is not None
    columns = dict(zip(PICTURE, found.T.tolist(), strict=True))
    assert columns["x"] == columns["mean"] == [0.0, 1.0, 2.0]
    assert columns["f"] == [0.0, 3.0, 6.0]
    assert columns["sd"] == [1.0, 2.0, 3.0]
    assert columns["width"] == pytest.approx([2 * 1.959964 * sd for sd in (1, 2, 3)], abs=1e-5)
    assert all(value != value for name in ("acquisition", "threshold") for value in columns[name]), "it has none"
    assert picture(Proposal(column(1.0)), lambda X: X[:, 0], bounds, 3, 0.05) is None


def test_diagnostics_are_those_of_the_model_before_the_observation(cheap_spec: Make, tmp_path: Path) -> None:
    noisy = {"name": "forrester", "options": {"noise_std": 0.3}}
    spec = cheap_spec(noisy, "ucb", rounds=3, size=4, alphas=[0.2, "1/sqrt(n)"], holdout=6)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    trial = Trial(spec, tmp_path)
    assert isinstance(trial.method, GPMethod)
    assert trial.holdout is not None
    for row in rows[4:]:
        before = [past for past in rows if past["iteration"] < row["iteration"]]
        X = torch.tensor([past["x"] for past in before], dtype=torch.float64)
        Y = torch.tensor([past["y"] for past in before], dtype=torch.float64)
        model = trial.method.fit(History(X, Y)).model
        posterior = model.posterior(torch.tensor([row["x"]], dtype=torch.float64), observation_noise=True)
        mean, sd = posterior.mean.item(), posterior.variance.sqrt().item()
        assert row["predicted_mean"] == pytest.approx(mean, abs=1e-8)
        assert row["predicted_sd"] == pytest.approx(sd, abs=1e-8)
        normal = torch.distributions.Normal(*torch.tensor([mean, sd], dtype=torch.float64))
        y = torch.tensor(row["y"][0], dtype=torch.float64)
        assert row["pit"] == pytest.approx(normal.cdf(y).item(), abs=1e-8)
        assert row["nll"] == pytest.approx(-normal.log_prob(y).item(), abs=1e-8)
        assert row["alpha"] == [0.2, pytest.approx(len(before) ** -0.5)]
        for alpha, width, covered in zip(row["alpha"], row["width"], row["covered"], strict=True):
            half = normal.icdf(torch.tensor(1 - alpha / 2, dtype=torch.float64)).item() - mean
            assert width == pytest.approx(2 * half, rel=1e-6)
            assert covered == float(abs(row["y"][0] - mean) <= half)
        assert len(row["holdout_coverage"]) == 2
    assert all(row["pit"] is None and not row["alpha"] for row in rows[:4])


def test_widths_at_the_optima_are_those_at_all_of_them(cheap_spec: Make, tmp_path: Path) -> None:
    """Rippled has two, on both sides of zero, and what was learned of one says little of the other."""
    spec = cheap_spec("rippled", "ucb", rounds=2, size=4, alphas=[0.2], holdout=6, widths=True)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    trial = Trial(spec, tmp_path)
    assert isinstance(trial.method, GPMethod)
    optima = trial.problem.optimisers
    assert optima is not None
    assert len(optima) == 2
    for row in rows[4:]:
        before = [past for past in rows if past["iteration"] < row["iteration"]]
        X, Y = (torch.tensor([past[name] for past in before], dtype=torch.float64) for name in ("x", "y"))
        process = trial.method.fit(History(X, Y))
        sd = process.model.posterior(optima, observation_noise=True).variance.sqrt()
        normal = torch.distributions.Normal(0.0, 1.0)
        expected = 2 * normal.icdf(torch.tensor(0.9)).item() * sd.mean().item()
        assert row["optimum_width"] == pytest.approx([expected], rel=1e-5)


def test_relative_widths_are_in_credible_intervals_of_the_same_forecast() -> None:
    forecast = quantiles_of(torch.tensor([2.0, 3.0]))
    found = relative_widths(lambda X: forecast, column(0.0, 1.0), [0.5, 0.1])
    assert found.flatten().tolist() == pytest.approx([2.0, 3.0, 2.0, 3.0])


def quantiles_of(factors: Tensor) -> GaussianPredictive:
    """Return a forecast whose sets are `factors` times as long as its credible intervals."""

    class Long(GaussianPredictive):
        def width(self, alpha: float) -> Tensor:
            return factors * super().width(alpha)

    return Long(torch.zeros(2).double(), torch.tensor([1.0, 7.0]).double())


def test_distances_are_in_sides_of_the_box() -> None:
    bounds = torch.tensor([[0.0, -10.0], [1.0, 10.0]]).double()
    X = torch.tensor([[0.5, 0.0], [0.5, 2.1], [0.61, 0.0], [0.9, 9.0]]).double()
    data = torch.tensor([[0.5, 0.0], [0.9, 8.0]]).double()
    assert within(0.1, X, data, bounds).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 2.0, 9.0], 2.0), ([1.0, torch.inf], 1.0), ([torch.inf], torch.inf)]
)
def test_the_middle_of_infinite_widths(values: list[float], expected: float) -> None:
    assert middle(torch.tensor([values])).tolist() == [expected]
    assert middle(torch.empty(2, 0)).isnan().tolist() == [True, True]


def first_question(spec: TrialSpec, folder: Path) -> tuple[Trial, AskRequest, Proposal]:
    """Return a trial after its initial design, the question of its first round, and the answer."""
    trial = Trial(spec, folder)
    while trial.beginning:
        trial.log.append(trial.begin(), {})
    question = trial.request()
    (proposal,) = trial.method.ask_many([question])
    assert isinstance(proposal, Proposal)
    return trial, question, proposal


@pytest.mark.parametrize("method", ["ucb", "cucb"])
def test_widths_near_data_and_far_from_all(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    search = {"search": {"steps": 3, "raw_samples": 8}} if method == "cucb" else {}
    spec = cheap_spec("rippled", method, options=search, rounds=2, size=4, alphas=[0.4, 0.9], holdout=9, reach=0.1)
    trial, question, proposal = first_question(spec, tmp_path)
    assert proposal.predict is not None
    step = trial.answer(question, proposal)
    assert trial.holdout is not None
    X, side = trial.holdout[0], trial.domain.bounds[1] - trial.domain.bounds[0]
    distance = (X - question.history.X.T).abs().amin(dim=1) / side
    widths = relative_widths(proposal.predict, X, [0.4, 0.9])
    for name, chosen in ("near_width", distance <= 0.1), ("far_width", distance > 0.1):
        assert chosen.any()
        assert step.columns[name].tolist() == middle(widths[:, chosen]).unsqueeze(0).tolist()
    if method == "ucb":
        assert step.columns["far_width"].tolist() == [pytest.approx([1.0, 1.0])]


@pytest.mark.parametrize("wanted", [{"widths": True}, {"reach": 0.1}])
def test_widths_are_those_at_fresh_points(wanted: dict[str, Any], cheap_spec: Make) -> None:
    with pytest.raises(ValueError, match="fresh points: say how many"):
        cheap_spec(**wanted)


class Remembering(Method):
    """Its sets hold every observation that it was not shown, or none of them; it notes what it was shown."""

    shown: list[Tensor] = []  # noqa: RUF012
    asked: list[Tensor] = []  # noqa: RUF012

    def ask(self, history: History, q: int, generator: torch.Generator) -> Proposal:
        U = torch.rand(q, 1, generator=generator, dtype=torch.float64)
        return Proposal(U, lambda X: GaussianPredictive(0 * X[:, 0], 0 * X[:, 0] + 1.0))

    def predictor(self, history: History) -> Any:
        Remembering.shown.append(history.X)

        def predict(X: Tensor) -> GaussianPredictive:
            Remembering.asked.append(X)
            # The sets of every second point are wide enough.
            wide = torch.arange(len(X)) % 2 == 0
            return GaussianPredictive(0 * X[:, 0], torch.where(wide, 1e9, 1e-9).double())

        return predict


def test_coverage_on_a_share_of_the_data_is_of_a_model_of_the_rest(
    cheap_spec: Make, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembering, "shown", [])
    monkeypatch.setattr(Remembering, "asked", [])
    register("method", "remembering", Remembering, "plumbline.methods.baselines")
    spec = cheap_spec("forrester", "remembering", options={}, size=6, rounds=4, holdout_fraction=0.4, alphas=[0.2, 0.5])
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 10
    data = [row["x"] for row in rows]
    held = [round(0.4 * n) for n in range(6, 10)]
    assert [len(X) for X in Remembering.asked] == held == [2, 3, 3, 4]
    for i, (shown, asked) in enumerate(zip(Remembering.shown, Remembering.asked, strict=True)):
        assert sorted(shown.tolist() + asked.tolist()) == sorted(data[: 6 + i]), "the data are split in two"
        share = -(-len(asked) // 2) / len(asked)
        assert rows[6 + i]["holdout_coverage"] == pytest.approx([share, share])
    assert all(not row["holdout_coverage"] for row in rows[:6])
    again = rows_of(run_trial(spec, tmp_path / "again", tmp_path))
    assert again == rows
    assert all(torch.equal(a, b) for a, b in zip(Remembering.asked[:4], Remembering.asked[4:], strict=True))
    assert not torch.equal(Remembering.asked[1], Remembering.asked[2]), "the share is drawn anew each round"


def test_the_model_of_the_rest_knows_in_which_order_it_was_observed_and_what_the_initial_design_was(
    cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = Trial(cheap_spec("forrester", "ucb"), tmp_path).method
    shown: list[History] = []
    monkeypatch.setattr(method, "predictor", shown.append)
    X = column(*(i / 40 for i in range(40)))
    coverage_of_a_share(method, History(X, X.sin(), 16), 0.5, lambda: torch.Generator().manual_seed(1), [0.1])
    (rest,) = shown
    assert len(rest) == 20
    assert rest.X[:, 0].tolist() == sorted(rest.X[:, 0].tolist())
    assert torch.equal(rest.Y, rest.X.sin())
    assert rest.initial == int(rest.X.lt(X[16]).sum())
    assert rest.initial not in (0, 16, 20)


def test_a_share_of_few_data_is_none(cheap_spec: Make, tmp_path: Path) -> None:
    method = Trial(cheap_spec("forrester", "ucb"), tmp_path).method
    data = History(column(0.1, 0.9), column(0.0, 1.0))
    assert len(coverage_of_a_share(method, data, 0.1, torch.Generator, [0.1])) == 0


@pytest.mark.parametrize("n", [1, 8])
def test_a_rest_without_a_whole_observation_has_no_coverage(cheap_spec: Make, tmp_path: Path, n: int) -> None:
    """None is left of one datum; of eight that all failed none can be learnt from."""
    method = Trial(cheap_spec("forrester", "ucb"), tmp_path).method
    X = column(*(i / n for i in range(n)))
    data = History(X, X.sin() if n == 1 else torch.full_like(X, torch.nan))
    assert len(coverage_of_a_share(method, data, 0.6, torch.Generator, [0.1])) == 0


def test_methods_without_a_model_have_no_coverage_on_the_data(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("forrester", "random", holdout_fraction=0.5), tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 7
    assert not any(row["holdout_coverage"] for row in rows)


@pytest.mark.parametrize(
    ("method", "search"),
    [("ucb", {"restarts": 3, "raw_samples": 8, "maxiter": 5}), ("cucb", {"chains": 3, "raw_samples": 8, "steps": 4})],
)
def test_coverage_where_climbs_end_is_of_all_data_without_a_shift_and_noise_of_its_own(
    method: str, search: dict[str, int], cheap_spec: Make, tmp_path: Path
) -> None:
    options = {"search": search}
    spec = cheap_spec("ackley-3", method, options=options, size=6, rounds=2, q=2, ends=True, alphas=[0.2, 0.5])
    trial, question, proposal = first_question(spec, tmp_path)
    assert proposal.ends is not None
    assert proposal.ends.shape == (3, 2, 3)
    assert torch.equal(proposal.ends[0], proposal.X)
    step = trial.answer(question, proposal)
    X = proposal.ends.flatten(end_dim=1)
    stream = generator(identity(spec.problem.name, spec.problem.options), spec.seed, "ends", 1)
    forecast = trial.method.predictor(question.history)
    assert forecast is not None
    expected = coverage(forecast(X), observe_holdout(trial.problem, X, stream), [0.2, 0.5])
    assert torch.equal(step.columns["end_coverage"], expected.expand(2, -1))
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert all(len(row["end_coverage"]) == 2 for row in rows if row["iteration"])


def test_methods_that_climb_to_nothing_have_no_coverage_where_climbs_end(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("forrester", "random", ends=True), tmp_path, tmp_path))
    assert not any(row["end_coverage"] for row in rows)


@pytest.mark.parametrize("method", ["ucb", "random"])
def test_what_is_recommended_at_the_end_is_noted_by_its_value(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    spec = cheap_spec("ackley-2", method, recommend=True, size=4, rounds=2)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    trial = Trial(spec, tmp_path)
    X, Y = (torch.tensor([row[name] for row in rows], dtype=torch.float64) for name in ("x", "y"))
    history = History(X, Y, 4)
    stream = generator(identity(spec.problem.name, spec.problem.options), spec.seed, "recommendation")
    with torch.random.fork_rng(devices=[]):
        worth = float(values(trial.problem, trial.method.recommend(history, stream)))
    noted = [dict(row["notes"] or {}).get("recommended_f") for row in rows]
    assert noted == [None] * 5 + [pytest.approx(worth, abs=1e-4)]
    plain = rows_of(run_trial(cheap_spec("ackley-2", method, size=4, rounds=2), tmp_path, tmp_path))
    assert [row["x"] for row in plain] == [row["x"] for row in rows]


def test_of_several_outcomes_none_is_recommended(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("branin-currin", "random", recommend=True), tmp_path, tmp_path))
    assert not any("recommended_f" in dict(row["notes"] or {}) for row in rows)


def test_two_holdouts_are_one_too_many(cheap_spec: Make) -> None:
    with pytest.raises(ValueError, match="which of the two is meant"):
        cheap_spec(holdout=4, holdout_fraction=0.2)
    with pytest.raises(ValueError, match="less than 1"):
        cheap_spec(holdout_fraction=1.0)


@pytest.mark.parametrize("method", ["random", "ehvi", "cnehvi"])
def test_two_outcomes(method: str, cheap_spec: Make, tmp_path: Path) -> None:
    conformal = {
        "posterior": {"candidates": 16},
        "ratio": {"hidden": 8, "steps": 5},
        "search": {"chains": 2, "steps": 6, "burn_in": 2, "raw_samples": 8},
        "fronts": 2,
    }
    options = conformal if method == "cnehvi" else None
    spec = cheap_spec("branin-currin", method, options=options, size=6, rounds=3, q=2, holdout_fraction=0.2)
    rows = rows_of(run_trial(spec, tmp_path, tmp_path))
    assert [row["status"] for row in rows] == ["ok"] * 12, rows[-1]["error"]
    assert all(len(row["y"]) == len(row["f"]) == len(row["ref_point"]) == 2 for row in rows)
    assert all(row["roles"] == ["objective"] * 2 for row in rows)
    assert all(later["evaluation"] == earlier["evaluation"] + 1 for earlier, later in pairwise(rows))
    for row in rows[6:]:
        assert row["predicted_mean"] is row["predicted_sd"] is row["pit"] is row["crps"] is None
        assert (row["nll"] is None) == (method == "random")
        lengths = {len(row[name] or []) for name in ("covered", "width", "holdout_coverage")}
        assert lengths == {0 if method == "random" else 4}


def test_a_method_of_several_outcomes_on_one_is_a_failed_row(cheap_spec: Make, tmp_path: Path) -> None:
    rows = rows_of(run_trial(cheap_spec("branin", "ehvi"), tmp_path, tmp_path))
    assert rows[-1]["status"] == "error"
    assert "method 'ehvi' is for several objectives; this problem has one objective" in rows[-1]["error"]
