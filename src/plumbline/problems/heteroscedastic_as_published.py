"""The noise of CBO's figure 6 as its published script has it; the functions are the paper's.

Both departures look like slips: the sign of the exponent, and an exponent where the dimension was meant.
"""

import torch
from torch import Tensor

from plumbline.problems.base import Context, problems
from plumbline.problems.heteroscedastic import DoubleKnot, DoubleKnotOptions, Sinc, SincOptions


class PublishedSinc(Sinc):
    """`sinc` with noise variance `2 / (1 + exp(-x/2))`: loud to the right instead of to the left."""

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `2 / (1 + exp(-x/2))`: `n`."""
        return 2 * torch.sigmoid(X.squeeze(-1) / 2)


class PublishedDoubleKnot(DoubleKnot):
    """`double-knot` whose noise variance has `1 / (1 / |x_1| + 1 / |x_2|)` in place of the norm: none on the axes.

    The script takes the norm of exponent -1 over all points that it observes at once. Those of an initial design are
    therefore observed with less noise still than here, where each point has its own.
    """

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `1 / sum_i 1 / |x_i|`: `n`."""
        return X.abs().reciprocal().sum(dim=-1).reciprocal()


@problems.register("sinc-code", SincOptions, "sinc with the noise of CBO's script, which grows to the right")
def sinc_code(options: SincOptions, _: Context) -> PublishedSinc:
    """Return the sinc problem of the published script."""
    return PublishedSinc(options.noise_factor)


@problems.register("double-knot-code", DoubleKnotOptions, "double-knot with the noise of CBO's script, next to none")
def double_knot_code(options: DoubleKnotOptions, _: Context) -> PublishedDoubleKnot:
    """Return the double-knot problem of the published script."""
    return PublishedDoubleKnot(options.noise_factor)
