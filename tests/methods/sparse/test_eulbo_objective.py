"""Maximising the EULBO: its joint gradient, weights, masks, projections, and what is done where it breaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from point_posteriors import KERNELS, LAYOUT, NAMES, batch, normal, rows_of, uniform, utilities, value_of

from plumbline.methods.sparse import eulbo_objective as eulbo
from plumbline.methods.sparse.eulbo_objective import EulboOptions, eulbo_step, maximise_eulbo, refined_parameters
from plumbline.methods.sparse.point_posteriors import PointPosteriors
from plumbline.methods.sparse.soft_improvement import SoftImprovement
from plumbline.methods.sparse.soft_utility import SoftUtility
from plumbline.models.algebra import SparseKernel
from plumbline.models.svgp.minibatches import Progress, Shuffled
from plumbline.models.svgp.objective import Batch, Layout, fidelity, forward, prepare
from plumbline.models.svgp.training import ATTEMPTS


class Recorder:
    """An optimiser that keeps the gradients and moves nothing."""

    made: list["Recorder"]

    def __init__(self, rows: torch.Tensor, learning_rate: float, clip: float) -> None:
        self.learning_rate = learning_rate
        self.steps: list[tuple[list[int], torch.Tensor]] = []
        Recorder.made.append(self)

    def step(self, going: Sequence[int], gradient: torch.Tensor) -> None:
        self.steps.append((list(going), gradient.clone()))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Recorder, Recorder]]:
    """Let steps be recorded; returns what gives the optimisers of processes and of queries."""
    Recorder.made = []
    monkeypatch.setattr(eulbo, "RowAdam", Recorder)
    return lambda: (Recorder.made[0], Recorder.made[1])


def boxes_of(b: int) -> torch.Tensor:
    return torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double().expand(b, 2, 2).clone()


def step_of(rows: torch.Tensor, points: torch.Tensor, utility: SoftUtility, **options: Any) -> Any:
    kernel, objective = options.pop("kernel", "rbf"), options.pop("objective", "elbo")
    boxes = options.pop("boxes", boxes_of(len(rows)))
    return eulbo_step(rows, points, boxes, LAYOUT, kernel, utility, objective, EulboOptions(**options))


@pytest.mark.parametrize("objective", ["elbo", "ppgpr"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighting", ["evidence", "minibatch", "datum"])
@pytest.mark.parametrize("name", NAMES)
def test_joint_gradient_against_differences(
    name: str, weighting: str, kernel: SparseKernel, objective: Any, recorded: Callable[[], tuple[Recorder, Recorder]]
) -> None:
    """Of the whole bound per datum: fit, divergence and utility, each with its weight, at n = 5 of N = 40 data."""
    b = 2
    utility, k = utilities(b)[name]
    rows, points, data = rows_of(b), uniform(b, k, 2, seed=3), batch(b)
    # What the divergence is shared by, and the utility's weight.
    shared, weight = {"evidence": (40.0, 1 / 40), "minibatch": (5.0, 1 / 5), "datum": (40.0, 1.0)}[weighting]

    def gain(rows: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        return value_of(utility, rows, points, kernel)

    def bound(rows: torch.Tensor) -> torch.Tensor:
        counted = data._replace(data=torch.full((b,), shared).double())
        fit, _ = fidelity(forward(rows, LAYOUT, data.X, kernel), counted, objective)
        return fit + weight * gain(rows, points)

    step = step_of(rows, points, utility, kernel=kernel, objective=objective, weighting=weighting)
    value = step(range(b), data, [0] * b)
    torch.testing.assert_close(value, bound(rows), rtol=1e-9, atol=1e-9)
    processes, queries = recorded()
    ((_, to_rows),), ((_, grad_points),) = processes.steps, queries.steps
    h = 1e-6
    at, there = normal(b, LAYOUT.size, seed=1), normal(b, k, 2, seed=2)
    in_rows = (bound(rows + h * at) - bound(rows - h * at)) / (2 * h)
    torch.testing.assert_close((to_rows * at).sum(-1), in_rows, rtol=1e-5, atol=1e-5)
    in_points = (gain(rows, points + h * there) - gain(rows, points - h * there)) / (2 * h)
    torch.testing.assert_close((grad_points.view_as(there) * there).sum((-1, -2)), in_points, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("refines", "moves"),
    [
        ("all", {"inducing", "mean", "factor", "constant", "raw_lengthscale", "raw_outputscale", "raw_noise"}),
        ("variational", {"mean", "factor"}),
        ("variational-inducing", {"mean", "factor", "inducing"}),
        ("nothing", set()),
    ],
)
def test_only_what_is_refined_moves(refines: Any, moves: set[str]) -> None:
    utility, k = utilities(2)["batch-improvement"]
    rows, points = rows_of(2), uniform(2, k, 2, seed=3)
    before, asked = rows.clone(), points.clone()
    step = step_of(rows, points, utility, refines=refines)
    for _ in range(3):
        step(range(2), batch(2), [0, 0])
    parts, old = LAYOUT.parts(rows), LAYOUT.parts(before)
    changed = {name for name, new, was in zip(parts._fields, parts, old, strict=True) if not torch.equal(new, was)}
    assert changed == moves
    assert (points != asked).all()


@pytest.mark.parametrize("name", [name for name in NAMES if "improvement" not in name])
def test_joint_gradient_under_frozen_factors(name: str, recorded: Callable[[], tuple[Recorder, Recorder]]) -> None:
    """Against differences in the other parameters, from rows that have moved since the factors were frozen."""
    b = 2
    utility, k = utilities(b)[name]
    first, points, data = rows_of(b), uniform(b, k, 2, seed=3), batch(b)
    moved = first + 3e-4 * normal(b, LAYOUT.size, seed=4)
    LAYOUT.parts(moved).factor.copy_(LAYOUT.parts(first).factor)
    frozen = prepare(first, LAYOUT, "rbf").inducing.L

    def gain(rows: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        return utility.expected_log(PointPosteriors.of(prepare(rows, LAYOUT, "rbf", frozen).at(points))).value

    def bound(rows: torch.Tensor) -> torch.Tensor:
        fit, _ = fidelity(prepare(rows, LAYOUT, "rbf", frozen).at(data.X), data, "elbo")
        return fit + gain(rows, points) / 40

    rows = first.clone()
    step = step_of(rows, points, utility, frozen_factors=True)
    rows.copy_(moved)
    torch.testing.assert_close(step(range(b), data, [0] * b), bound(moved), rtol=1e-9, atol=1e-9)
    processes, queries = recorded()
    ((_, to_rows),), ((_, to_points),) = processes.steps, queries.steps
    assert not LAYOUT.parts(to_rows).factor.any()
    h = 1e-6
    at, there = normal(b, LAYOUT.size, seed=1), normal(b, k, 2, seed=2)
    LAYOUT.parts(at).factor.zero_()
    in_rows = (bound(moved + h * at) - bound(moved - h * at)) / (2 * h)
    torch.testing.assert_close((to_rows * at).sum(-1), in_rows, rtol=1e-5, atol=1e-5)
    in_points = (gain(moved, points + h * there) - gain(moved, points - h * there)) / (2 * h)
    torch.testing.assert_close((to_points.view_as(there) * there).sum((-1, -2)), in_points, rtol=1e-5, atol=1e-5)


def test_all_parameters_need_no_mask() -> None:
    assert refined_parameters(LAYOUT, EulboOptions()) is None
    mask = refined_parameters(LAYOUT, EulboOptions(refines="variational"))
    assert mask is not None
    assert int(mask.sum()) == LAYOUT.m + LAYOUT.m**2


def test_the_query_sees_the_process_as_it_has_become(recorded: Callable[[], tuple[Recorder, Recorder]]) -> None:
    """Its gradient is that at the rows after the process's step."""
    utility, k = utilities(1)["improvement"]
    rows, points, other = rows_of(1), uniform(1, k, 2, seed=3), rows_of(1, seed=9)
    step = step_of(rows, points, utility)
    processes, queries = recorded()
    processes.step = lambda going, gradient: rows.copy_(other)  # type: ignore[method-assign]
    step([0], batch(1), [0])
    h, direction = 1e-6, normal(1, k, 2)
    up, down = (value_of(utility, other, points + s * direction, "rbf") for s in (h, -h))
    ((_, gradient),) = queries.steps
    assert (gradient * direction.flatten(1)).sum().item() == pytest.approx(((up - down) / (2 * h)).item(), rel=1e-5)


