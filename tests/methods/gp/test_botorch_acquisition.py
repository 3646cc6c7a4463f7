"""Acquisition functions that are named by their path: what they are given, and what is said of those that fail."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from situations import BOX, QUICK, ask, box, table

from plumbline.core.culprits import place_of
from plumbline.core.errors import PlumblineError
from plumbline.methods.base import Proposal, build_method
from plumbline.methods.gp.botorch_acquisition import BoTorchAcquisitionMethod

KG = {"acquisition": "botorch.acquisition.qKnowledgeGradient", "arguments": {"num_fantasies": 3}}
TWO_STEPS = {
    "acquisition": "botorch.acquisition.multi_step_lookahead.qMultiStepLookahead",
    "arguments": {"batch_sizes": [1, 1], "num_fantasies": [2, 2]},
}

OWN = '''
import torch
from botorch.acquisition import AcquisitionFunction, MCAcquisitionFunction
from botorch.utils import t_batch_mode_transform


class Optimism(AcquisitionFunction):
    """The greatest upper end of a batch, as far as `weights` say, without the baseline's best mean."""

    def __init__(self, model, bounds, X_baseline, weights: torch.Tensor, factor=1.0, X_pending=None):
        super().__init__(model)
        self.bounds, self.factor, self.weights = bounds, factor, weights
        self.best = model.posterior(X_baseline).mean.max().detach()

    def forward(self, X):
        posterior = self.model.posterior(X)
        value = posterior.mean * self.weights[0] + self.weights[1] * self.factor * posterior.variance.sqrt()
        return value.squeeze(-1).max(dim=-1).values - self.best


class Plain(AcquisitionFunction):
    def __init__(self, model):
        super().__init__(model)

    def forward(self, X):
        return self.model.posterior(X).mean.flatten(1).sum(-1)


class Nan(Plain):
    def forward(self, X):
        return super().forward(X) * torch.nan


class Flat(Plain):
    def forward(self, X):
        return super().forward(X).detach()


class Wide(Plain):
    def forward(self, X):
        return super().forward(X).unsqueeze(-1)


class Number(Plain):
    def forward(self, X):
        return 1.0


class Broken(Plain):
    def forward(self, X):
        return 1 / 0


class OfOnePoint(Plain):
    @t_batch_mode_transform(expected_q=1)
    def forward(self, X):
        return super().forward(X)


class NoFunction:
    def __init__(self, model):
        pass


