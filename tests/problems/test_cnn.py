"""Tuning a network: the paper's box, what a point means, failures, and trainings that are killed."""

import errno
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import torch
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.data.sources.images import Images
from plumbline.models.learned.convolutional import Hyperparameters, Training
from plumbline.models.learned.images import read_images
from plumbline.problems import cnn
from plumbline.problems.base import Context, EvaluationContext, Problem
from plumbline.problems.build import build_problem
from plumbline.problems.cnn import AXES, CnnOptions, ConvolutionalNetwork
from plumbline.store.keys import trial_inputs
from plumbline.store.spec import TrialSpec
from plumbline.trials.runner import run_trials

CHEAP = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}
ASKED = {"images": "small-digits", "epochs": 2, "shrink": 32}
POINT = [33.0, -1.5, -5.0, -4.0, 511.0, 250.0]
SEVERAL = torch.tensor([POINT, [64.0, -2.0, -6.0, -5.0, 256.0, 128.0]], dtype=torch.float64)


@pytest.fixture(scope="module")
def digits(data_folder: Path) -> Images:
    return read_images(data_folder / "models" / "small-digits.npz")


@pytest.fixture
def problem(context: Callable[[int], Context]) -> Problem:
    return build_problem("cnn", ASKED, context(0))


def test_the_box_is_that_of_the_study(root: Path) -> None:
    """CAL-T1 prints `spaces.cnn`: it must be what is searched."""
    study = yaml.safe_load((root / "config/studies/calibrated.yaml").read_text(encoding="utf-8"))
    assert len(study["spaces"]["cnn"]) == len(AXES)
    for axis, said in zip(AXES.values(), study["spaces"]["cnn"], strict=True):
        ends = [10.0**end if axis.logarithmic else end for end in (axis.low, axis.high)]
        assert ends == pytest.approx([said["low"], said["high"]])
        assert axis.logarithmic == (said.get("scale") == "log")
        assert axis.step == said.get("step", 0)


def test_a_point_is_put_on_its_steps(digits: Images) -> None:
    whole = ConvolutionalNetwork(digits, CnnOptions(images="small-digits"), 0)
    found = whole.hyperparameters(POINT)
    assert (found.batch, found.units, found.channels) == (32, 512, 256)
    assert found[1:4] == pytest.approx((10**-1.5, 1e-5, 1e-4))
    eighth = ConvolutionalNetwork(digits, CnnOptions(images="small-digits", shrink=8), 0)
    assert eighth.hyperparameters(POINT) == found._replace(units=64, channels=32)
    assert all(isinstance(one, int) for one in (found.batch, found.units, found.channels))


def test_points_of_the_space_are_on_steps_already(problem: Problem) -> None:
    nothing = torch.empty(0, 6, dtype=torch.float64)
    X = problem.space.draw(50, History(nothing, nothing), torch.Generator().manual_seed(0))
    for x in X[:, [0, 4, 5]].tolist():
        assert [x[0] % 32, x[1] % 16, x[2] % 16] == [0, 0, 0]


def test_a_value_is_minus_the_error_of_a_network_trained_so(problem: Problem, digits: Images) -> None:
    function = problem.function
    assert isinstance(function, ConvolutionalNetwork)
    value = function(SEVERAL[:1], noise=False)
    lesson = cnn.Lesson.of(digits, torch.device("cpu"))
    assert value.dtype == torch.float64
    assert value.item() == -Training(lesson, function.hyperparameters(POINT), 2, function.seed).run()


