"""Evaluates online LDA (Hoffman, Blei & Bach, 2010) at every point of a grid; CAL, section 5.3.1.

The learner is scikit-learn's `LatentDirichletAllocation` with `learning_method="online"` and the steps of
`plumbline.models.learned.online_lda`. All points have the same documents in the same order and the same initial topics.
The result is a noise-free function of the hyperparameters, which is evaluated once and read by all trials.
"""

import logging
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from pydantic import Field, PositiveFloat, PositiveInt
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed
from plumbline.data.feature_table import TEST, TRAIN, read_table
from plumbline.models.learned.hyperparameter_grid import HyperparameterGrid, write_grid
from plumbline.models.learned.online_lda import partial_fit
from plumbline.registry.references import canonical_json, short_digest
from plumbline.registry.source_digest import source_digest
from plumbline.trainers.base import Trained, TrainingContext, trainers
from plumbline.trainers.checkpoint import Checkpoint

log = logging.getLogger(__name__)


class Point(NamedTuple):
    """Hyperparameters: documents per step, and the decay and the offset of the rate `(tau0 + t)^-kappa` of step t."""

    minibatch: int
    kappa: float
    tau0: float


class Outcome(NamedTuple):
    """Result of a point; NaN where it failed, with the reason.

    Attributes:
        perplexity: perplexity of held-out documents, `exp(-bound / words)`, with the bound of the documents given the
            topics (Hoffman et al., section 4).
        with_topics: perplexity with the topics' own part of the bound added: scikit-learn's `perplexity`.
        passes: number of passes over the training documents until convergence or the limit.
        reason: reason of a failure; empty if there is none.
    """

    perplexity: float
    with_topics: float
    passes: int
    reason: str = ""


class OnlineLdaOptions(Options):
    """Options of the trainer. The grid is CAL's table 2, with powers of two on its logarithmic scales: 288 points.

    Attributes:
        dataset: data set whose table of features has the documents.
        minibatch: number of documents per step.
        kappa: decay of the learning rate. Above .5 convergence is guaranteed; the paper's grid includes .5.
        tau0: offset of the learning rate.
        topics: number of topics; the priors of documents and topics are 1 / topics.
        passes: greatest number of passes over the training documents.
        tolerance: learning has converged when a pass changes the perplexity of the first training documents, as many
            as there are held-out ones, by less than this share.
    """

    dataset: Annotated[str, Input("features/{}.parquet")]
    minibatch: tuple[PositiveInt, ...] = Field(default=(1, 2, 4, 8, 16, 32, 64, 128), min_length=1)
    kappa: tuple[Annotated[float, Field(ge=0.5, le=1.0)], ...] = Field(
        default=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0), min_length=1
    )
    tau0: tuple[Annotated[float, Field(ge=1.0)], ...] = Field(default=(1, 2, 4, 8, 16, 32), min_length=1)
    topics: PositiveInt = 20
    passes: PositiveInt = 20
    tolerance: PositiveFloat = 0.001

    def points(self) -> list[Point]:
        """Return the grid, with points of small minibatches, which take longest, first."""
        return [Point(*values) for values in product(self.minibatch, self.kappa, self.tau0)]


@trainers.register("online-lda", OnlineLdaOptions)
def online_lda(options: OnlineLdaOptions, context: TrainingContext) -> Trained:
    """The perplexity of online LDA on held-out documents at every point of a grid of its hyperparameters.

    Raises:
        PlumblineError: the features are missing or hold no documents, or no point could be evaluated.
    """
    # Read without the schema of its kind: otherwise an edit of the code of molecules would invalidate the grid.
    table, _ = read_table(context.data / "features" / f"{options.dataset}.parquet")
    for column in ("words", "part"):
        if column not in table:
            raise PlumblineError(f"dataset {options.dataset!r} has no column {column}: it is not of documents")
    train, held = counts(table)
    seed = draw_seed(context.generator)
    content = short_digest(table.to_csv(index=False))
    identity = [options.model_dump(mode="json"), seed, source_digest(__name__), content]
    checkpoint = Checkpoint(context.unfinished, canonical_json(identity))
    outcomes = evaluate_all(options, train, held, seed, checkpoint, context.jobs)
    failed = [one for one in outcomes if one.reason]
    if len(failed) == len(outcomes):
        raise PlumblineError(f"none of {len(outcomes)} points could be evaluated; the first: {failed[0].reason}")
    measured = {name: np.array([getattr(one, name) for one in outcomes], float) for name in Outcome._fields[:3]}
    grid = HyperparameterGrid(
        Point._fields, np.array(options.points(), float), measured, tuple(one.reason for one in outcomes)
    )

    def write(path: Any, origin: dict[str, Any]) -> None:
        write_grid(path, grid, origin)
        checkpoint.remove()

    return Trained(write)


