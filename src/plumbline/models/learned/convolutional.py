"""A small convolutional network and its training by stochastic gradient descent, which can resume after a kill.

CAL, section 5.3.2, does not specify its network. Ours has two 3 x 3 convolutions, each with ReLU and 2 x 2 max pooling,
one hidden layer, and an output layer, without dropout, normalisation or augmentation. Weights and gradients are
float32, as usual for networks; the test error is a share of images, float64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional
from torch import Generator, Tensor

from plumbline.core.seeding import stream_seed
from plumbline.data.sources.images import Images, Part

MOMENTUM = 0.9
"""Momentum of stochastic gradient descent."""

AT_ONCE = 1_000
"""Number of images that are classified together."""


class Hyperparameters(NamedTuple):
    """The tuned hyperparameters; CAL, table 1.

    Attributes:
        batch: number of images per step.
        learning_rate: learning rate of the first step.
        decay: step t = 0, 1, ... has the rate `learning_rate / (1 + decay t)`.
        l2: weight decay; half of it times the sum of all squared weights is added to the loss.
        units: units of the hidden layer.
        channels: channels of each convolution.
    """

    batch: int
    learning_rate: float
    decay: float
    l2: float
    units: int
    channels: int


@dataclass(frozen=True)
class Loaded:
    """Labelled images on a device.

    Attributes:
        pixels: `n x channels x height x width`, 0 to 255.
        labels: `n`.
    """

    pixels: Tensor
    labels: Tensor

    @classmethod
    def of(cls, part: Part, device: torch.device) -> "Loaded":
        """Return the images on a device, in channels-last layout: convolutions take half the time."""
        pixels = torch.from_numpy(part.pixels).contiguous(memory_format=torch.channels_last)
        return cls(pixels.to(device), torch.from_numpy(part.labels).to(device))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Lesson:
    """A data set of images on one device.

    Attributes:
        train: training images.
        test: test images.
        classes: number of classes.
        mean, sd: mean and standard deviation of the training images' pixels, `channels x 1 x 1`.
    """

    train: Loaded
    test: Loaded
    classes: int
    mean: Tensor
    sd: Tensor

    @classmethod
    def of(cls, images: Images, device: torch.device) -> "Lesson":
        """Return a data set of images on a device."""
        pixels = torch.from_numpy(images.train.pixels)
        # From counts of values: a floating-point copy of 50,000 images would take eight times their size.
        counts = torch.stack([channel.flatten().bincount(minlength=256) for channel in pixels.unbind(1)]).double()
        shares, values = counts / counts.sum(dim=1, keepdim=True), torch.arange(256, dtype=torch.float64)
        mean = shares @ values
        sd = (shares @ values**2 - mean**2).sqrt()
        return cls(
            Loaded.of(images.train, device),
            Loaded.of(images.test, device),
            len(images.classes),
            *(one.float().view(-1, 1, 1).to(device) for one in (mean, sd)),
        )

    def standardised(self, pixels: Tensor) -> Tensor:
        """Return standardised pixels, float32."""
        return (pixels.float() - self.mean) / self.sd


def initial_weights(
    sizes: Sequence[int], channels: int, units: int, classes: int, generator: Generator
) -> list[Tensor]:
    """Return weights and biases of each layer, by He initialisation, drawn on the CPU.

    Args:
        sizes: channels, height and width of an image.
        channels: channels of each convolution.
        units: units of the hidden layer.
        classes: number of classes.
        generator: seeded generator.
    """
    colours, height, width = sizes
    shapes = [
        (channels, colours, 3, 3),
        (channels, channels, 3, 3),
        *((after, before) for before, after in pairwise((channels * (height // 4) * (width // 4), units, classes))),
    ]
    weights = []
    for shape in shapes:
        scale = sqrt(2 / torch.Size(shape[1:]).numel())
        weights += [scale * torch.randn(shape, generator=generator), torch.zeros(shape[0])]
    return weights


def logits(weights: Sequence[Tensor], images: Tensor) -> Tensor:
    """Return the logits of standardised images (`n x channels x height x width`): `n x classes`."""
    first, first_bias, second, second_bias, hidden, hidden_bias, last, last_bias = weights
    # Max pooling before ReLU gives the same numbers for a quarter of the work.
    found = functional.max_pool2d(functional.conv2d(images, first, first_bias, padding=1), 2).relu()
    found = functional.max_pool2d(functional.conv2d(found, second, second_bias, padding=1), 2).relu()
    found = functional.linear(found.flatten(1), hidden, hidden_bias).relu()
    return functional.linear(found, last, last_bias)


class Training:
    """Epochs of stochastic gradient descent with momentum.

    The random stream of an epoch is derived from its number, so that no generator state is saved. On a CPU a resumed
    training ends with the same bytes as an uninterrupted one.

    Args:
        lesson: training and test images.
        chosen: hyperparameters.
        epochs: number of passes over the training images.
        seed: seed of all streams; trainings with the same seed have the same order of images.
    """

    def __init__(self, lesson: Lesson, chosen: Hyperparameters, epochs: int, seed: int) -> None:
        self.lesson, self.chosen, self.epochs, self.seed = lesson, chosen, epochs, seed
        pixels = lesson.train.pixels
        drawn = initial_weights(
            pixels.shape[1:],
            chosen.channels,
            chosen.units,
            lesson.classes,
            Generator().manual_seed(stream_seed("weights", seed, "model")),
        )
        self.weights = [weights.to(pixels.device).requires_grad_() for weights in drawn]
        self.optimiser = torch.optim.SGD(
            self.weights, lr=chosen.learning_rate, momentum=MOMENTUM, weight_decay=chosen.l2
        )
        self.an_epoch = -(-len(lesson.train) // chosen.batch)
        self.step = 0
        self.diverged = torch.zeros((), dtype=torch.bool, device=pixels.device)

    def run(self, after_step: Callable[[], None] = lambda: None) -> float:
        """Train to the end, with a call of `after_step` after each step, and return the test error; NaN if the loss of
        any step was not finite."""
        # No benchmarking of alternative kernels: each of them rounds differently.
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            for epoch in range(self.step // self.an_epoch, self.epochs):
                for rows in self._rows(epoch):
                    # Checked in every step: finite losses may follow an infinite one, which may leave finite weights.
                    self.diverged |= ~self._learn(rows).isfinite()
                    after_step()
                if self.diverged:  # read once an epoch, so that a GPU does not wait in between
                    return torch.nan
            return torch.nan if self.diverged else self.error()

    def _rows(self, epoch: int) -> Sequence[Tensor]:
        """Return the images of each remaining step of an epoch."""
        stream = Generator().manual_seed(stream_seed("batches", self.seed, "model", epoch))
        order = torch.randperm(len(self.lesson.train), generator=stream).to(self.lesson.train.pixels.device)
        return order.split(self.chosen.batch)[self.step - epoch * self.an_epoch :]

    def _learn(self, rows: Tensor) -> Tensor:
        train, chosen = self.lesson.train, self.chosen
        for group in self.optimiser.param_groups:
            group["lr"] = chosen.learning_rate / (1 + chosen.decay * self.step)
        images = self.lesson.standardised(train.pixels[rows])
        loss = functional.cross_entropy(logits(self.weights, images), train.labels[rows])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.step += 1
        return loss.detach()

    def error(self) -> float:
        """Return the test error, the share of misclassified test images; NaN if a logit is not finite."""
        test, wrong = self.lesson.test, 0
        with torch.no_grad():
            for pixels, labels in zip(test.pixels.split(AT_ONCE), test.labels.split(AT_ONCE), strict=True):
                output = logits(self.weights, self.lesson.standardised(pixels))
                if not output.isfinite().all():
                    return torch.nan
                wrong += int((output.argmax(dim=1) != labels).sum())
        return wrong / len(test)

    def state(self) -> dict[str, Any]:
        """Return the state that the rest of the training depends on."""
        return {
            "weights": [one.detach() for one in self.weights],
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "diverged": self.diverged,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        with torch.no_grad():
            for one, saved in zip(self.weights, state["weights"], strict=True):
                one.copy_(saved)
        self.optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        self.diverged.copy_(state["diverged"])
