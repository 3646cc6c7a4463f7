"""Online LDA by steps that touch few words is scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from plumbline.models.learned.online_lda import LEAST_SCALE, Topics, partial_fit

WORDS = 40


def posts(n: int, seed: int) -> csr_matrix:
    """Return `n` documents of few words, some of none."""
    rng = np.random.default_rng(seed)
    return csr_matrix(rng.poisson(0.15, (n, WORDS)) * (rng.random((n, 1)) < 0.9), dtype=np.float64)


def learner(minibatch: int, kappa: float, tau0: float, documents: int) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        4,
        learning_method="online",
        learning_decay=kappa,
        learning_offset=tau0,
        batch_size=minibatch,
        total_samples=documents,
        random_state=7,
    )


@settings(max_examples=30, deadline=None)
@given(
    minibatch=st.sampled_from([1, 2, 7, 64]),
    kappa=st.sampled_from([0.5, 0.7, 1.0]),
    tau0=st.sampled_from([1.0, 4.0, 32.0]),
    n=st.integers(1, 60),
    seed=st.integers(0, 1000),
)
def test_a_few_passes_are_those_of_scikit_learn(minibatch: int, kappa: float, tau0: float, n: int, seed: int) -> None:
    X = posts(n, seed)
    theirs, ours = (learner(minibatch, kappa, tau0, n) for _ in range(2))
    for _ in range(3):
        theirs.partial_fit(X)
        partial_fit(ours, X)
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6)
        np.testing.assert_allclose(ours.exp_dirichlet_component_, theirs.exp_dirichlet_component_, rtol=1e-5)
    assert ours.n_batch_iter_ == theirs.n_batch_iter_
    held = X.toarray() + 1
    assert ours.perplexity(held) == pytest.approx(theirs.perplexity(held), rel=1e-8)


def test_it_goes_on_from_what_scikit_learn_has_learned() -> None:
    X = posts(50, 1)
    theirs, ours = (learner(5, 0.7, 2.0, 50).partial_fit(X) for _ in range(2))
    theirs.partial_fit(X)
    partial_fit(ours, X)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-8)


def test_many_steps_do_not_underflow() -> None:
    """The product of their factors does: e^-2800 after these."""
    topics, plain = Topics(np.full((2, 3), 1.5), 0.5), np.full((2, 3), 1.5)
    words, statistics = np.array([0, 2]), np.array([[1.0, 2.0], [3.0, 0.5]])
    for _ in range(4000):
        topics.step(words, statistics, 0.5)
        plain *= 0.5
        plain += 0.5 * 0.5
        plain[:, words] += 0.5 * statistics
        assert topics.scale >= LEAST_SCALE
    np.testing.assert_allclose(topics.components, plain, rtol=1e-12)
    np.testing.assert_allclose(topics.scale * topics.totals, (plain - 0.5).sum(axis=1), rtol=1e-12)


def test_a_first_step_of_weight_one_forgets_where_it_began() -> None:
    topics = Topics(np.full((2, 3), 9.0), 0.5)
    topics.step(np.array([1]), np.array([[2.0], [4.0]]), 1.0)
    np.testing.assert_array_equal(topics.components, [[0.5, 2.5, 0.5], [0.5, 4.5, 0.5]])
