"""Online LDA on a grid: what is measured, that it can be killed, and what it says of mistakes."""

import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import gammaln, logsumexp, psi
from sklearn.decomposition import LatentDirichletAllocation

from plumbline.core.errors import PlumblineError
from plumbline.data.datasets import Dataset, Features
from plumbline.data.features import build_features, write_features
from plumbline.data.generated.dna import generated_dna
from plumbline.data.models import ModelEntry
from plumbline.models.learned.hyperparameter_grid import read_grid
from plumbline.registry.source_digest import closure
from plumbline.trainers import online_lda
from plumbline.trainers.base import train
from plumbline.trainers.checkpoint import Checkpoint
from plumbline.trainers.online_lda import OnlineLdaOptions, Outcome, Point, counts, evaluate, perplexity_of_documents

SMALL = {"minibatch": [4, 32], "kappa": [0.5, 1.0], "tau0": [1, 8]}
OPTIONS: dict[str, Any] = {"dataset": "few", **SMALL, "topics": 3, "passes": 2}


def entry(**changes: Any) -> ModelEntry:
    return ModelEntry(title="for tests", trainer="online-lda", options={**OPTIONS, **changes})


def dataset(kind: str) -> Dataset:
    return Dataset(
        name="few",
        title="few",
        licence="none",
        citation="none",
        features=Features.model_validate({"kind": kind, "rows": 90, "seed": 3}),
    )


def test_a_grid_rests_on_no_code_of_other_data() -> None:
    """Hours of evaluations are thrown away when code changes that they rest on."""
    rests_on = set(closure(online_lda.__name__))
    assert {
        f"plumbline.{name}" for name in ("data.feature_table", "core.seeding", "models.learned.hyperparameter_grid")
    } <= rests_on
    others = {"plumbline", "plumbline.data", "plumbline.data.feature_table", "plumbline.data.models"}
    assert {name for name in rests_on if name.startswith("plumbline.data")} <= others
    folders = {name.rpartition(".")[0] for name in rests_on}
    assert len(rests_on - folders) < 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with ninety generated documents."""
    folder = tmp_path_factory.mktemp("data")
    described = dataset("generated-newsgroups")
    write_features(build_features(described), folder / "features" / "few.parquet", described)
    return folder


@pytest.fixture(scope="module")
def parts(data: Path) -> Any:
    """Counts of the training documents and of those held out."""
    return counts(build_features(dataset("generated-newsgroups")))


@pytest.fixture(scope="module")
def whole(data: Path) -> Path:
    """The grid, evaluated without a break."""
    train("small", {"small": entry()}, data, data / "models" / "small.npz")
    return data / "models" / "small.npz"


@pytest.mark.slow
def test_a_grid_has_a_value_a_point(whole: Path) -> None:
    grid = read_grid(whole)
    assert grid.hyperparameters == ("minibatch", "kappa", "tau0")
    assert grid.points.tolist() == [[m, k, t] for m in (4, 32) for k in (0.5, 1.0) for t in (1, 8)]
    assert list(grid.measured) == ["perplexity", "with_topics", "passes"]
    perplexity = grid.measured["perplexity"]
    assert len(set(perplexity.tolist())) == 8
    assert (perplexity > 1).all()
    assert (perplexity < grid.measured["with_topics"]).all()
    assert grid.reasons == ("",) * 8
    assert not whole.with_name(".small.unfinished").exists()


def test_counts_are_those_of_the_words(parts: Any) -> None:
    train_counts, held = parts
    table = build_features(dataset("generated-newsgroups"))
    assert train_counts.shape[0] == 75
    assert held.shape[0] == 15
    assert train_counts.shape[1] == held.shape[1]
    lengths = np.asarray(train_counts.sum(axis=1)).ravel()
    assert lengths.tolist() == [len(words.split()) for words in table["words"][:75]]


def test_a_pass_is_one_of_scikit_learns_fit(parts: Any) -> None:
    documents, held = parts
    options = OnlineLdaOptions(dataset="few", topics=3, passes=3, tolerance=1e-9)
    found = evaluate(Point(4, 0.7, 8), options, documents, held, 5)
    fitted = LatentDirichletAllocation(
        3, learning_method="online", learning_decay=0.7, learning_offset=8, batch_size=4, max_iter=3, random_state=5
    ).fit(documents)
    assert found.passes == 3
    # Other sums in another order, and an iteration that ends where a change is small: 1e-11 apart.
    assert found.with_topics == pytest.approx(fitted.perplexity(held), rel=1e-9)


def test_the_perplexity_of_documents_is_that_of_the_text(parts: Any) -> None:
    """Hoffman et al.: the bound of log p(n, theta, z | topics), without the topics' own share."""
    documents, held = parts
    lda = LatentDirichletAllocation(3, learning_method="online", total_samples=75, random_state=0).partial_fit(
        documents
    )
    gamma = lda._unnormalized_transform(held)
    of_mixtures = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    of_topics = psi(lda.components_) - psi(lda.components_.sum(axis=1, keepdims=True))
    each = logsumexp(of_mixtures[:, :, None] + of_topics[None], axis=1)
    bound = (held.toarray() * each).sum() + ((1 / 3 - gamma) * of_mixtures).sum()
    bound += (gammaln(gamma) - gammaln(1 / 3)).sum() + (gammaln(1.0) - gammaln(gamma.sum(axis=1))).sum()
    assert perplexity_of_documents(lda, held) == pytest.approx(np.exp(-bound / held.sum()), rel=1e-9)
    assert lda.total_samples == 75


