"""The knowledge gradient in one shot is BoTorch's, and its gradient that of finite differences."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.sampling import SobolQMCNormalSampler
from exact_gpytorch import gpytorch_model
from processes import made, somewhere

from plumbline.acquisition.knowledge_gradient.discrete import DiscreteKnowledgeGradient
from plumbline.acquisition.knowledge_gradient.mean_update import standard_normal
from plumbline.acquisition.knowledge_gradient.one_shot import OneShotKnowledgeGradient, good_starts


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_values_are_botorchs_at_the_same_draws(kernel: str) -> None:
    process, X = made(8, 2, kernel, 0, noise=0.1), somewhere(3, 9, 2, seed=2)
    sampler = SobolQMCNormalSampler(torch.Size([8]), seed=0)
    theirs = qKnowledgeGradient(gpytorch_model(process), 8, sampler)(X).detach()
    Z = sampler.base_samples.flatten()
    torch.testing.assert_close(OneShotKnowledgeGradient(process, Z)(X), theirs, rtol=1e-6, atol=1e-6)


def test_finite_differences() -> None:
    process = replace(made(8, 2, "matern52", 0, noise=0.1), deviation=1.4)
    utility = OneShotKnowledgeGradient(process, standard_normal(4))
    assert torch.autograd.gradcheck(utility, (somewhere(2, 5, 2, seed=3).requires_grad_(),), rtol=1e-4)


def test_starts_are_worth_what_the_discrete_gradient_says() -> None:
    process, points, queries = made(8, 2, "matern52", 0, noise=0.1), somewhere(20, 2, seed=1), somewhere(4, 2, seed=2)
    discrete = DiscreteKnowledgeGradient(process, points, 16)
    value = OneShotKnowledgeGradient(process, discrete.Z)(good_starts(process, queries, points, discrete.Z))
    torch.testing.assert_close(value - discrete.best, discrete(queries.unsqueeze(-2)))
