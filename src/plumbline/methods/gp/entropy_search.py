"""Entropy searches: queries of greatest information about the optimum."""

import warnings
from abc import abstractmethod
from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.sampling import manual_seed
from pydantic import Field
from torch import Tensor

from plumbline.acquisition.information import entropy_search
from plumbline.acquisition.information.entropy_search import EntropySearch
from plumbline.acquisition.information.paths import Peaks, degenerate, peaks, standardised
from plumbline.acquisition.monte_carlo import noisy_improvement
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.single_outcome import GPMethod, GPOptions
from plumbline.models.failures import SEARCH_FAILURES
from plumbline.models.gp.pathwise import draw_paths
from plumbline.models.gp.process import GP
from plumbline.spaces.base import Space
from plumbline.spaces.search import MultiStart


class NothingToLearnWarning(RuntimeWarning):
    """Draws of the optimum agree, or are not finite: noisy or constrained expected improvement chooses the query."""


class InformationFailedWarning(RuntimeWarning):
    """An entropy search failed numerically: noisy expected improvement chooses the query."""


class InformationOptions(GPOptions):
    """Options of the entropy searches.

    Attributes:
        optima: number of draws of the optimum.
    """

    optima: int = Field(default=16, ge=2)


class InformationMethod(GPMethod):
    """Information about the optimum, or about a part of it, given draws of it; batches are chosen sequentially.

    Draws are maximisers of posterior paths, found by gradient ascent. Where all draws agree, or on numerical failure,
    the method maximises noisy expected improvement, and logs an event of the round.

    Attributes:
        about: the part of the optimum whose information is maximised.
    """

    options: InformationOptions
    about: ClassVar[tuple[str, ...]]

    @abstractmethod
    def information(self, surrogate: GP, optima: Peaks) -> EntropySearch:
        """Return the acquisition function, given draws of the optimum in the problem's bounds."""

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the information, or noisy expected improvement where there is no information."""
        space = round.settled
        paths = draw_paths(surrogate, self.options.optima, round.generator)
        drawn = peaks(paths, space, self.options.search, round.seed)
        if degenerate(self.unknown(standardised(surrogate, drawn))):
            warnings.warn("all draws of the optimum agree", NothingToLearnWarning, stacklevel=2)
            return self._improvement(surrogate, round)
        try:
            return self.information(surrogate, drawn)
        except SEARCH_FAILURES as error:
            return self._instead(surrogate, round, error)

    def unknown(self, drawn: Peaks) -> Tensor:
        """Return the draws of the unknown part of the optimum: `P x k`."""
        parts = {"x": drawn.X, "f": drawn.f.unsqueeze(-1)}
        return torch.cat([parts[part] for part in self.about], -1)

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the sequentially chosen points of greatest information."""
        if not isinstance(utility, EntropySearch):
            return super().search(utility, surrogate, round)
        space = round.settled
        try:
            with manual_seed(round.seed):  # some of BoTorch draws from the global stream
                X = self._one_by_one(utility, space, round)
            failed: object = "a chosen point or its value is not finite" if lost(utility, X) else None
        except SEARCH_FAILURES as error:
            failed = error
        if failed is None:
            return Choice(X, utility, surrogate)
        instead = self._instead(surrogate, round, failed)
        return super().search(instead, surrogate, round)

    def _one_by_one(self, utility: EntropySearch, space: Space, round: Round) -> Tensor:
        chosen = round.history.X[:0]
        for i in range(round.q):
            if space.size == 0:
                break
            utility.set_X_pending(chosen if len(chosen) else None)
            chosen = torch.cat([chosen, space.maximise(utility, MultiStart(1, self.options.search, round.seed + i))])
            space = space.without(chosen)
        utility.set_X_pending(None)
        return chosen

    def _instead(self, surrogate: GP, round: Round, why: object) -> AcquisitionFunction:
        warnings.warn(f"entropy search: {why}", InformationFailedWarning, stacklevel=3)
        return self._improvement(surrogate, round)

    def _improvement(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        return noisy_improvement(surrogate, round.data.X, self.options.mc_samples, round.seed)


def lost(utility: AcquisitionFunction, X: Tensor) -> bool:
    """Whether points, `q x d`, or their acquisition values are not finite."""
    with torch.no_grad():
        return not bool(torch.isfinite(X).all() and torch.isfinite(utility(X.unsqueeze(-2))).all())


@methods.register("mes", InformationOptions)
class MaxValueEntropySearchMethod(InformationMethod):
    """Information about the greatest value of f; Wang & Jegelka (2017)."""

    about = ("f",)

    def information(self, surrogate: GP, optima: Peaks) -> EntropySearch:
        """Return the acquisition function, given draws of the optimum in the problem's bounds."""
        return entropy_search.MaxValueEntropySearch(surrogate, optima)


@methods.register("pes", InformationOptions)
class PredictiveEntropySearchMethod(InformationMethod):
    """Information about the maximiser of f; Hernandez-Lobato et al. (2014)."""

    about = ("x",)

    def information(self, surrogate: GP, optima: Peaks) -> EntropySearch:
        """Return the acquisition function, given draws of the optimum in the problem's bounds."""
        return entropy_search.PredictiveEntropySearch(surrogate, optima)


@methods.register("jes", InformationOptions)
class JointEntropySearchMethod(InformationMethod):
    """Information about the maximum of f and its maximiser; Hvarfner et al. (2022)."""

    about = ("x", "f")

    def information(self, surrogate: GP, optima: Peaks) -> EntropySearch:
        """Return the acquisition function, given draws of the optimum in the problem's bounds."""
        return entropy_search.JointEntropySearch(surrogate, optima)
