"""Small labelled images, in a training and a test part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbline.core.errors import PlumblineError

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Labelled images.

    Attributes:
        pixels: `n x channels x height x width`, 0 to 255.
        labels: `n`, indices of classes.
    """

    pixels: Pixels
    labels: Labels


@dataclass(frozen=True)
class Images:
    """A data set of images.

    Attributes:
        classes: names, in the order of their indices.
        train: training images.
        test: test images.
    """

    classes: tuple[str, ...]
    train: Part
    test: Part


def some_of_each(part: Part, number: int, generator: np.random.Generator) -> Part:
    """Return `number` images of each class, drawn without replacement, in their original order.

    Raises:
        PlumblineError: a class has fewer images.
    """
    labels, counts = np.unique(part.labels, return_counts=True)
    if counts.min() < number:
        raise PlumblineError(f"{number} images of each class: one has {counts.min()} only, lower `a_class`")
    drawn = [generator.permutation(np.flatnonzero(part.labels == label))[:number] for label in labels]
    rows = np.sort(np.concatenate(drawn))
    return Part(part.pixels[rows], part.labels[rows])