@pytest.mark.parametrize("going", [[0, 1], [1]])
@pytest.mark.parametrize("refines", ["all", "variational"])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_stays_on_its_device(name: str, refines: Any, going: list[int]) -> None:
    """On the device `meta`, which has no values, and refuses tensors of the CPU beside its own."""
    meta = torch.device("meta")
    utility, k = utilities(2)[name]
    tensors = {one: there.to(meta) for one, there in vars(utility).items() if isinstance(there, torch.Tensor)}
    rows, points, boxes = (one.to(meta) for one in (rows_of(2), uniform(2, k, 2), boxes_of(2)))
    options = EulboOptions(refines=refines)
    step = eulbo_step(rows, points, boxes, LAYOUT, "rbf", replace(utility, **tensors), "elbo", options)
    drawn = Batch(*(one[going].to(meta) for one in batch(2)))
    assert step(going, drawn, [0] * len(going)).device == meta
    with pytest.raises(RuntimeError, match="meta"):
        step(going, drawn._replace(X=torch.zeros(drawn.X.shape).double()), [0] * len(going))


def test_turns_by_epoch(recorded: Callable[[], tuple[Recorder, Recorder]]) -> None:
    """Processes in even epochs, queries in odd ones; seeds may be in different ones."""
    utility, k = utilities(3)["improvement"]
    step = step_of(rows_of(3), uniform(3, k, 2, seed=3), utility, turns="epochs")
    processes, queries = recorded()
    step([0, 1, 2], batch(3), [0, 1, 2])
    assert [going for going, _ in processes.steps] == [[0, 2]]
    assert [going for going, _ in queries.steps] == [[1]]
    step([0, 1, 2], batch(3), [2, 4, 0])
    assert [going for going, _ in processes.steps] == [[0, 2], [0, 1, 2]]
    assert len(queries.steps) == 1


