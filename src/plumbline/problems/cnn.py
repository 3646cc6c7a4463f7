"""Hyperparameters of a convolutional network, where an evaluation trains a network; CAL, section 5.3.2 and table 1.

A point is (batch size, log10 learning rate, log10 decay, log10 L2, hidden units, convolution channels). Values are
minus the test error, the share of misclassified test images. All trainings of a trial draw initial weights and the
order of images from the same streams, which depend on the trial's seed. Hence a point has one value in a trial, and
there is no other noise. A network that diverges is observed as a failure.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import torch
from botorch.test_functions import SyntheticTestFunction
from pydantic import PositiveInt
from torch import Tensor

from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.data.sources.images import Images
from plumbline.models.learned.convolutional import Hyperparameters, Lesson, Training
from plumbline.models.learned.images import read_images
from plumbline.problems.base import Context, EvaluationContext, Problem, problems
from plumbline.problems.build import problem_of
from plumbline.registry.references import canonical_json
from plumbline.spaces.stepped import Stepped, on_steps
from plumbline.trainers.checkpoint import Checkpoint


class Axis(NamedTuple):
    """The range of a hyperparameter, of its logarithm to base ten if it is `logarithmic`; step 0 if continuous."""

    low: float
    high: float
    step: float = 0.0
    logarithmic: bool = False


AXES = {
    "batch": Axis(32, 512, 32),
    "learning_rate": Axis(-7, -1, logarithmic=True),
    "decay": Axis(-7, -3, logarithmic=True),
    "l2": Axis(-7, -3, logarithmic=True),
    "units": Axis(256, 512, 16),
    "channels": Axis(128, 256, 16),
}
"""CAL, table 1."""


class CnnOptions(Options):
    """Options of the problem.

    Attributes:
        images: a data set of images in `config/models.yaml`.
        epochs: passes over the training images.
        shrink: divisor of a point's units and channels.
    """

    images: Annotated[str, Input("models/{}.npz")] = "cifar-10-images"
    epochs: PositiveInt = 20
    shrink: PositiveInt = 1


class ConvolutionalNetwork(SyntheticTestFunction):
    """Minus the test error of a network; NaN where it diverges.

    Attributes:
        steps: `d`, 0 for continuous inputs.
    """

    _is_minimization_by_default = False

    def __init__(self, images: Images, options: CnnOptions, seed: int) -> None:
        """Create the problem.

        Args:
            images: training and test images.
            options: options of the problem.
            seed: seed of all randomness.
        """
        self.dim = len(AXES)
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(axis.low, axis.high) for axis in AXES.values()]
        super().__init__(dtype=torch.float64)
        self.steps = torch.tensor([axis.step for axis in AXES.values()], dtype=torch.float64)
        self.options, self.seed = options, seed
        self._images = images
        self._device = torch.device("cpu")
        self._lesson: Lesson | None = None
        self._errors: dict[Hyperparameters, float] = {}
        self._checkpoint: Checkpoint | None = None
        self._unfinished: tuple[Hyperparameters, dict[str, Any]] | None = None

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: they are unknown."""
        raise NotImplementedError("The best hyperparameters of a network are not known.")

    def prepare(self, place: EvaluationContext) -> None:
        """Use the device of `place`, and resume the unfinished training saved there.

        The file also holds the errors of trained networks, so that a killed trial does not train them again.
        """
        self._device, self._lesson = place.device, None
        identity = canonical_json([self.options.model_dump(mode="json"), self.seed])
        self._checkpoint = Checkpoint(place.unfinished, identity)
        if saved := self._checkpoint.restore():
            self._errors = {Hyperparameters(*point): error for point, error in saved["errors"]}
            point, state = saved["training"]
            self._unfinished = Hyperparameters(*point), state

    def hyperparameters(self, x: Sequence[float]) -> Hyperparameters:
        """Return the hyperparameters of a point (`d`) rounded to its nearest steps, with channels and units divided."""
        bounds = torch.tensor(self._bounds, dtype=torch.float64).T
        put = on_steps(torch.tensor(x, dtype=torch.float64), bounds, self.steps).tolist()
        named = {
            name: 10.0**value if axis.logarithmic else round(value)
            for (name, axis), value in zip(AXES.items(), put, strict=True)
        }
        for name in ("units", "channels"):
            named[name] = max(round(named[name] / self.options.shrink), 1)
        return Hyperparameters(**named)

    def error(self, chosen: Hyperparameters) -> float:
        """Return the test error of a network with these hyperparameters, after training it once."""
        if chosen not in self._errors:
            self._lesson = self._lesson or Lesson.of(self._images, self._device)
            training = Training(self._lesson, chosen, self.options.epochs, self.seed)
            if self._unfinished and self._unfinished[0] == chosen:
                training.load(self._unfinished[1])
            self._unfinished = None
            self._errors[chosen] = training.run(lambda: self._save(chosen, training))
        return self._errors[chosen]

    def _save(self, chosen: Hyperparameters, training: Training) -> None:
        if self._checkpoint and self._checkpoint.due:
            errors = [(tuple(point), error) for point, error in self._errors.items()]
            self._checkpoint.save({"errors": errors, "training": (tuple(chosen), training.state())})

    def _evaluate_true(self, X: Tensor) -> Tensor:
        rows = X.detach().reshape(-1, self.dim).double().tolist()
        errors = [self.error(self.hyperparameters(x)) for x in rows]
        return -torch.tensor(errors, dtype=torch.float64).reshape(X.shape[:-1]).to(X)


@problems.register("cnn", CnnOptions)
def cnn(options: CnnOptions, context: Context) -> Problem:
    """6-d, batch size, learning rate, its decay, L2, units and channels of a network, by its error on test images."""
    images = read_images(context.data / "models" / f"{options.images}.npz")
    function = ConvolutionalNetwork(images, options, draw_seed(context.generator))
    return problem_of(function, space=Stepped(function.bounds, function.steps), may_fail=True, prepare=function.prepare)
