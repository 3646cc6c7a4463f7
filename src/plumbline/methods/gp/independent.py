"""The common base of methods for several outcomes: an independent GP for each outcome."""

from collections.abc import Sequence

import torch
from torch import Tensor

from plumbline.core.history import History
from plumbline.forecasts.predictive import JointGaussianPredictive
from plumbline.methods.base import Predictor
from plumbline.methods.composed import SurrogateMethod
from plumbline.methods.gp.single_outcome import gaussian_predictor
from plumbline.models.gp.fit import fit_outcomes
from plumbline.models.gp.process import GP


def joint_predictor(processes: Sequence[GP]) -> Predictor:
    """Return a map of `n x d` points to forecasts of all outcomes."""

    def predict(points: Tensor) -> JointGaussianPredictive:
        with torch.no_grad():
            forecasts = [gaussian_predictor(process)(points) for process in processes]
            mean = torch.stack([one.mean for one in forecasts], dim=-1)
            return JointGaussianPredictive(mean, torch.stack([one.sd for one in forecasts], dim=-1))

    return predict


class IndependentMethod(SurrogateMethod[list[GP]]):
    """One Gaussian process an outcome; a subclass gives the acquisition function, and has the option `model`."""

    provides = SurrogateMethod.provides | {"gp", "kernel"}

    def training_rows(self, history: History) -> History:
        """Return the full history: each outcome's model selects the rows where it was observed."""
        return history

    def fit(self, data: History) -> list[GP]:
        """Return one model an outcome."""
        return fit_outcomes(data, self.domain.bounds, self.options.model)

    def predictive(self, surrogate: list[GP]) -> Predictor:
        """Return the models' predictions."""
        return joint_predictor(surrogate)