def test_points_stay_in_their_boxes() -> None:
    utility, k = utilities(2)["batch-gradient"]
    rows, points = rows_of(2), uniform(2, k, 2, seed=3)
    boxes = torch.stack([points.amin(1) + 0.05, points.amax(1) - 0.05], 1)
    boxes[1] = boxes_of(1)[0]
    step = step_of(rows, points, utility, boxes=boxes, query_rate=0.2)
    for _ in range(4):
        step(range(2), batch(2), [0, 0])
    low, high = boxes.unsqueeze(2).unbind(1)
    assert ((points >= low) & (points <= high)).all()
    assert (points[0] == low[0]).any() or (points[0] == high[0]).any()


def test_queries_climb_alone_where_maximisers_are_fixed() -> None:
    """They are not projected either: a maximiser may lie outside of the queries' box."""
    utility, k = utilities(1)["batch-gradient"]
    rows, points = rows_of(1), uniform(1, k, 2, seed=3)
    points[0, 4] = torch.tensor([3.0, -3.0])
    before = points.clone()
    step_of(rows, points, utility, climb="queries")([0], batch(1), [0])
    assert (points[:, :2] != before[:, :2]).all()
    assert torch.equal(points[:, 2:], before[:, 2:])


def test_a_query_outside_of_its_box_waits_for_its_turn_in_any_company() -> None:
    utility, k = utilities(2)["improvement"]
    rows, points = rows_of(2), uniform(2, k, 2, seed=3)
    points[0] = 1.5
    step_of(rows, points, utility, turns="epochs")([0, 1], batch(2), [0, 1])
    assert (points[0] == 1.5).all()
    step_of(rows, points, utility, turns="epochs")([0, 1], batch(2), [1, 1])
    assert (points[0] <= 1).all()


