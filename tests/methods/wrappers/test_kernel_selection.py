import pytest
import torch
from adaptation_cases import answered, check_resumed, constant, failing, restored
from botorch.exceptions.errors import ModelFittingError
from linear_operator.utils.errors import NotPSDError
from situations import BOX, QUICK, QUICK_CONFORMAL, Situation, ask, box, objective, rows, table

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.methods.base import Domain, build_method
from plumbline.methods.wrappers.kernel_selection import OWN, KernelSelectionMethod
from plumbline.models.gp.criteria import CRITERIA
from plumbline.models.gp.fit import ModelOptions, fit_process
from plumbline.spaces.box import Box

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EVERY = ["rbf", "matern12", "matern32", "matern52"]


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def selecting(place: Situation, base: str = "ei", base_options: dict | None = None, **own) -> KernelSelectionMethod:
    given = {"name": base, "options": QUICK if base_options is None else base_options}
    method = build_method("kernel-selection", {"base": given, **own}, place.domain)
    assert isinstance(method, KernelSelectionMethod)
    return method


@pytest.mark.parametrize("criterion", ["likelihood", "bic", "leave-one-out"])
@pytest.mark.parametrize("n", [3, 12])
def test_the_kernel_with_the_greatest_criterion_is_chosen(criterion: str, n: int) -> None:
    place = box(n=n)
    kernels = [*EVERY, {"kernel": "matern52", "ard": False}]
    options = [ModelOptions(kernel=name, priors="conformal") for name in EVERY]
    options.append(ModelOptions(kernel="matern52", priors="conformal", ard=False))
    fits = [fit_process(place.history.X, place.history.Y, BOX, model) for model in options]
    scores = [CRITERIA[criterion](process, model) for process, model in zip(fits, options, strict=True)]
    best = scores.index(max(scores))
    model = {**QUICK, "model": {"priors": "conformal"}}
    proposal = ask(selecting(place, base_options=model, criterion=criterion, kernels=kernels), place.history, 1)
    assert proposal.notes == {"kernel": best}
    alone = {**QUICK, "model": options[best].model_dump()}
    plain = ask(build_method("ei", alone, place.domain), place.history, 1)
    assert torch.equal(proposal.X, plain.X)
    points = rows(5, 3)
    assert torch.equal(proposal.predict(points).sd, plain.predict(points).sd)


def test_criteria_can_disagree() -> None:
    """Lengthscales for all inputs cost BIC more than they explain, where one input does nothing."""
    X = rows(12, 4)
    place = Situation(Domain(Box(BOX)), History(X, torch.sin(X[:, :1] / 3) + torch.sin(X[:, 1:] / 3), 12))
    kernels = [{"kernel": "matern52", "ard": True}, {"kernel": "matern52", "ard": False}]
    model = {**QUICK, "model": {"priors": "none"}}
    notes = {
        criterion: ask(
            selecting(place, base_options=model, criterion=criterion, kernels=kernels), place.history, 1
        ).notes
        for criterion in ("likelihood", "bic")
    }
    assert notes == {"likelihood": {"kernel": 0.0}, "bic": {"kernel": 1.0}}


def test_a_smooth_function_gets_a_smooth_kernel_and_a_rough_one_a_rough_kernel() -> None:
    X = torch.stack([torch.linspace(-5, 10, 60), torch.full((60,), 7.0)], -1).double()
    rough = normal(60, 1, seed=0).cumsum(0)
    for Y, expected in ((objective(X), "rbf"), (rough, "matern12")):
        place = Situation(Domain(Box(BOX)), History(X, Y, 60))
        model = {**QUICK, "model": {"priors": "none"}}
        method = selecting(place, base_options=model, kernels=["matern12", "rbf"])
        ask(method, place.history, 1)
        assert ["matern12", "rbf"][method.kernel] == expected


