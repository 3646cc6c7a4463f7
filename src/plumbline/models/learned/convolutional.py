"""A small convolutional network and its training by stochastic gradients, which can be gone on with after a kill.

CAL, section 5.3.2, does not say what its network is. This one has two convolutions of 3 x 3, each with ReLU and a
maximum over 2 x 2, one hidden layer, and the classes; nothing is dropped out, normalised or augmented. Weights and
gradients are float32, as networks are trained; what a training comes to is a share of images, float64.
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
"""Of stochastic gradients."""

AT_ONCE = 1_000
"""Images that are classified together."""


class Hyperparameters(NamedTuple):
    """What is tuned; CAL, table 1.

    Attributes:
        batch: images a step.
        learning_rate: of the first step.
        decay: step t = 0, 1, ... has the rate `learning_rate / (1 + decay t)`.
        l2: half of this times the sum of all squared weights is added to the loss.
        units: of the hidden layer.
        channels: of each convolution.
    """

    batch: int
    learning_rate: float
    decay: float
    l2: float
    units: int
    channels: int


@dataclass(frozen=True)
class Loaded:
    """Labelled images where they are computed with.

    Attributes:
        pixels: `n x channels x height x width`, 0 to 255.
        labels: `n`.
    """

    pixels: Tensor
    labels: Tensor

    @classmethod
    def of(cls, part: Part, device: torch.device) -> "Loaded":
        """Return the images on a device, the channels of a pixel side by side: convolutions take half the time."""
        pixels = torch.from_numpy(part.pixels).contiguous(memory_format=torch.channels_last)
        return cls(pixels.to(device), torch.from_numpy(part.labels).to(device))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Lesson:
    """What networks learn and are judged by, on one device.

    Attributes:
        train: what is learned from.
        test: what is judged by.
        classes: their number.
        mean, sd: of the training images' pixels, `channels x 1 x 1`.
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
        # Counted: a copy of 50,000 images in floating point would be eight times their size.
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

    def seen(self, pixels: Tensor) -> Tensor:
        """Return standardised pixels, float32."""
        return (pixels.float() - self.mean) / self.sd


def initial_weights(
    sizes: Sequence[int], channels: int, units: int, classes: int, generator: Generator
) -> list[Tensor]:
    """Return weights and biases of each layer, by He's rule, drawn on the CPU.

    Args:
        sizes: channels, height and width of an image.
        channels: of each convolution.
        units: of the hidden layer.
        classes: their number.
        generator: seeded.
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
    # The maximum before ReLU: the same numbers, for a quarter of the work.
    found = functional.max_pool2d(functional.conv2d(images, first, first_bias, padding=1), 2).relu()
    found = functional.max_pool2d(functional.conv2d(found, second, second_bias, padding=1), 2).relu()
    found = functional.linear(found.flatten(1), hidden, hidden_bias).relu()
    return functional.linear(found, last, last_bias)


class Training:
    """Epochs of stochastic gradients with momentum.

    The chance of an epoch is derived from its number, so that there is none to be saved: a training that is killed and
    gone on with ends with the same bytes, on a CPU.

    Args:
        lesson: what is learned and judged by.
        chosen: hyperparameters.
        epochs: passes over the training images.
        seed: of all chance: trainings with the same one see images in the same order.
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
        """Train to the end, `after_step` being called after each step, and return the share of test images that are
        taken for another class: NaN where the loss of any step was not finite."""
        # Kernels of which there are several are not tried against each other: each of them rounds otherwise.
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            for epoch in range(self.step // self.an_epoch, self.epochs):
                for rows in self._rows(epoch):
                    # Of every step: an infinite loss may leave weights that are finite, and be followed by finite ones.
                    self.diverged |= ~self._learn(rows).isfinite()
                    after_step()
                if self.diverged:  # once an epoch: a GPU waits for no answer in between
                    return torch.nan
            return self.error()

    def _rows(self, epoch: int) -> Sequence[Tensor]:
        """Return the images of each step of an epoch that is left."""
        stream = Generator().manual_seed(stream_seed("batches", self.seed, "model", epoch))
        order = torch.randperm(len(self.lesson.train), generator=stream).to(self.lesson.train.pixels.device)
        return order.split(self.chosen.batch)[self.step - epoch * self.an_epoch :]

    def _learn(self, rows: Tensor) -> Tensor:
        train, chosen = self.lesson.train, self.chosen
        for group in self.optimiser.param_groups:
            group["lr"] = chosen.learning_rate / (1 + chosen.decay * self.step)
        loss = functional.cross_entropy(logits(self.weights, self.lesson.seen(train.pixels[rows])), train.labels[rows])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.step += 1
        return loss.detach()

    def error(self) -> float:
        """Return the share of test images that are taken for another class: NaN where a logit is not finite."""
        test, wrong = self.lesson.test, 0
        with torch.no_grad():
            for pixels, labels in zip(test.pixels.split(AT_ONCE), test.labels.split(AT_ONCE), strict=True):
                found = logits(self.weights, self.lesson.seen(pixels))
                if not found.isfinite().all():
                    return torch.nan
                wrong += int((found.argmax(dim=1) != labels).sum())
        return wrong / len(test)

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the training depends on."""
        return {
            "weights": [one.detach() for one in self.weights],
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "diverged": self.diverged,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        with torch.no_grad():
            for one, saved in zip(self.weights, state["weights"], strict=True):
                one.copy_(saved)
        self.optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        self.diverged.copy_(state["diverged"])
