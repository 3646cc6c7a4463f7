"""Images that need no download: digits of three by five dots, moved about, light on dark, under noise."""

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
"""Pixels of a side; a dot has two by two of them."""

CONTRAST = 150.0
"""The darkest light, of 255; the lightest dark is as far from the other end."""

NOISE = 20.0
"""Standard deviation, of 255."""

CLASSES = tuple(map(str, range(10)))


def glyph(digit: int) -> NDArray[np.bool_]:
    """Return where a digit has ink: `10 x 6` pixels."""
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
    """Return as many images of each digit to learn from, and as many to be judged by, in random order."""
    return Images(CLASSES, _part(a_class, generator), _part(a_class, generator))
