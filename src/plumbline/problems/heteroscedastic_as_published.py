"""The noise of CBO's figure 6 as in its published script; the functions are the paper's.

Both departures look like slips: the sign of the exponent, and the order of a norm passed in place of the dimension.
"""

import torch
from torch import Tensor

from plumbline.problems.base import Context, problems
from plumbline.problems.heteroscedastic import DoubleKnot, DoubleKnotOptions, Sinc, SincOptions


class PublishedSinc(Sinc):
    """`sinc` with noise variance `2 / (1 + exp(-x/2))`: large on the right instead of on the left."""

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `2 / (1 + exp(-x/2))`: `n`."""
        return 2 * torch.sigmoid(X.squeeze(-1) / 2)


class PublishedDoubleKnot(DoubleKnot):
    """`double-knot` with `1 / (1 / |x_1| + 1 / |x_2|)` in place of the norm in its noise variance: none on the axes.

    The script takes the norm of order -1 over all points of one call. It therefore observes the points of an initial
    design with even less noise than here, where each point has its own norm.
    """

    def noise_variance(self, X: Tensor) -> Tensor:
        """Return `1 / sum_i 1 / |x_i|`: `n`."""
        return X.abs().reciprocal().sum(dim=-1).reciprocal()


@problems.register("sinc-code", SincOptions, "sinc with the noise of CBO's script, which grows to the right")
def sinc_code(options: SincOptions, _: Context) -> PublishedSinc:
    """Return the sinc problem of the published script."""
    return PublishedSinc(options.noise_factor)


@problems.register("double-knot-code", DoubleKnotOptions, "double-knot with the noise of CBO's script, which is little")
def double_knot_code(options: DoubleKnotOptions, _: Context) -> PublishedDoubleKnot:
    """Return the double-knot problem of the published script."""
    return PublishedDoubleKnot(options.noise_factor)
