"""Online LDA by steps that touch few words is scikit-learn's."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.decomposition._lda import _update_doc_distribution

from plumbline.models.learned.online_lda import LEAST_SCALE, Topics, documents, partial_fit

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


@pytest.mark.slow
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


def test_the_e_step_is_a_private_function_of_scikit_learn_that_takes_the_words_of_its_documents_alone() -> None:
    """Why private: the public `partial_fit` runs the E-step and then moves the parameters of all words.

    That M-step is the cost that we avoid, and the E-step must draw its starts as the public learner does, so that
    both learn the same topics. Of the private function we need its arguments, and that topics restricted to the words
    of the documents give the same statistics. Where a release of scikit-learn breaks either, no model of online LDA
    can be trained: hold the release back, or write the E-step out in `plumbline.models.learned.online_lda`.
    """
    arguments = ["X", "exp_topic_word_distr", "doc_topic_prior", "max_doc_update_iter", "mean_change_tol"]
    assert list(inspect.signature(_update_doc_distribution).parameters) == [*arguments, "cal_sstats", "random_state"]
    X, beta = posts(12, 3), np.random.default_rng(4).dirichlet(np.ones(WORDS), 4)
    words, counts = documents(X, slice(0, 12))
    assert 0 < len(words) < WORDS
    of_all, of_these = (
        _update_doc_distribution(some, topics, 0.25, 100, 1e-3, cal_sstats=True, random_state=np.random.RandomState(5))
        for some, topics in ((X, beta), (counts, np.ascontiguousarray(beta[:, words])))
    )
    np.testing.assert_allclose(of_these[0], of_all[0], rtol=1e-12)
    np.testing.assert_allclose(of_these[1], of_all[1][:, words], rtol=1e-12)
    assert not np.delete(of_all[1], words, axis=1).any()