def test_a_point_is_trained_once(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    run = Training.run
    monkeypatch.setattr(Training, "run", lambda self, *rest: trained.append(self.chosen) or run(self, *rest))
    first = problem.function(SEVERAL, noise=False)
    nearby = SEVERAL + torch.tensor([3.0, 0, 0, 0, 0, 0], dtype=torch.float64)
    assert torch.equal(problem.function(nearby, noise=False), first)
    assert len(trained) == 2


def test_seeds_of_trials_have_chances_of_their_own(context: Callable[[int], Context]) -> None:
    seeds = {build_problem("cnn", ASKED, context(seed)).function.seed for seed in (0, 0, 1, 2)}
    assert len(seeds) == 3


def trial(make: Callable[..., TrialSpec], method: str = "random", epochs: int = 2, **more: Any) -> TrialSpec:
    return make({"name": "cnn", "options": {**ASKED, "epochs": epochs}}, method, **{"rounds": 2, "size": 3, **more})


def test_images_are_an_input_of_its_trials(cheap_spec: Callable[..., TrialSpec]) -> None:
    assert trial_inputs(trial(cheap_spec)) == ["models/small-digits.npz"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["random", "ei", "calibrated", "trust-region"])
def test_a_network_that_diverges_is_an_observation_of_a_failure(
    data_folder: Path,
    tmp_path: Path,
    cheap_spec: Callable[..., TrialSpec],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    """A learning rate out of all bounds where the batch size is an odd multiple of 32."""
    mend = Training.__init__

    def too_fast(self: Training, lesson: object, chosen: Hyperparameters, *rest: int) -> None:
        rate = chosen.learning_rate * (1e12 if chosen.batch % 64 else 1.0)
        mend(self, lesson, chosen._replace(learning_rate=rate), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Training, "__init__", too_fast)
    wrapped = {"trust-region": {"base": {"name": "ei", "options": CHEAP}}}.get(method)
    spec = trial(cheap_spec, method, options=wrapped, rounds=4, size=8)
    (folder,) = run_trials([spec], tmp_path, data_folder)
    assert not folder.failed
    rows = parquet.read_table(folder.records_path).to_pylist()
    assert len(rows) == 12
    lost = [row["y"][0] is None or math.isnan(row["y"][0]) for row in rows]
    assert lost == [row["x"][0] % 64 != 0 for row in rows]
    assert all(row["x"][0] % 32 == row["x"][4] % 16 == row["x"][5] % 16 == 0 for row in rows)
    assert any(lost)
    assert not all(lost)


class Killed(OSError):  # noqa: N818
    pass


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.4, 0.6, 0.98])
def test_a_trial_that_is_killed_while_it_trains_ends_with_the_same_bytes(
    data_folder: Path,
    tmp_path: Path,
    cheap_spec: Callable[..., TrialSpec],
    monkeypatch: pytest.MonkeyPatch,
    share: float,
) -> None:
    """Nothing that was saved is learned again: the steps before and after the kill are as many as without it."""
    steps, stop = 0, -1
    learn = Training._learn

    def counted(self: Training, rows: torch.Tensor) -> torch.Tensor:
        nonlocal steps
        if steps == stop:
            raise Killed(errno.EIO, "the machine is gone")
        steps += 1
        return learn(self, rows)

    monkeypatch.setattr(Training, "_learn", counted)
    monkeypatch.setattr(cnn.Checkpoint, "due", property(lambda self: True))
    spec = trial(cheap_spec, epochs=10)
    (whole,) = run_trials([spec], tmp_path / "whole", data_folder)
    assert steps > 50
    expected, steps, stop = steps, 0, round(share * steps)
    with pytest.raises(Killed):
        run_trials([spec], tmp_path / "killed", data_folder)
    stop = -1
    (resumed,) = run_trials([spec], tmp_path / "killed", data_folder)
    assert steps == expected
    assert resumed.records_path.read_bytes() == whole.records_path.read_bytes()
    assert not resumed.evaluation_path.exists()


def test_a_checkpoint_of_another_problem_is_not_gone_on_from(digits: Images, tmp_path: Path) -> None:
    place = EvaluationContext(torch.device("cpu"), tmp_path / "evaluation.pt")
    one = ConvolutionalNetwork(digits, CnnOptions(**ASKED), 1)
    one.prepare(place)
    assert one._checkpoint is not None
    one._checkpoint.seconds = 0.0
    one(SEVERAL, noise=False)
    same, other = (ConvolutionalNetwork(digits, CnnOptions(**ASKED), seed) for seed in (1, 2))
    same.prepare(place)
    assert same._errors == {one.hyperparameters(POINT): one._errors[one.hyperparameters(POINT)]}
    saved = place.unfinished.read_bytes()
    with pytest.warns(UserWarning, match="it belongs to another training"):
        other.prepare(place)
    assert not other._errors
    place.unfinished.write_bytes(saved[:100])
    with pytest.warns(UserWarning, match="cannot be read"):
        same.prepare(place)


def test_it_trains_where_it_is_told(digits: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the device `meta`, which computes nothing."""
    function = ConvolutionalNetwork(digits, CnnOptions(**ASKED), 1)
    function.prepare(EvaluationContext(torch.device("meta"), tmp_path / "evaluation.pt"))
    seen = []
    monkeypatch.setattr(Training, "run", lambda self, *rest: seen.append(self.weights[0].device.type) or 0.5)
    monkeypatch.setattr(Training, "__init__", _without_optimiser)
    assert function(SEVERAL[:1], noise=False).tolist() == [-0.5]
    assert seen == ["meta"]


def test_trials_train_on_a_gpu(
    data_folder: Path, tmp_path: Path, cheap_spec: Callable[..., TrialSpec], gpu: torch.device
) -> None:
    (folder,) = run_trials([trial(cheap_spec)], tmp_path, data_folder, device=gpu)
    assert not folder.failed
    assert folder.provenance()["device"] == torch.cuda.get_device_name(gpu)


def test_the_runner_tells_it_where(
    data_folder: Path, tmp_path: Path, cheap_spec: Callable[..., TrialSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[EvaluationContext] = []
    monkeypatch.setattr(ConvolutionalNetwork, "prepare", lambda self, place: told.append(place))
    (folder,) = run_trials([trial(cheap_spec)], tmp_path, data_folder, device=torch.device("meta"))
    assert told == [EvaluationContext(torch.device("meta"), folder.evaluation_path)]


def _without_optimiser(self: Training, lesson: cnn.Lesson, *rest: object) -> None:
    self.weights = [lesson.train.pixels]


def test_images_that_are_not_there_name_the_command(context: Callable[[int], Context]) -> None:
    with pytest.raises(PlumblineError, match=r"no model at .*nowhere\.npz: `plumbline model nowhere` trains it"):
        build_problem("cnn", {"images": "nowhere"}, context(0))


def test_a_file_of_something_else_is_refused(context: Callable[[int], Context]) -> None:
    with pytest.raises(PlumblineError, match="has no images: name another model"):
        build_problem("cnn", {"images": "small-grid"}, context(0))
