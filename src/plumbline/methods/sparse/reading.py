"""Readings of how the knowledge gradient simulates an observation and conditions on it.

Maus et al. (2024), section 3.3, condition on a sample of the objective's value. A value of f is drawn with the variance
of f and conditioned on without noise; an observation has the noise in both. A draw of f that is conditioned on as if it
were an observation, our former reading, shrinks the update twice.
"""

from typing import Literal

from torch import Tensor

Reading = Literal["noise-free", "noisy", "shrunk-twice"]
"""What is drawn and conditioned on: a value of f, an observation, or a value of f as if it were an observation."""


def variances(variance: Tensor, noise: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
    """Return the variances with which an observation is drawn and conditioned on.

    With the covariance c of a query and a maximiser, and a standard normal draw eps, the mean at the maximiser moves by
    `c sqrt(drawn) / conditioned eps`: by `c / sd eps` without noise, `c / sqrt(sd^2 + noise) eps` with it.

    Args:
        variance: of f at the queries, positive.
        noise: variance of the noise; broadcasts with `variance`.
        reading: what is drawn and conditioned on.
    """
    noisy = variance + noise
    return noisy if reading == "noisy" else variance, variance if reading == "noise-free" else noisy


def variances_vjp(grad_drawn: Tensor, grad_conditioned: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
    """Return the gradients in `variance` and in `noise`, elementwise, of a function of `variances`."""
    grad_noise = (reading == "noisy") * grad_drawn + (reading != "noise-free") * grad_conditioned
    return grad_drawn + grad_conditioned, grad_noise