def test_a_process_that_breaks_at_first_is_flagged_even_if_its_step_mends_it() -> None:
    utility, k = utilities(2)["improvement"]
    rows, points = rows_of(2), uniform(2, k, 2, seed=3)
    good = rows.clone()
    rows[0] = torch.nan
    step = step_of(rows, points, utility)
    data = batch(2)

    def mended(*_: object) -> None:
        rows.copy_(good)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eulbo, "_move", mended)
        found = step([0, 1], data, [0, 0])
    assert torch.isnan(found).tolist() == [True, False]


def sources(*sizes: int) -> Callable[[], list[Shuffled]]:
    def drawn() -> list[Shuffled]:
        return [Shuffled(uniform(n, 2, seed=n), normal(n, seed=n), torch.Generator().manual_seed(n)) for n in sizes]

    return drawn


def maximised(
    rows: torch.Tensor, points: torch.Tensor, utility: SoftUtility, drawn: Callable[[], list[Shuffled]], **options: Any
) -> Any:
    chosen = EulboOptions(**{"epochs": 4, "batch": 8, **options})
    return maximise_eulbo(rows, points, boxes_of(len(rows)), LAYOUT, "rbf", utility, drawn, "elbo", chosen)


def whole(rows: torch.Tensor, points: torch.Tensor, utility: SoftUtility, n: int) -> float:
    """The bound per datum, of all data."""
    ((data),) = sources(n)()
    every = Batch(data.X[None], data.y[None], torch.tensor([float(n)]).double())
    fit, _ = fidelity(forward(rows, LAYOUT, data.X[None], "rbf"), every, "elbo")
    return (fit + value_of(utility, rows, points, "rbf") / n).item()


@pytest.mark.parametrize("name", NAMES)
def test_the_bound_is_raised_and_the_start_is_kept(name: str) -> None:
    utility, k = utilities(1)[name]
    rows, points = rows_of(1), uniform(1, k, 2, seed=3)
    before = rows.clone(), points.clone()
    found = maximised(rows, points, utility, sources(30), epochs=10)
    assert whole(*found.trained, utility, 30) > whole(rows, points, utility, 30) + 0.05
    assert torch.equal(rows, before[0])
    assert torch.equal(points, before[1])


@pytest.mark.parametrize("name", NAMES)
def test_company_makes_no_difference(name: str) -> None:
    utility, k = utilities(3)[name]
    rows, points, sizes = rows_of(3), uniform(3, k, 2, seed=3), (20, 9, 33)
    together = maximised(rows, points, utility, sources(*sizes))
    for i, n in enumerate(sizes):
        one = torch.tensor([i])
        alone = maximised(rows[one], points[one], utility.of(one), sources(n))
        for own, other in zip(alone.trained, together.trained, strict=True):
            torch.testing.assert_close(own[0], other[i], rtol=1e-8, atol=1e-8)
        assert alone.epochs[0] == together.epochs[i]


