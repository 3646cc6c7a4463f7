"""Training by minibatches: what is drawn, when it is over, and the optimiser."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sparse_cases import generator, normal, uniform

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.models.svgp.minibatches import EXPLODED, Progress, RowAdam, Shuffled, TrainingOptions, train
from plumbline.models.svgp.objective import Batch


def source(n: int, seed: int = 0) -> Shuffled:
    """Data that are told by their numbers."""
    numbers = torch.arange(n, dtype=torch.float64)
    return Shuffled(numbers.unsqueeze(-1), numbers, generator(seed))


def test_defaults_are_table_1() -> None:
    options = TrainingOptions()
    assert (options.learning_rate, options.batch, options.clip) == (0.01, 32, 2.0)
    assert (options.epochs, options.failures, options.counted) == (30, 3, "in a row")
    with pytest.raises(PlumblineError, match="batch"):
        parse(TrainingOptions, {"batch": 0}, "config")


@given(st.integers(1, 40), st.integers(1, 15), st.integers(0, 5))
def test_a_pass_draws_every_datum_once(n: int, size: int, seed: int) -> None:
    data = source(n, seed)
    for _ in range(2):
        seen: list[float] = []
        lengths, over = [], False
        while not over:
            X, y, over = data.draw(size)
            assert torch.equal(X[:, 0], y)
            seen += y.tolist()
            lengths.append(len(y))
        assert sorted(seen) == list(range(n))
        assert len(lengths) == math.ceil(n / size)
        assert set(lengths[:-1]) <= {size}


@given(st.integers(1, 40), st.integers(1, 15), st.integers(1, 50))
def test_a_short_pass_draws_other_data_each_time(n: int, size: int, pass_size: int) -> None:
    data, length = source(n), min(n, pass_size)
    passes = []
    for _ in range(30):
        seen, over = [], False
        while not over:
            _, y, over = data.draw(size, pass_size)
            seen += y.tolist()
        assert len(seen) == len(set(seen)) == length
        passes.append(frozenset(seen))
    assert len(set(passes)) > 1 or length == n
    assert frozenset().union(*passes[:10]) <= set(range(n))


def test_a_short_pass_costs_the_same_however_many_data() -> None:
    """Its mean is of its own data, and the data that share the divergence are still all of them."""
    options, told = TrainingOptions(batch=8, epochs=4, failures=4, pass_size=20), []

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> torch.Tensor:
        told.append(batch.data.tolist())
        return torch.ones(len(going), dtype=torch.float64)

    how = train([source(50), source(500)], options, step)
    assert [one.best for one in how] == pytest.approx([1.0, 1.0])
    assert [one.epochs for one in how] == [4, 4]
    assert told == [[50, 500]] * (4 * 3)


def test_a_pass_of_more_than_all_data_is_one_of_all() -> None:
    long, usual = (climb([source(30)], TrainingOptions(batch=8, pass_size=size)) for size in (30, None))
    assert torch.equal(long[0], usual[0])
    assert long[1] == usual[1]


def test_passes_are_shuffled_anew_and_by_their_seed() -> None:
    def order(data: Shuffled) -> list[float]:
        return data.draw(20)[1].tolist()

    one, same, other = source(20), source(20), source(20, seed=1)
    first = order(one)
    assert first == order(same)
    assert first != order(other)
    assert first != order(one)


def progress(*values: float, **options: object) -> tuple[Progress, list[bool]]:
    given_options = TrainingOptions(**options)  # type: ignore[arg-type]
    going = Progress()
    return going, [going.after(value, given_options) for value in values]


def test_three_failures_in_a_row_are_the_end() -> None:
    going, over = progress(1, 0, 0, 2, 1, 1, 2)
    assert over == [False] * 6 + [True]  # the last one is a tie, which is no new best
    assert (going.best, going.epochs, going.broken) == (2, 7, False)


def test_three_failures_in_total_are_the_end() -> None:
    _, over = progress(1, 0, 0, 2, 1, counted="in total")
    assert over == [False] * 4 + [True]


def test_training_ends_after_the_last_epoch() -> None:
    going, over = progress(1, 2, 3, 4, epochs=4)
    assert over == [False] * 3 + [True]
    assert not going.broken


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, EXPLODED, -2 * EXPLODED])
def test_what_explodes_is_broken_at_once(value: float) -> None:
    going, over = progress(1, value)
    assert over == [False, True]
    assert going.broken


def climb(
    sources: Sequence[Shuffled], options: TrainingOptions
) -> tuple[torch.Tensor, list[Progress], list[list[int]]]:
    """Move one parameter a seed towards the mean of its data; also return who took part in each step."""
    rows = torch.zeros(len(sources), 1, dtype=torch.float64)
    adam = RowAdam(rows, options.learning_rate, options.clip)
    steps = []

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> torch.Tensor:
        steps.append(list(going))
        error = batch.y / 10 - rows[list(going)]
        value = -error.square().mean(-1)
        adam.step(going, (2 * error).mean(-1, keepdim=True))
        return value

    return rows, train(sources, options, step), steps


def test_company_makes_no_difference() -> None:
    """Seeds with other data, more of them, and which converge at other times."""
    sizes = [7, 33, 20, 64]
    options = TrainingOptions(batch=16, learning_rate=0.3, epochs=25)
    together, how, steps = climb([source(n, n) for n in sizes], options)
    for i, n in enumerate(sizes):
        alone, (own,), _ = climb([source(n, n)], options)
        assert torch.equal(alone[0], together[i])
        assert own == how[i]
    assert len({one.epochs for one in how}) > 1
    assert max(len(going) for going in steps) > 1
    assert min(len(going) for going in steps) == 1


def test_a_seed_that_breaks_leaves_and_the_others_go_on() -> None:
    bad = source(20)
    bad.y[3] = torch.nan
    rows, how, _ = climb([source(20, 1), bad], TrainingOptions(batch=8))
    alone, (own,), _ = climb([source(20, 1)], TrainingOptions(batch=8))
    assert [one.broken for one in how] == [False, True]
    assert how[1].epochs == 1
    assert torch.equal(rows[0], alone[0])
    assert how[0].best == pytest.approx(own.best, rel=1e-12)


def test_the_value_of_a_pass_is_the_mean_over_its_data() -> None:
    """The last minibatch counts as its data do, not as a full one."""

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> torch.Tensor:
        return batch.y.mean(-1)

    (one,) = train([source(10)], TrainingOptions(batch=4, epochs=1), step)
    assert one.best == pytest.approx(4.5)


@given(st.integers(1, 40), st.integers(1, 15), st.one_of(st.none(), st.integers(1, 50)))
def test_or_the_mean_over_its_minibatches(n: int, size: int, pass_size: int | None) -> None:
    means: list[float] = []

    def step(going: Sequence[int], batch: Batch, epochs: Sequence[int]) -> torch.Tensor:
        means.append(float(batch.y.mean()))
        return batch.y.mean(-1)

    options = TrainingOptions(batch=size, epochs=1, pass_size=pass_size, judged="by minibatch")
    (one,) = train([source(n)], options, step)
    assert one.best == pytest.approx(sum(means) / len(means))


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_optimiser_is_torchs_with_its_clipping(size: float) -> None:
    gradients = [size * normal(3, 5, seed=seed) for seed in range(6)]
    gradients[2][1] = 0.0
    rows = uniform(3, 5)
    theirs = [row.clone().requires_grad_() for row in rows]
    optimisers = [torch.optim.Adam([row], lr=0.03, maximize=True) for row in theirs]
    adam = RowAdam(rows, 0.03, 2.0)
    for gradient in gradients:
        for row, one, optimiser in zip(theirs, gradient, optimisers, strict=True):
            row.grad = one.clone()
            torch.nn.utils.clip_grad_norm_([row], 2.0)
            optimiser.step()
        adam.step([0, 1, 2], gradient.clone())
    torch.testing.assert_close(rows, torch.stack(theirs).detach(), rtol=1e-12, atol=1e-13)


def test_rows_that_are_left_out_stay_and_keep_their_own_time() -> None:
    rows, rates = uniform(3, 4), torch.tensor([0.1, 0.2, 0.3]).double()
    before = rows.clone()
    adam = RowAdam(rows, rates, 2.0)
    turns = [[0, 2], [2], [0, 1, 2], [1]]
    for seed, going in enumerate(turns):
        adam.step(going, normal(3, 4, seed=seed)[going])
    for i in range(3):
        own = before[i : i + 1].clone()
        alone = RowAdam(own, float(rates[i]), 2.0)
        for seed, going in enumerate(turns):
            if i in going:
                alone.step([0], normal(3, 4, seed=seed)[i : i + 1])
        assert torch.equal(own[0], rows[i])
        assert not torch.equal(own, before[i : i + 1])
    assert adam.steps.tolist() == [2, 2, 3]
