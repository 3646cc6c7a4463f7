"""What an observation says of the optimum, given draws of it: of its place, of its value, or of both.

The information is the entropy that an observation's law loses when a draw is known, on average over the draws: a closed
form, or an integral over one variable, of what the process says of the point and of the draws. Points that are pending
count as if they had been seen, and had been what is expected there.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from plumbline.acquisition.covariances import through_covariances
from plumbline.acquisition.information.divergence import FAR, divergence_of_sign
from plumbline.acquisition.information.orthant import correction, cut, positive_sites
from plumbline.acquisition.information.paths import Peaks
from plumbline.acquisition.knowledge_gradient.mean_update import believed
from plumbline.models.gp.process import GP, LEAST_VARIANCE
from plumbline.spaces.with_gradient import Differentiated


class EntropySearch(Differentiated):
    """The mean information of an observation over draws of the optimum.

    Args:
        process: fitted, with the same noise variance for all observations.
        optima: draws of its optimum, P of them, in the problem's bounds and in units of the observations.
    """

    def __init__(self, process: GP, optima: Peaks) -> None:
        super().__init__(process.model)
        self.untold, self.optima = process, optima
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Go on as if `p x d` points had been seen."""
        super().set_X_pending(X_pending)
        now = self.untold if X_pending is None else believed(self.untold, X_pending)
        self.process = now.absorbed
        self.value = self.process.standardisation.outputs(self.optima.f)

    @property
    def U(self) -> Tensor:  # noqa: N802
        """The points whose prior covariances with x count, `k x d` in the unit cube: the data's."""
        return self.process.U

    @abstractmethod
    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, of prior covariances with the points `U`, `b x k`."""

    def values(self, X: Tensor) -> Tensor:
        """Return the information at `b x 1 x d` points: `b`."""
        return self.information(self.process.prior(self.process.standardisation.inputs(X.squeeze(-2)), self.U))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the information at `b x 1 x d` points, `b`, and its derivatives, `b x 1 x d`."""
        value, gradient = through_covariances(self.process, self.U, self.information, X.squeeze(-2))
        return value, gradient.unsqueeze(-2)

    def moments(self, K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `R^-1 k`, `b x n`, means and variances of f, `b x 1`, standardised, of covariances with the data."""
        half = K @ self.process.inverse_root.mT
        mean = self.process.at.constant + half @ self.process.whitened
        variance = (self.process.at.outputscale - half.square().sum(-1)).clamp_min(LEAST_VARIANCE)
        return half, mean.unsqueeze(-1), variance.unsqueeze(-1)


class MaxValueEntropySearch(EntropySearch):
    """Information about the greatest value of f; Wang & Jegelka (2017), with noise as in Takeno et al. (2020).

    That f(x) is at most f* is that another normal variable, `f* - f(x)`, is at least zero: an observation is correlated
    with it as it is with f(x), by r. The entropy that is lost is the divergence and `(1 - E w^2) / 2` of the
    standardised observation w, which is `r^2 gamma phi(gamma) / Phi(gamma) / 2` with `gamma = (f* - mean) / sd`.
    """

    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, of prior covariances with the data, `b x n`."""
        _, mean, variance = self.moments(K)
        gamma = ((self.value - mean) / variance.sqrt()).clamp_min(-FAR)
        r2 = (variance / (variance + self.process.noise)).expand_as(gamma)
        ratio, _ = cut(gamma)
        return (divergence_of_sign(r2, gamma) + 0.5 * r2 * gamma * ratio).mean(-1)


class AboutPlaces(EntropySearch):
    """Entropy search that asks what the process says of the optima's places."""

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Go on as if `p x d` points had been seen."""
        super().set_X_pending(X_pending)
        self.there = self.process.marginal_posterior(self.optima.X)

    @property
    def U(self) -> Tensor:  # noqa: N802
        """The data's points and the optima, `(n + P) x d` in the unit cube."""
        return torch.cat([self.process.U, self.process.standardisation.inputs(self.optima.X)])

    def laws(self, K: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return `R^-1 k`, `b x n`, means and variances of f, `b x 1`, and covariances with f at the optima, `b x P`.

        Args:
            K: `b x (n + P)`, prior covariances with data and optima.
        """
        n = len(self.process.y)
        half, mean, variance = self.moments(K[:, :n])
        return half, mean, variance, K[:, n:] - half @ self.there.half.mT

    def lost(self, variance: Tensor, left: Tensor) -> Tensor:
        """Return the mean entropy that an observation loses, `b`.

        Args:
            variance: of f before, `b x 1`.
            left: of it given each draw, `b x P`.
        """
        noise = self.process.noise
        return 0.5 * ((variance + noise).log() - (left + noise).log()).mean(-1)


class JointEntropySearch(AboutPlaces):
    """A lower bound on the information about the optimum's place and value; Hvarfner et al. (2022), Tu et al. (2022).

    Given a draw, f passes through the optimum, and is at most its value elsewhere. The law of an observation is taken
    to be the normal one of its variance then, which has the greatest entropy of all.
    """

    def information(self, K: Tensor) -> Tensor:
        """Return the bound, `b`, of prior covariances with data and optima, `b x (n + P)`."""
        _, mean, variance, covariance = self.laws(K)
        gain = covariance / self.there.spread.square()
        given = mean + gain * (self.value - self.there.location)
        left = (variance - gain * covariance).clamp_min(LEAST_VARIANCE)
        _, share = cut((self.value - given) / left.sqrt())
        return self.lost(variance, left * share)


class PredictiveEntropySearch(AboutPlaces):
    """Information about where the optimum is, by expectation propagation; Hernandez-Lobato et al. (2014).

    Given a draw, f is at least as great there as at all of the data and at x. What that says of x by way of the data is
    found once; that f(x) is no greater changes its variance in closed form. Values at the data are not taken for known:
    they are not, with noise. Data that say the same of the optimum count more than once, as in all of expectation
    propagation.
    """

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Go on as if `p x d` points had been seen."""
        super().set_X_pending(X_pending)
        process, noise = self.process, self.process.noise
        inverse = process.inverse_root.mT @ process.inverse_root
        among = noise * (torch.eye(len(inverse)).to(inverse) - noise * inverse)
        # Of f at the optima with f at the data, P x n, and with what it is above it there.
        covariance = noise * self.there.half @ process.inverse_root
        variance = self.there.spread.square().unsqueeze(-1)
        self.above = variance - covariance
        ahead = self.there.location.unsqueeze(-1) - (process.y - process.residuals)
        spread = among + variance.unsqueeze(-1) - covariance.unsqueeze(-1) - covariance.unsqueeze(-2)
        self.told = correction(ahead, spread, positive_sites(ahead, spread))

    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, of prior covariances with data and optima, `b x (n + P)`."""
        half, mean, before, covariance = self.laws(K)
        # Of f(x), and of what f is above it at the optimum, with what it is above the data there: b x P x n.
        of_x = covariance.unsqueeze(-1) - (self.process.noise * half @ self.process.inverse_root).unsqueeze(-2)
        of_ahead = self.above - of_x
        x_told, ahead_told = (torch.einsum("bpn,pnm->bpm", one, self.told.matrix) for one in (of_x, of_ahead))
        ahead = self.there.location - mean + (of_ahead * self.told.weight).sum(-1)
        variance = (before - (x_told * of_x).sum(-1)).clamp_min(LEAST_VARIANCE)
        spread = self.there.spread.square() + before - 2 * covariance - (ahead_told * of_ahead).sum(-1)
        spread = spread.clamp_min(LEAST_VARIANCE)
        shared = covariance - before - (x_told * of_ahead).sum(-1)
        _, share = cut(ahead / spread.sqrt())
        left = variance - shared.square() / spread * (1 - share)
        return self.lost(before, left.clamp_min(LEAST_VARIANCE))
