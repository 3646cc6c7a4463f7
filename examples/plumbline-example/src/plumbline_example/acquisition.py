"""An acquisition function for BoTorch's models."""

from botorch.acquisition import AcquisitionFunction
from botorch.utils import t_batch_mode_transform
from torch.distributions import Normal


class MarginEI(AcquisitionFunction):
    """Expected improvement on the best observation by more than a margin."""

    def __init__(self, model, best_f, margin=0.01):
        super().__init__(model)
        self.target = best_f + margin

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X):
        """Return the values of `b x 1 x d` points: `b`."""
        posterior, normal = self.model.posterior(X), Normal(0.0, 1.0)
        sd = posterior.variance.sqrt()
        z = (posterior.mean - self.target) / sd
        return (sd * (normal.log_prob(z).exp() + z * normal.cdf(z)))[..., 0, 0]
