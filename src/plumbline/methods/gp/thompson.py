"""Thompson sampling: queries at the maximiser of a posterior draw."""

import torch
from botorch.acquisition import AcquisitionFunction
from pydantic import PositiveInt

from plumbline.acquisition.information.paths import PathAcquisition
from plumbline.methods.base import methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.single_outcome import GPMethod, GPOptions
from plumbline.models.gp.pathwise import FEATURES, draw_paths
from plumbline.models.gp.process import GP
from plumbline.spaces.search import MultiStart


class ThompsonOptions(GPOptions):
    """Options of Thompson sampling.

    Attributes:
        features: number of random frequencies in a draw of the prior.
    """

    features: PositiveInt = FEATURES


@methods.register("ts", ThompsonOptions)
class ThompsonSampling(GPMethod):
    """The maximiser of a posterior draw by Matheron's rule, with a new draw for each point of a batch."""

    options: ThompsonOptions

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the draw for the first point."""
        return self._draw(surrogate, round)

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the maximisers of q draws, without repeated rows of a table."""
        space = round.settled
        chosen = []
        for i in range(round.q):
            if space.size == 0:
                break
            drawn = utility if i == 0 else self._draw(surrogate, round)
            chosen.append(space.maximise(drawn, MultiStart(1, self.options.search, round.seed + i)))
            space = space.without(chosen[-1])
        return Choice(torch.cat(chosen), utility, surrogate)

    def _draw(self, surrogate: GP, round: Round) -> PathAcquisition:
        return PathAcquisition(draw_paths(surrogate, 1, round.generator, self.options.features))
