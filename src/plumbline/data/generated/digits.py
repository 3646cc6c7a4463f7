"""Generated images: noisy digits of three by five dots, light on dark, at random positions."""

import numpy as np
from numpy.typing import NDArray

from plumbline.data.sources.images import Images, Part

GLYPHS = (
    "###/#.#/#.#/#.#/###",
    ".#./##./.#./.#./###",
    "###/..#/###/#../###",
    "###/..#/###/..#/###",
    "#.#/#.#/###/..#/..#",
    "###/#../###/..#/###",
    "###/#../###/#.#/###",
    "###/..#/..#/.#./.#.",
    "###/#.#/###/#.#/###",
    "###/#.#/###/..#/###",
)
"""Rows of dots of each digit."""

SIZE = 12
"""Side of an image in pixels; a dot has two by two pixels."""

CONTRAST = 150.0
"""Least value of a light pixel, of 255; dark pixels are symmetric."""

NOISE = 20.0
"""Standard deviation of the noise, of 255."""

CLASSES = tuple(map(str, range(10)))


def glyph(digit: int) -> NDArray[np.bool_]:
    """Return a mask of the pixels of a digit: `10 x 6`."""
    dots = np.array([[dot == "#" for dot in row] for row in GLYPHS[digit].split("/")])
    return np.kron(dots, np.ones((2, 2), dtype=bool)).astype(bool)


def _part(a_class: int, generator: np.random.Generator) -> Part:
    labels = generator.permutation(np.repeat(np.arange(10), a_class))
    pixels = np.empty((len(labels), 3, SIZE, SIZE))
    for picture, label in zip(pixels, labels, strict=True):
        ink = np.zeros((SIZE, SIZE), dtype=bool)
        shape = glyph(label)
        height, width = shape.shape
        top, left = generator.integers(SIZE - height + 1), generator.integers(SIZE - width + 1)
        ink[top : top + height, left : left + width] = shape
        light, dark = generator.uniform(CONTRAST, 255, size=3), generator.uniform(0, 255 - CONTRAST, size=3)
        picture[:] = np.where(ink, light[:, None, None], dark[:, None, None])
    noisy = pixels + NOISE * generator.standard_normal(pixels.shape)
    return Part(noisy.clip(0, 255).astype(np.uint8), labels.astype(np.int64))


def generated_digits(a_class: int, generator: np.random.Generator) -> Images:
    """Return `a_class` training and as many test images of each digit, in random order."""
    return Images(CLASSES, _part(a_class, generator), _part(a_class, generator))