def counts(table: pd.DataFrame) -> tuple[csr_matrix, csr_matrix]:
    """Return the word counts of each document of the training part and of the test part: two `n x words`."""
    vectorizer = CountVectorizer(analyzer=str.split, dtype=np.float64)
    texts = {part: table.loc[table["part"] == part, "words"] for part in (TRAIN, TEST)}
    return vectorizer.fit_transform(texts[TRAIN]), vectorizer.transform(texts[TEST])


def evaluate_all(
    options: OnlineLdaOptions, train: csr_matrix, held: csr_matrix, seed: int, checkpoint: Checkpoint, jobs: int = 1
) -> list[Outcome]:
    """Return the outcome of each point of the grid; those in the checkpoint are not evaluated again.

    The order is that of the grid, and the values are the same for any number of `jobs`.
    """
    points = options.points()
    saved = checkpoint.restore()
    outcomes = {index: Outcome(*one) for index, one in saved["outcomes"].items()} if saved else {}
    if outcomes:
        log.info("going on after %d of %d points", len(outcomes), len(points))
    left = {index: point for index, point in enumerate(points) if index not in outcomes}
    for index, outcome in _outcomes(left, options, train, held, seed, jobs):
        outcomes[index] = outcome
        checkpoint.save({"outcomes": {done: tuple(one) for done, one in outcomes.items()}})
        if outcome.reason:
            log.warning("%s failed: %s", points[index], outcome.reason)
        else:
            log.info("%d of %d, %s: %.2f", len(outcomes), len(points), points[index], outcome.perplexity)
    return [outcomes[index] for index in range(len(points))]


def _outcomes(
    points: Mapping[int, Point], options: OnlineLdaOptions, train: csr_matrix, held: csr_matrix, seed: int, jobs: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield indices in the grid and outcomes as points finish, so that a slow point does not delay others."""
    tasks = (delayed(_evaluated)(index, point, options, train, held, seed) for index, point in points.items())
    return Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2 * n_jobs", batch_size=1)(tasks)


def _evaluated(index: int, *inputs: Any) -> tuple[int, Outcome]:
    return index, evaluate(*inputs)


def evaluate(point: Point, options: OnlineLdaOptions, train: csr_matrix, held: csr_matrix, seed: int) -> Outcome:
    """Return the outcome of a point on held-out documents (`m x words`), trained on `train` (`n x words`).

    A learner that raises or whose perplexity is not finite has failed, which does not affect the other points.
    """
    lda = LatentDirichletAllocation(
        options.topics,
        learning_method="online",
        learning_decay=point.kappa,
        learning_offset=point.tau0,
        batch_size=point.minibatch,
        total_samples=train.shape[0],
        random_state=seed,
    )
    try:
        passes = learn(lda, train, train[: held.shape[0]], options)
        perplexity, with_topics = perplexity_of_documents(lda, held), float(lda.perplexity(held))
    except (ArithmeticError, ValueError) as error:
        return Outcome(np.nan, np.nan, 0, " ".join(str(error).split())[:200] or type(error).__name__)
    if not (np.isfinite(perplexity) and np.isfinite(with_topics)):
        return Outcome(np.nan, np.nan, passes, f"a perplexity of {perplexity:g}, with topics {with_topics:g}")
    return Outcome(perplexity, with_topics, passes)


def learn(lda: LatentDirichletAllocation, train: csr_matrix, watched: csr_matrix, options: OnlineLdaOptions) -> int:
    """Pass over the training documents until the perplexity of `watched` converges; return the number of passes."""
    before = np.inf
    for passed in range(1, options.passes + 1):
        partial_fit(lda, train)
        now = perplexity_of_documents(lda, watched)
        if abs(before - now) < options.tolerance * now:
            return passed
        before = now
    return options.passes


def perplexity_of_documents(lda: LatentDirichletAllocation, X: csr_matrix) -> float:
    """Return the perplexity of documents (`n x words`) given the topics.

    In the limit of infinitely many documents the topics' own part of the bound vanishes.
    """
    documents = lda.total_samples
    try:
        return float(lda.set_params(total_samples=1e18).perplexity(X, sub_sampling=True))
    finally:
        lda.set_params(total_samples=documents)
