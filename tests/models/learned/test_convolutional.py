"""A small network: what it computes, how it is trained, and that a training can be killed at any step."""

import io

import numpy as np
import pytest
import torch
from torch import Generator, Tensor
from torch.nn import functional

from plumbline.data.generated.digits import generated_digits
from plumbline.data.sources.images import Images, Part
from plumbline.models.learned.convolutional import MOMENTUM, Hyperparameters, Lesson, Training, initial_weights, logits

CPU = torch.device("cpu")
GOOD = Hyperparameters(batch=32, learning_rate=0.03, decay=1e-5, l2=1e-5, units=24, channels=8)


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return Lesson.of(generated_digits(20, np.random.default_rng(0)), CPU)


def test_pixels_are_standardised_by_those_of_the_training_images() -> None:
    images = generated_digits(5, np.random.default_rng(3))
    lesson = Lesson.of(images, CPU)
    pixels = torch.from_numpy(images.train.pixels).double()
    torch.testing.assert_close(lesson.mean.flatten().double(), pixels.mean(dim=(0, 2, 3)), rtol=1e-6, atol=0)
    sd = pixels.std(dim=(0, 2, 3), correction=0)
    torch.testing.assert_close(lesson.sd.flatten().double(), sd, rtol=1e-6, atol=0)
    seen = lesson.standardised(lesson.train.pixels)
    assert seen.dtype == torch.float32
    torch.testing.assert_close(seen.mean(dim=(0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(seen.std(dim=(0, 2, 3), correction=0), torch.ones(3), rtol=1e-5, atol=0)


def test_the_network_is_two_convolutions_and_a_hidden_layer() -> None:
    weights = initial_weights((3, 12, 12), channels=8, units=24, classes=10, generator=Generator().manual_seed(0))
    assert [tuple(one.shape) for one in weights] == [
        *((8, 3, 3, 3), (8,), (8, 8, 3, 3), (8,)),
        *((24, 72), (24,), (10, 24), (10,)),
    ]
    for matrix, bias in zip(weights[::2], weights[1::2], strict=True):
        assert not bias.any()
        expected = (2 / matrix[0].numel()) ** 0.5
        assert abs(matrix.std().item() / expected - 1) < 5 / (2 * matrix.numel()) ** 0.5
    X = torch.randn(4, 3, 12, 12, generator=Generator().manual_seed(1))
    found = functional.max_pool2d(functional.conv2d(X, *weights[:2], padding=1).relu(), 2)
    found = functional.max_pool2d(functional.conv2d(found, *weights[2:4], padding=1).relu(), 2)
    expected_logits = functional.linear(functional.linear(found.flatten(1), *weights[4:6]).relu(), *weights[6:])
    torch.testing.assert_close(logits(weights, X), expected_logits, rtol=1e-5, atol=1e-6)


def by_hand(training: Training, lesson: Lesson, chosen: Hyperparameters, rows: list[Tensor]) -> list[Tensor]:
    """Return the weights after the steps of `rows`: momentum, L2 in the loss, and a rate that falls."""
    weights = [one.detach().clone().requires_grad_() for one in training.weights]
    speeds = [torch.zeros_like(one) for one in weights]
    for step, at in enumerate(rows):
        images, labels = lesson.standardised(lesson.train.pixels[at]), lesson.train.labels[at]
        penalty = chosen.l2 / 2 * sum((one**2).sum() for one in weights)
        loss = functional.cross_entropy(logits(weights, images), labels) + penalty
        gradients = torch.autograd.grad(loss, weights)
        speeds = [MOMENTUM * speed + gradient for speed, gradient in zip(speeds, gradients, strict=True)]
        rate = chosen.learning_rate / (1 + chosen.decay * step)
        weights = [(one - rate * speed).detach().requires_grad_() for one, speed in zip(weights, speeds, strict=True)]
    return weights


def test_steps_are_those_of_the_equations(lesson: Lesson) -> None:
    """With decay and L2 far beyond the paper's ranges, so that they show."""
    chosen = GOOD._replace(decay=0.5, l2=0.1)
    training = Training(lesson, chosen, epochs=1, seed=3)
    rows = list(training._rows(0))
    assert [len(at) for at in rows] == [32] * 6 + [8]
    assert sorted(torch.cat(rows).tolist()) == list(range(200))
    expected = by_hand(training, lesson, chosen, rows)
    training.run()
    for one, other in zip(training.weights, expected, strict=True):
        torch.testing.assert_close(one.detach(), other.detach(), rtol=1e-3, atol=1e-5)


def test_it_learns(lesson: Lesson) -> None:
    assert Training(lesson, GOOD, epochs=1, seed=0).run() > 0.6
    assert Training(lesson, GOOD, epochs=15, seed=0).run() < 0.35


def test_the_error_is_the_share_of_wrong_test_images() -> None:
    """Of images that are all alike a network says the same."""
    labels = np.array([0, 1, 1, 2, 2, 2, 0, 0])
    part = Part(np.full((8, 3, 8, 8), 9, np.uint8), labels)
    varied = Part(np.random.default_rng(0).integers(0, 255, (8, 3, 8, 8)).astype(np.uint8), labels)
    training = Training(Lesson.of(Images(("a", "b", "c"), varied, part), CPU), GOOD, epochs=1, seed=0)
    assert training.error() in {5 / 8, 6 / 8}


def test_chance_is_of_the_seed_alone(lesson: Lesson) -> None:
    before = torch.get_rng_state()
    one, same, other = (Training(lesson, GOOD, epochs=2, seed=seed) for seed in (1, 1, 2))
    errors = [training.run() for training in (one, same, other)]
    assert errors[0] == errors[1]
    assert all(torch.equal(a, b) for a, b in zip(one.weights, same.weights, strict=True))
    assert not torch.equal(one.weights[0], other.weights[0])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("rate", [1e3, 1e20])
def test_a_network_that_diverges_has_no_error(lesson: Lesson, rate: float) -> None:
    training = Training(lesson, GOOD._replace(learning_rate=rate), epochs=4, seed=0)
    assert np.isnan(training.run())
    assert training.step < 4 * training.an_epoch


class Spike(Training):
    """The loss of the third step is infinite, as with labels that a network rules out; weights stay finite."""

    def _learn(self, rows: Tensor) -> Tensor:
        loss = super()._learn(rows)
        return loss + torch.inf if self.step == 3 else loss


def test_one_loss_that_is_not_finite_is_enough(lesson: Lesson) -> None:
    training = Spike(lesson, GOOD, epochs=2, seed=0)
    assert np.isnan(training.run())
    assert training.step == training.an_epoch, "it is given up after the epoch"
    assert all(one.isfinite().all() for one in training.weights)


@pytest.mark.parametrize("last", [False, True])
def test_a_training_that_goes_on_remembers_it(lesson: Lesson, last: bool) -> None:
    """Also if it was stopped after its very last step."""
    cut = Spike(lesson, GOOD, epochs=1, seed=0)
    assert cut.an_epoch > 4

    def kill() -> None:
        if cut.step == (cut.an_epoch if last else 4):
            raise Killed

    with pytest.raises(Killed):
        cut.run(kill)
    resumed = Training(lesson, GOOD, epochs=1, seed=0)
    resumed.load(cut.state())
    assert np.isnan(resumed.run())


def test_logits_that_are_no_numbers_are_no_error(lesson: Lesson) -> None:
    training = Training(lesson, GOOD, epochs=1, seed=0)
    with torch.no_grad():
        training.weights[-1][3] = torch.inf
    assert np.isnan(training.error())


class Killed(BaseException):
    pass


@pytest.mark.parametrize("last", [1, 6, 7, 8, 20, 21])
def test_a_training_that_is_killed_ends_with_the_same_bytes(lesson: Lesson, last: int) -> None:
    """Seven steps an epoch; through a file, as a checkpoint is."""
    chosen = GOOD._replace(decay=1e-2, l2=1e-3)
    whole = Training(lesson, chosen, epochs=3, seed=5)
    expected = whole.run()
    held = io.BytesIO()
    cut = Training(lesson, chosen, epochs=3, seed=5)

    def kill() -> None:
        if cut.step == last:
            torch.save(cut.state(), held)
            raise Killed

    with pytest.raises(Killed):
        cut.run(kill)
    held.seek(0)
    resumed = Training(lesson, chosen, epochs=3, seed=5)
    resumed.load(torch.load(held, weights_only=True))
    assert resumed.step == last
    assert resumed.run() == expected
    assert all(torch.equal(a, b) for a, b in zip(resumed.weights, whole.weights, strict=True))


def test_a_gpu_comes_to_much_the_same(gpu: torch.device) -> None:
    images = generated_digits(20, np.random.default_rng(0))
    errors = [Training(Lesson.of(images, device), GOOD, 10, 0).run() for device in (CPU, gpu)]
    assert abs(errors[0] - errors[1]) < 0.1
