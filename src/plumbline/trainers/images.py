"""Images for problems that train networks: archives are converted to our file, and nothing is trained."""

from typing import Annotated

import numpy as np
from pydantic import PositiveInt

from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.data.generated.digits import generated_digits as make_digits
from plumbline.data.sources.cifar import read_cifar, read_cifar_jpegs
from plumbline.data.sources.images import Images, some_of_each
from plumbline.data.sources.svhn import read_svhn
from plumbline.models.learned.images import write_images
from plumbline.trainers.base import Trained, TrainingContext, trainers


class ImageOptions(Options):
    """Options of all trainers of images.

    Attributes:
        a_class: number of images of each class, in either part; null for all.
    """

    a_class: PositiveInt | None = None


class CifarOptions(ImageOptions):
    """Options of `cifar-10`, with the downloaded archive."""

    archive: Annotated[str, Input("raw/{}")] = "cifar-10-python.tar.gz"


class CifarJpegOptions(ImageOptions):
    """Options of `cifar-10-jpegs`, with the downloaded archive."""

    archive: Annotated[str, Input("raw/{}")] = "cifar10-jpeg-subset.tar.gz"


class SvhnOptions(ImageOptions):
    """Options of `svhn`, with the downloaded files."""

    train: Annotated[str, Input("raw/{}")] = "train_32x32.mat"
    test: Annotated[str, Input("raw/{}")] = "test_32x32.mat"


class DigitOptions(Options):
    """Options of `generated-digits`: the number of images of each digit, in either part."""

    a_class: PositiveInt = 40


def _kept(images: Images, options: ImageOptions, context: TrainingContext) -> Trained:
    """Return the images, or the requested number of each class."""
    if options.a_class is None:
        return _written(images)
    generator = np.random.default_rng(draw_seed(context.generator))
    train, test = (some_of_each(part, options.a_class, generator) for part in (images.train, images.test))
    return _written(Images(images.classes, train, test))


def _written(images: Images) -> Trained:
    return Trained(lambda output, origin: write_images(output, images, origin))


@trainers.register("cifar-10", CifarOptions)
def cifar_10(options: CifarOptions, context: TrainingContext) -> Trained:
    """CIFAR-10's 60,000 images, or some of each class."""
    return _kept(read_cifar(context.data / "raw" / options.archive), options, context)


@trainers.register("cifar-10-jpegs", CifarJpegOptions)
def cifar_10_jpegs(options: CifarJpegOptions, context: TrainingContext) -> Trained:
    """Images of CIFAR-10 from an archive of JPEGs."""
    return _kept(read_cifar_jpegs(context.data / "raw" / options.archive), options, context)


@trainers.register("svhn", SvhnOptions)
def svhn(options: SvhnOptions, context: TrainingContext) -> Trained:
    """SVHN's 99,289 cropped digits, or some of each class."""
    raw = context.data / "raw"
    return _kept(read_svhn(raw / options.train, raw / options.test), options, context)


@trainers.register("generated-digits", DigitOptions)
def generated_digits(options: DigitOptions, context: TrainingContext) -> Trained:
    """Digits of a few dots, for runs without a network."""
    return _written(make_digits(options.a_class, np.random.default_rng(draw_seed(context.generator))))
