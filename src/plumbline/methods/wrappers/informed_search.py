"""A search whose climbs start where the posterior is promising, besides everywhere."""

from dataclasses import replace
from typing import Any

import torch

from plumbline.methods.base import methods
from plumbline.methods.composed import Round, Steps
from plumbline.methods.wrapper import ComposedWrapper, ComposedWrapperOptions
from plumbline.models.botorch_model import ProcessModel
from plumbline.spaces.base import Space
from plumbline.spaces.box import Box
from plumbline.spaces.informed import InformedBox


class InformedSearchOptions(ComposedWrapperOptions):
    """Options of a search that starts at the incumbent, at maximisers of posterior samples, and everywhere.

    Attributes:
        base: the method; its own `search` says how many climbs start from how many raw samples.
    """

    needs = frozenset({"steps", "new points", "one posterior"})


@methods.register("informed-search", InformedSearchOptions)
class InformedSearch(ComposedWrapper):
    """Any method whose search climbs in a box, with starts of three kinds instead of one.

    The raw samples are half of a Sobol sequence, a quarter around the incumbent (the datum of greatest posterior mean),
    and a quarter maximisers of posterior samples. The best of each kind in turn are the starts. Comparisons of methods
    within it are of what they maximise, and less of how they search for it. A search in a table is left as it is.
    """

    options: InformedSearchOptions

    @property
    def steps(self) -> Steps[Any]:
        """The base's steps, in a region with starts of its own."""
        return replace(self.base.steps, search_region=self.search_region)

    def search_region(self, surrogate: Any, round: Round) -> Space:
        """Return the base's region, with the posterior that starts come from."""
        space = self.base.steps.search_region(surrogate, round)
        if type(space) is not Box:
            return space
        X = round.data.X
        with torch.no_grad():
            mean, _ = surrogate.posterior_moments(X, joint=False)
        return InformedBox(space.bounds, ProcessModel(surrogate), X[mean.argmax()], space.units)