class Lookup(Plain):
    def __init__(self, model, table):
        super().__init__(model)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module of one's own on Python's path."""
    (tmp_path / "own_bo.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_bo", raising=False)
    return "own_bo"


def proposed(options: dict[str, Any], q: int = 1) -> Proposal:
    place = box()
    return ask(build_method("botorch-acquisition", {**QUICK, **options}, place.domain), place.history, q)


def told(options: dict[str, Any], q: int = 1) -> str:
    with pytest.raises(PlumblineError) as caught:
        proposed(options, q)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_botorchs_log_expected_improvement_is_ours() -> None:
    search = {"search": {"restarts": 4, "raw_samples": 64, "maxiter": 100}}
    theirs = proposed({**search, "acquisition": "botorch.acquisition.LogExpectedImprovement"})
    place = box()
    ours = ask(build_method("logei", search, place.domain), place.history, 1)
    torch.testing.assert_close(theirs.X, ours.X, rtol=1e-3, atol=1e-3)
    assert theirs.acquisition is not None
    assert ours.acquisition is not None
    X = place.history.X + 0.1
    torch.testing.assert_close(theirs.acquisition(X), ours.acquisition(X), rtol=1e-5, atol=1e-5)


def test_an_own_class_gets_what_it_takes(own: str) -> None:
    place = box()
    options = {**QUICK, "acquisition": f"{own}:Optimism", "arguments": {"weights": [1.0, 2.0], "factor": 0.5}}
    method = build_method("botorch-acquisition", options, place.domain)
    assert isinstance(method, BoTorchAcquisitionMethod)
    stream = torch.Generator().manual_seed(0)
    round = method.start_round(place.history, 2, stream)
    utility: Any = method.utility(method.fit(place.history), round)
    assert isinstance(utility, AcquisitionFunction)
    assert torch.equal(utility.bounds, BOX)
    assert utility.weights.tolist() == [1.0, 2.0]
    assert utility.factor == 0.5
    mean, _ = method.fit(place.history).posterior_moments(place.history.X, joint=False)
    torch.testing.assert_close(utility.best, mean.max())
    assert ask(method, place.history, 2).X.shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("options", [KG, TWO_STEPS])
@pytest.mark.parametrize("q", [1, 2])
def test_one_shot_functions_are_maximised_and_have_a_surface(options: dict[str, Any], q: int) -> None:
    first, again = proposed(options, q), proposed(options, q)
    assert first.X.shape == (q, 2)
    assert ((BOX[0] <= first.X) & (BOX[1] >= first.X)).all()
    assert torch.equal(first.X, again.X)
    assert first.acquisition is not None
    values = first.acquisition(box().history.X)
    assert values.shape == (6,)
    assert torch.isfinite(values).all()


def test_one_shot_functions_in_trust_regions_stay_there() -> None:
    place = box()
    options = {"base": {"name": "botorch-acquisition", "options": {**QUICK, **KG}}}
    assert ask(build_method("trust-region", options, place.domain), place.history, 1).X.shape == (1, 2)


def test_one_shot_functions_refuse_tables() -> None:
    with pytest.raises(PlumblineError, match=r"qKnowledgeGradient' is one-shot and searches a box; .* rows of a table"):
        build_method("botorch-acquisition", {**QUICK, **KG}, table().domain)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nan", "returned NaN at x = [["),
        ("Wide", "returned values of shape 8 x 1 for points of shape 8 x 1 x 2: 8 is wanted"),
        ("Number", "returned a float: a tensor is wanted"),
        ("Flat", "returned values without a gradient"),
        ("NoFunction", "is no class of acquisition functions"),
        ("Lookup", "needs an argument 'table', which the method does not know"),
        ("Missing", "module 'own_bo' has no 'Missing'"),
    ],
)
def test_a_class_that_cannot_be_used_is_told_in_one_line(own: str, name: str, message: str) -> None:
    said = told({"acquisition": f"{own}:{name}"})
    assert said.startswith(f"acquisition 'own_bo:{name}'")
    assert message in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acquisition": "no_such_package.of:Mine"}, "there is no module 'no_such_package' on Python's path"),
        ({"acquisition": "qLogEI"}, "'qLogEI' is no class: write `package.module.Class`"),
        ({"acquisition": "botorch.acquisition.AcquisitionFunction"}, "is no class of acquisition functions"),
        ({"arguments": {"taumax": 1.0}}, "unknown argument 'taumax': did you mean 'tau_max'?"),
    ],
)
def test_odd_options_are_told_in_one_line(options: dict[str, Any], message: str) -> None:
    assert message in told(options)


def test_a_function_of_one_point_refuses_a_batch() -> None:
    said = told({"acquisition": "botorch.acquisition.LogExpectedImprovement"}, q=2)
    assert said.endswith("is of one point: for q = 2 take one of batches")


def test_so_does_one_that_says_so_by_its_decorator(own: str) -> None:
    assert proposed({"acquisition": f"{own}:OfOnePoint"}).X.shape == (1, 2)
    assert told({"acquisition": f"{own}:OfOnePoint"}, q=2).endswith("is of one point: for q = 2 take one of batches")


def test_what_its_code_raises_is_raised_with_its_line(own: str) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        proposed({"acquisition": f"{own}:Broken"})
    line = next(number for number, text in enumerate(OWN.splitlines(), 1) if "1 / 0" in text)
    assert place_of(caught.value).endswith(f"own_bo.py, line {line}")
