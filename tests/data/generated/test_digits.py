import numpy as np

from plumbline.data.generated.digits import GLYPHS, generated_digits, glyph


def test_digits_differ() -> None:
    assert len(set(GLYPHS)) == 10
    assert {glyph(digit).shape for digit in range(10)} == {(10, 6)}
    assert glyph(1)[:, 2:4].all()


def test_as_many_of_each_in_either_part_and_others() -> None:
    images = generated_digits(7, np.random.default_rng(0))
    for part in (images.train, images.test):
        assert part.pixels.shape == (70, 3, 12, 12)
        assert part.pixels.dtype == np.uint8
        assert np.bincount(part.labels).tolist() == [7] * 10
        assert (np.diff(part.labels) < 0).any()
    assert not np.array_equal(images.train.pixels, images.test.pixels)


def test_the_same_generator_makes_the_same() -> None:
    one, same, other = (generated_digits(3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.train.pixels, same.train.pixels)
    assert not np.array_equal(one.train.pixels, other.train.pixels)


def test_ink_is_light_on_dark() -> None:
    train = generated_digits(20, np.random.default_rng(0)).train
    ones = train.pixels[train.labels == 1].astype(float)
    light = np.sort(ones.reshape(20, 3, -1), axis=2)[:, :, -20:].mean()
    assert light > ones.mean() + 50
