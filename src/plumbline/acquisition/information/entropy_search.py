"""Entropy search: information of an observation about the optimum's location, its value, or both.

The information is the entropy reduction of the observation given a draw of the optimum, averaged over draws. It is a
closed form, or an integral over one variable, of the posterior at the point and at the draws. Pending points count as
observed at their posterior means.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from plumbline.acquisition.covariances import through_covariances
from plumbline.acquisition.information.divergence import FAR, divergence_of_sign
from plumbline.acquisition.information.orthant import correction, cut, positive_sites
from plumbline.acquisition.information.paths import Peaks
from plumbline.models.gp.marginal import LEAST_VARIANCE
from plumbline.models.gp.process import GP
from plumbline.spaces.with_gradient import Differentiated


class EntropySearch(Differentiated):
    """The information of an observation, averaged over draws of the optimum.

    Args:
        process: fitted GP with the same noise variance for all observations.
        optima: P draws of its optimum, in the problem's bounds and in units of the observations.
    """

    def __init__(self, process: GP, optima: Peaks) -> None:
        super().__init__(process.model)
        self.without_pending, self.optima = process, optima
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Condition the GP on pending points, `p x d`, at their posterior means."""
        super().set_X_pending(X_pending)
        now = self.without_pending if X_pending is None else self.without_pending.kriging_believer(X_pending)
        self.process = now.absorbed
        self.value = self.process.standardisation.outputs(self.optima.f)

    @property
    def U(self) -> Tensor:  # noqa: N802
        """The points whose prior covariances with x enter the information, `k x d` in the unit cube: the data's."""
        return self.process.U

    @abstractmethod
    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, as a function of prior covariances with the points `U`, `b x k`."""

    def values(self, X: Tensor) -> Tensor:
        """Return the information at `b x 1 x d` points: `b`."""
        return self.information(self.process.prior(self.process.standardisation.inputs(X.squeeze(-2)), self.U))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the information at `b x 1 x d` points, `b`, and its derivatives, `b x 1 x d`."""
        value, gradient = through_covariances(self.process, self.U, self.information, X.squeeze(-2))
        return value, gradient.unsqueeze(-2)

    def marginals(self, K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `R^-1 k`, `b x n`, and standardised means and variances of f, `b x 1`, from covariances with data."""
        half = K @ self.process.inverse_root.mT
        mean = self.process.at.constant + half @ self.process.whitened
        variance = (self.process.at.outputscale - half.square().sum(-1)).clamp_min(LEAST_VARIANCE)
        return half, mean.unsqueeze(-1), variance.unsqueeze(-1)


class MaxValueEntropySearch(EntropySearch):
    """Information about the greatest value of f; Wang & Jegelka (2017), with noise as in Takeno et al. (2020).

    Given the draw, the normal variable `f* - f(x)` is at least zero. Its correlation with an observation has the
    magnitude r of that of f(x). The entropy reduction is the divergence plus `(1 - E w^2) / 2` of the standardised
    observation w, which is `r^2 gamma phi(gamma) / Phi(gamma) / 2` with `gamma = (f* - mean) / sd`.
    """

    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, as a function of prior covariances with the data, `b x n`."""
        _, mean, variance = self.marginals(K)
        gamma = ((self.value - mean) / variance.sqrt()).clamp_min(-FAR)
        r2 = (variance / (variance + self.process.noise)).expand_as(gamma)
        ratio, _ = cut(gamma)
        return (divergence_of_sign(r2, gamma) + 0.5 * r2 * gamma * ratio).mean(-1)


class AboutPlaces(EntropySearch):
    """Entropy search that uses the posterior at the optima's locations."""

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Condition the GP on pending points, `p x d`, at their posterior means."""
        super().set_X_pending(X_pending)
        self.there = self.process.marginal_posterior(self.optima.X)

    @property
    def U(self) -> Tensor:  # noqa: N802
        """The data's points and the optima, `(n + P) x d` in the unit cube."""
        return torch.cat([self.process.U, self.process.standardisation.inputs(self.optima.X)])

    def joint_with_optima(self, K: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return `R^-1 k`, `b x n`, means and variances of f, `b x 1`, and its covariances with the optima, `b x P`.

        Args:
            K: `b x (n + P)`, prior covariances with data and optima.
        """
        n = len(self.process.y)
        half, mean, variance = self.marginals(K[:, :n])
        return half, mean, variance, K[:, n:] - half @ self.there.half.mT

    def entropy_reduction(self, variance: Tensor, left: Tensor) -> Tensor:
        """Return the mean entropy reduction of an observation, `b`.

        Args:
            variance: variance of f, `b x 1`.
            left: variance of f given each draw, `b x P`.
        """
        noise = self.process.noise
        return 0.5 * ((variance + noise).log() - (left + noise).log()).mean(-1)


class JointEntropySearch(AboutPlaces):
    """A lower bound on information about the optimum's location and value; Hvarfner et al. (2022), Tu et al. (2022).

    Given a draw, f passes through the optimum and is at most its value elsewhere. We replace the distribution of an
    observation by the normal one of the same variance, which has the greatest entropy.
    """

    def information(self, K: Tensor) -> Tensor:
        """Return the bound, `b`, as a function of prior covariances with data and optima, `b x (n + P)`."""
        _, mean, variance, covariance = self.joint_with_optima(K)
        slope = covariance / self.there.spread.square()
        given = mean + slope * (self.value - self.there.location)
        left = (variance - slope * covariance).clamp_min(LEAST_VARIANCE)
        _, share = cut((self.value - given) / left.sqrt())
        return self.entropy_reduction(variance, left * share)


class PredictiveEntropySearch(AboutPlaces):
    """Information about the optimum's location, by expectation propagation; Hernandez-Lobato et al. (2014).

    Given a draw, f at the optimum is at least as great as at the data and at x. The constraints at the data are
    approximated once; the constraint at x changes its variance in closed form. Values of f at the data are not taken as
    known, since observations are noisy. Redundant constraints at the data count more than once, as always in
    expectation propagation.
    """

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Condition the GP on pending points, `p x d`, at their posterior means."""
        super().set_X_pending(X_pending)
        process, noise = self.process, self.process.noise
        inverse = process.inverse_root.mT @ process.inverse_root
        among = noise * (torch.eye(len(inverse)).to(inverse) - noise * inverse)
        # Covariances of f at the optima with f at the data, P x n, and with f at the optima minus f at the data.
        covariance = noise * self.there.half @ process.inverse_root
        variance = self.there.spread.square().unsqueeze(-1)
        self.above = variance - covariance
        ahead = self.there.location.unsqueeze(-1) - (process.y - process.residuals)
        spread = among + variance.unsqueeze(-1) - covariance.unsqueeze(-1) - covariance.unsqueeze(-2)
        self.correction = correction(ahead, spread, positive_sites(ahead, spread))

    def information(self, K: Tensor) -> Tensor:
        """Return the information, `b`, as a function of prior covariances with data and optima, `b x (n + P)`."""
        half, mean, before, covariance = self.joint_with_optima(K)
        # Covariances of f(x), and of f(x*) - f(x), with f(x*) minus f at the data: b x P x n.
        of_x = covariance.unsqueeze(-1) - (self.process.noise * half @ self.process.inverse_root).unsqueeze(-2)
        of_ahead = self.above - of_x
        x_moved, ahead_moved = (torch.einsum("bpn,pnm->bpm", one, self.correction.matrix) for one in (of_x, of_ahead))
        ahead = self.there.location - mean + (of_ahead * self.correction.weight).sum(-1)
        variance = (before - (x_moved * of_x).sum(-1)).clamp_min(LEAST_VARIANCE)
        spread = self.there.spread.square() + before - 2 * covariance - (ahead_moved * of_ahead).sum(-1)
        spread = spread.clamp_min(LEAST_VARIANCE)
        shared = covariance - before - (x_moved * of_ahead).sum(-1)
        _, share = cut(ahead / spread.sqrt())
        left = variance - shared.square() / spread * (1 - share)
        return self.entropy_reduction(before, left.clamp_min(LEAST_VARIANCE))