@pytest.mark.slow
@pytest.mark.parametrize("turns", ["steps", "epochs"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_steps_in_company_are_the_same(name: str, kernel: SparseKernel, turns: str) -> None:
    """Also where seeds leave, come in other groups and are in other epochs: what is shared by steps changes with it.

    Not to the last bit: on some processors a product rounds otherwise where a matrix lies elsewhere in memory.
    """
    layout, b = Layout(37, 7), 4
    utility, k = utilities(b)[name]
    start, asked, data = rows_of(b, layout=layout), uniform(b, k, 7, seed=3), batch(b, d=7)
    boxes = torch.tensor([[0.2] * 7, [0.8] * 7]).double().expand(b, 2, 7)

    def steps(seeds: list[int], plan: list[list[int]]) -> list[torch.Tensor]:
        """Return rows, points and values of some seeds after the steps of a plan that they are in."""
        index = torch.tensor(seeds)
        rows, points, values = start[index], asked[index], torch.zeros(len(seeds)).double()
        options = EulboOptions(turns=turns)  # type: ignore[arg-type]
        step = eulbo_step(rows, points, boxes[index], layout, kernel, utility.of(index), "elbo", options)
        epochs = dict.fromkeys(seeds, 0)
        for members in plan:
            going = [seed for seed in seeds if seed in members]
            if going:
                part = Batch(*(one[torch.tensor(going)] for one in data))
                found = step([seeds.index(seed) for seed in going], part, [epochs[seed] + seed for seed in going])
                for seed, value in zip(going, found, strict=True):
                    values[seeds.index(seed)] = value
                    epochs[seed] += 1
        return [rows, points, values]

    plan = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 2], [1, 3], [0, 2], [0, 2], [1, 2, 3], [1], [1], [0, 1, 2, 3], [3]]
    together = steps([0, 1, 2, 3], plan)
    for seed in range(b):
        for own, other in zip(steps([seed], plan), together, strict=True):
            torch.testing.assert_close(own[0], other[seed], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # One for the first step, and one for each query that sees a process that has moved.
        ({}, [2, 1, 1, 2, 1]),
        ({"refines": "nothing"}, [1, 0, 0, 1, 0]),
        # Processes move in the first and third step.
        ({"turns": "epochs"}, [2, 0, 1, 1, 1]),
    ],
)
def test_processes_are_prepared_once_where_the_same_seeds_go_on(
    options: dict[str, Any], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepare = [], eulbo.prepare

    def counted(*args: Any) -> Any:
        made.append(args)
        return prepare(*args)

    monkeypatch.setattr(eulbo, "prepare", counted)
    utility, k = utilities(3)["improvement"]
    step = step_of(rows_of(3), uniform(3, k, 2, seed=3), utility, **options)
    counts = []
    for epoch, going in enumerate([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 2], [0, 2]]):
        made.clear()
        step(going, batch(len(going)), [epoch] * len(going))
        counts.append(len(made))
    assert counts == expected


def test_what_breaks_is_tried_again_and_what_it_began_with_is_kept() -> None:
    """One seed's data are no numbers: the other is done at the first attempt."""
    utility = SoftImprovement(torch.zeros(2).double())
    rows, points = rows_of(2), uniform(2, 1, 2, seed=3)

    def drawn() -> list[Shuffled]:
        bad, good = sources(20, 21)()
        bad.y[0] = torch.nan
        return [bad, good]

    found = maximised(rows, points, utility, drawn)
    assert (found.attempts, found.reverted) == ([ATTEMPTS, 1], [True, False])
    for trained, start in zip(found.trained, (rows, points), strict=True):
        assert torch.equal(trained[0], start[0])
        assert not torch.equal(trained[1], start[1])


def test_each_attempt_has_a_tenth_of_both_rates(recorded: Callable[[], tuple[Recorder, Recorder]]) -> None:
    utility = SoftImprovement(torch.zeros(1).double())

    def drawn() -> list[Shuffled]:
        (bad,) = sources(20)()
        bad.y[0] = torch.nan
        return [bad]

    maximised(rows_of(1), uniform(1, 1, 2, seed=3), utility, drawn, learning_rate=0.5, query_rate=0.02)
    assert [one.learning_rate for one in Recorder.made[::2]] == pytest.approx([0.5, 0.05, 0.005])
    assert [one.learning_rate for one in Recorder.made[1::2]] == pytest.approx([0.02, 0.002, 0.0002])


def test_a_process_that_breaks_in_the_very_last_step_is_attempted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    legends: list[int] = []

    def spoilt_once(
        rows: torch.Tensor, progress: list[Progress], layout: Layout, kernel: SparseKernel
    ) -> list[Progress]:
        assert rows.shape == (len(progress), layout.size)
        legends.append(len(progress))
        return [replace(one, broken=len(legends) == 1) for one in progress]

    monkeypatch.setattr(eulbo, "checked", spoilt_once)
    rows, points = rows_of(2), uniform(2, 1, 2)
    found = maximised(rows, points, SoftImprovement(torch.zeros(2).double()), sources(20, 12))
    assert legends == [2, 2]
    assert found.attempts == [2, 2]
    assert not any(found.reverted)