def test_chance_takes_each_kernel_in_some_round_and_only_fits_that(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = selecting(place, criterion="random")
    fits: list[str] = []
    for candidate, name in zip(method.candidates, EVERY, strict=True):
        fit = candidate.fit
        monkeypatch.setattr(candidate, "fit", lambda data, fit=fit, name=name: fits.append(name) or fit(data))
    drawn = [ask(method, place.history, 1, seed).notes["kernel"] for seed in range(20)]
    assert set(drawn) == {0.0, 1.0, 2.0, 3.0}
    assert fits == [EVERY[int(place)] for place in drawn]


def test_what_is_predicted_without_a_round_is_by_the_last_kernel_that_chance_took() -> None:
    place = box()
    method = selecting(place, criterion="random")
    proposal = next(
        found for found in (ask(method, place.history, 1, seed) for seed in range(20)) if found.notes["kernel"] == 1
    )
    points = rows(5, 3)
    assert torch.equal(method.predictor(place.history)(points).sd, proposal.predict(points).sd)
    assert ask(method, place.history, 1, 3).notes  # and no kernel is drawn for it


def test_a_kernel_that_cannot_be_fitted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = selecting(place)
    best = int(ask(method, place.history, 1).notes["kernel"])
    failing(monkeypatch, method.candidates[best], "fit", NotPSDError("no factor"))
    proposal, events = answered(method, place.history)
    assert events == ["KernelNotFittedWarning"]
    others = [name for i, name in enumerate(EVERY) if i != best]
    assert torch.equal(proposal.X, ask(selecting(place, kernels=others), place.history, 1).X)


def test_chance_draws_another_kernel_where_one_cannot_be_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = selecting(place, criterion="random", kernels=["rbf", "matern12"])
    failing(monkeypatch, method.candidates[0], "fit", ModelFittingError("no number"))
    rounds = [answered(method, place.history, seed=seed) for seed in range(10)]
    assert {proposal.notes["kernel"] for proposal, _ in rounds} == {1.0}
    assert {tuple(events) for _, events in rounds} == {(), ("KernelNotFittedWarning",)}


def test_a_surrogate_that_explains_by_no_number_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = selecting(place, kernels=["matern32", "rbf"])
    monkeypatch.setitem(
        CRITERIA, "likelihood", lambda process, _: float("nan") if process.kernel == "matern32" else -1e3
    )
    proposal, events = answered(method, place.history)
    assert proposal.notes == {"kernel": 1.0}
    assert "KernelNotFittedWarning" in events


@pytest.mark.parametrize(
    ("base", "options", "outcomes"),
    [("ucb", QUICK, 1), ("cucb", QUICK_CONFORMAL, 1), ("locbo", QUICK, 1), ("ehvi", QUICK, 2)],
)
def test_where_all_fail_the_last_kernel_goes_on(
    base: str, options: dict, outcomes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = box(n=8, outcomes=outcomes)
    earlier = History(place.history.X[:-1], place.history.Y[:-1], 7)
    method = selecting(place, base, options)
    kernel = ask(method, earlier, 1).notes["kernel"]
    at = method.at
    assert len(at) == outcomes
    for candidate in method.candidates:
        failing(monkeypatch, candidate, "fit", ModelFittingError("no number"))
    proposal, events = answered(method, place.history)
    assert {"KernelNotFittedWarning", "NoKernelFittedWarning"} <= set(events)
    assert proposal.notes["kernel"] == kernel
    assert method.at == at
    surrogate = method.selected(place.history).surrogate
    for process in surrogate if isinstance(surrogate, list) else [surrogate]:
        assert len(process.y) == 8  # the last observation counts
    assert isinstance(surrogate, list) == (base in ("cucb", "ehvi"))


def test_where_all_fail_in_the_first_round_the_bases_own_model_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box()
    method = selecting(place)
    for candidate in method.candidates:
        failing(monkeypatch, candidate, "fit", ModelFittingError("no number"))
    proposal, events = answered(method, place.history)
    assert "NoKernelFittedWarning" in events
    assert proposal.notes == {"kernel": OWN}
    assert torch.equal(proposal.X, ask(build_method("ei", QUICK, place.domain), place.history, 1).X)
    again, _ = answered(method, place.history)  # now the base's own is the last round's
    assert again.notes == {"kernel": OWN}
    torch.testing.assert_close(again.predict(rows(3, 3)).mean, proposal.predict(rows(3, 3)).mean)
    first = selecting(place)
    for candidate in [*first.candidates, first.base]:
        failing(monkeypatch, candidate, "fit", ModelFittingError("nothing at all"))
    with pytest.warns(match="no kernel"), pytest.raises(ModelFittingError, match="nothing at all"):
        ask(first, place.history, 1)


@pytest.mark.parametrize("criterion", ["bic", "random"])
def test_resumed_equals_uninterrupted(criterion: str) -> None:
    place = box(n=5)
    notes = check_resumed(lambda: selecting(place, "ts", criterion=criterion), place)
    assert len(notes) == 6


def test_what_a_kernel_was_fitted_to_is_part_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    place = box(n=8)
    method = selecting(place)
    ask(method, place.history, 1)
    resumed = restored(lambda: selecting(place), method)
    for one in (method, resumed):
        for candidate in one.candidates:
            failing(monkeypatch, candidate, "fit", ModelFittingError("no number"))
    with pytest.warns(match="no kernel"):
        assert torch.equal(ask(resumed, place.history, 1).X, ask(method, place.history, 1).X)


@pytest.mark.parametrize("criterion", ["likelihood", "bic", "leave-one-out", "random"])
@pytest.mark.parametrize("place", [box(n=1), constant()], ids=["one", "constant"])
def test_a_single_observation_and_a_constant_objective(place: Situation, criterion: str) -> None:
    proposal = ask(selecting(place, criterion=criterion), place.history, 1)
    assert torch.isfinite(proposal.X).all()
    assert torch.isfinite(proposal.predict(place.history.X).mean).all()


@pytest.mark.parametrize(("base", "second"), [("eic", "at_least_zero"), ("nehvi", "objective")])
def test_several_outcomes_have_one_kernel(base: str, second: str) -> None:
    place = box(n=8, outcomes=2, second=second)
    options = {} if base == "eic" else QUICK
    method = selecting(place, base, {"search": QUICK["search"], **options})
    proposal = ask(method, place.history, 1)
    chosen = method.candidates[int(proposal.notes["kernel"])]
    assert {process.kernel for process in method.fit(place.history)} == {chosen.options.model.kernel}
    scores = [
        sum(CRITERIA["likelihood"](process, candidate.options.model) for process in candidate.fit(place.history))
        for candidate in method.candidates
    ]
    assert proposal.notes["kernel"] == scores.index(max(scores))


def test_a_trust_region_goes_around_it() -> None:
    place = table(40, 10)
    inner = {"name": "kernel-selection", "options": {"base": {"name": "ei", "options": QUICK}}}
    method = build_method("trust-region", {"base": inner}, place.domain)
    proposal = ask(method, place.history, 1)
    assert set(proposal.notes) == {"kernel", "region_length"}


@pytest.mark.parametrize("base", ["random", "elbo-ei", "penalised-ei", "offline", "trust-region", "calibrated"])
def test_methods_without_a_kernel_to_choose_are_refused_by_name(base: str) -> None:
    options = {"base": "ei"} if base in ("trust-region", "calibrated") else {}
    with pytest.raises(PlumblineError, match=rf"base '{base}' does not provide '.*' .*: use .*\bei\b") as caught:
        selecting(box(), base, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"kernels": ["matern72"]}, r"kernels\.0\.kernel: Input should be 'rbf', 'matern12'"),
        ({"kernels": []}, "kernels"),
        ({"kernels": [{"kernel": "rbf", "ard": False}]}, "BoTorch's dimension-scaled priors need `ard: true`"),
        ({"criterion": "aic"}, "criterion"),
    ],
)
def test_options_are_checked(own: dict, reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason) as caught:
        selecting(box(), **own)
    assert "\n" not in str(caught.value)