@pytest.mark.slow
def test_it_passes_until_it_has_converged(parts: Any) -> None:
    passes = [
        evaluate(
            Point(8, 0.7, 1), OnlineLdaOptions(dataset="few", topics=3, passes=40, tolerance=share), *parts, 0
        ).passes
        for share in (0.5, 0.02, 1e-12)
    ]
    assert passes[0] == 2  # the first pass has none before it
    assert passes[0] < passes[1] < passes[2] == 40


@pytest.mark.slow
def test_processes_make_no_difference(whole: Path, data: Path, tmp_path: Path) -> None:
    train("small", {"small": entry()}, data, tmp_path / "small.npz", jobs=2)
    assert (tmp_path / "small.npz").read_bytes() == whole.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 5])
def test_an_interrupted_grid_goes_on_to_the_same_bytes(
    whole: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    asked: list[Point] = []

    def interrupted(point: Point, *rest: Any) -> Outcome:
        if len(asked) == after:
            raise KeyboardInterrupt
        asked.append(point)
        return evaluate(point, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(online_lda, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert not (tmp_path / "small.npz").exists()
    assert (tmp_path / ".small.unfinished").is_file()

    def counted(point: Point, *rest: Any) -> Outcome:
        asked.append(point)
        return evaluate(point, *rest)

    monkeypatch.setattr(online_lda, "evaluate", counted)
    train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert asked == OnlineLdaOptions.model_validate(OPTIONS).points()  # each once
    assert (tmp_path / "small.npz").read_bytes() == whole.read_bytes()
    assert not (tmp_path / ".small.unfinished").exists()


class Killed(Exception):  # noqa: N818
    pass


@pytest.mark.slow
def test_points_that_finish_before_a_slower_one_are_kept(
    whole: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two threads, the first point not being done before three others are saved; then all is killed."""
    points = OnlineLdaOptions.model_validate(OPTIONS).points()
    saves: list[int] = []
    asked: list[Point] = []
    three = threading.Event()

    class Watched(Checkpoint):
        def save(self, state: dict[str, Any]) -> None:
            super().save(state)
            saves.append(len(state["outcomes"]))
            if len(saves) == 3:
                three.set()

    def slow(point: Point, *rest: Any) -> Outcome:
        if point == points[0]:
            assert three.wait(timeout=120), "nothing is saved before the first point is done"
            raise Killed
        if three.is_set():
            raise Killed
        return evaluate(point, *rest)

    with monkeypatch.context() as patched, parallel_config(backend="threading"):
        patched.setattr(online_lda, "Checkpoint", Watched)
        patched.setattr(online_lda, "evaluate", slow)
        with pytest.raises(Killed):
            train("small", {"small": entry()}, data, tmp_path / "small.npz", jobs=2)
    assert saves[:3] == [1, 2, 3]

    def counted(point: Point, *rest: Any) -> Outcome:
        asked.append(point)
        return evaluate(point, *rest)

    monkeypatch.setattr(online_lda, "evaluate", counted)
    train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert asked[0] == points[0]
    assert len(asked) == len(points) - saves[-1], "none again"
    assert (tmp_path / "small.npz").read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_a_killed_process_is_gone_on_with(whole: Path, data: Path, tmp_path: Path, one_core: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path; from plumbline.data.models import ModelEntry;"
        "from plumbline.trainers import online_lda; from plumbline.trainers.base import train; import time;"
        "inner = online_lda.evaluate;"
        "online_lda.evaluate = lambda *a: (time.sleep(0.3), inner(*a))[1];"
        "train('small', {'small': ModelEntry.model_validate_json(sys.argv[1])}, Path(sys.argv[2]), Path(sys.argv[3]))"
    )
    command = [sys.executable, "-c", code, entry().model_dump_json(), str(data), str(tmp_path / "small.npz")]
    process = subprocess.Popen(command, env=one_core)
    unfinished = tmp_path / ".small.unfinished"
    while process.poll() is None and not unfinished.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert unfinished.is_file()
    assert not (tmp_path / "small.npz").exists()
    train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert (tmp_path / "small.npz").read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_what_was_evaluated_for_another_grid_is_said_and_left(whole: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / ".small.unfinished").write_bytes(b"half of it")
    with pytest.warns(UserWarning, match=r"small\.unfinished cannot be read .*: the training starts over"):
        train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert (tmp_path / "small.npz").read_bytes() == whole.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raises", "is not finite"])
def test_a_point_that_fails_is_kept_with_the_reason(
    whole: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    inner = LatentDirichletAllocation.perplexity

    def perplexity(self: LatentDirichletAllocation, *rest: Any, **more: Any) -> float:
        if (self.batch_size, self.learning_decay, self.learning_offset) != (4, 1.0, 8):
            return inner(self, *rest, **more)
        if how == "raises":
            raise FloatingPointError("overflow\nencountered")
        return np.inf

    monkeypatch.setattr(LatentDirichletAllocation, "perplexity", perplexity)
    with caplog.at_level(logging.WARNING):
        train("small", {"small": entry()}, data, tmp_path / "small.npz")
    grid, sound = read_grid(tmp_path / "small.npz"), read_grid(whole)
    failed = [i for i, reason in enumerate(grid.reasons) if reason]
    assert grid.points[failed].tolist() == [[4, 1.0, 8]]
    said = {"raises": "overflow encountered", "is not finite": "a perplexity of inf, with topics inf"}
    assert grid.reasons[failed[0]] == said[how]
    assert np.isnan(grid.measured["perplexity"][failed]).all()
    assert "Point(minibatch=4, kappa=1.0, tau0=8.0) failed: " in caplog.text
    others = np.delete(np.arange(8), failed)
    np.testing.assert_array_equal(grid.measured["perplexity"][others], sound.measured["perplexity"][others])


def test_a_grid_of_failures_alone_is_an_error(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Outcome(np.nan, np.nan, 0, "no luck")
    monkeypatch.setattr(online_lda, "evaluate", lambda *_: failure)
    with pytest.raises(PlumblineError, match="none of 8 points could be evaluated; the first: no luck"):
        train("small", {"small": entry()}, data, tmp_path / "small.npz")
    assert not (tmp_path / "small.npz").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "nowhere"}, r"no features at .*: `plumbline features nowhere` builds them"),
        ({"kappa": [0.4]}, r"kappa"),
        ({"tau0": [0.5]}, r"tau0"),
        ({"minibatch": []}, r"minibatch"),
        ({"kapa": [0.7]}, r"did you mean 'kappa'"),
    ],
)
def test_mistakes_are_one_line(data: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        train("small", {"small": entry(**changes)}, data, tmp_path / "small.npz")
    assert "\n" not in str(caught.value)


def test_a_dataset_without_documents(tmp_path: Path) -> None:
    write_features(generated_dna(9, 0), tmp_path / "features" / "few.parquet", dataset("generated-dna"))
    with pytest.raises(PlumblineError, match="'few' has no column words: it is not of documents"):
        train("small", {"small": entry()}, tmp_path, tmp_path / "small.npz")
