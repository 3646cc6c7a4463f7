from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.hyperparameter_grid import read_grid, write_grid
from plumbline.problems.base import Context
from plumbline.problems.build import build_problem
from plumbline.spaces.table import Table
from plumbline.store.spec import TrialSpec
from plumbline.trials.runner import run_trials

ASKED = {"grid": "small-grid"}


def test_log_scales_are_powers_of_two(context: Callable[[int], Context]) -> None:
    problem = build_problem("online-lda", ASKED, context(0))
    assert problem.bounds.tolist() == [[0.0, 0.5, 0.0], [7.0, 1.0, 5.0]]
    assert isinstance(problem.space, Table)
    assert problem.space.size == 288
    assert {tuple(row[[0, 2]].tolist()) for row in problem.space.rows} == {(i, j) for i in range(8) for j in range(6)}


@pytest.mark.parametrize("measure", ["perplexity", "with_topics"])
def test_values_are_minus_what_was_measured(context: Callable[[int], Context], data_folder: Path, measure: str) -> None:
    problem = build_problem("online-lda", {**ASKED, "measure": measure}, context(0))
    grid = read_grid(data_folder / "models" / "small-grid.npz")
    rows = torch.tensor([[2.0, 0.7, 3.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
    places = [(grid.points == point).all(axis=1).argmax() for point in ([4.0, 0.7, 8.0], [1.0, 1.0, 32.0])]
    assert problem.function(rows, noise=False).tolist() == (-grid.measured[measure][places]).tolist()
    assert problem.optimum == -grid.measured[measure].min()
    assert problem.roles == ["objective"]


@pytest.fixture
def with_failures(data_folder: Path, tmp_path: Path) -> Path:
    """A data folder with the grid, every third point of which failed, the best one too."""
    grid = read_grid(data_folder / "models" / "small-grid.npz")
    values = grid.measured["perplexity"].copy()
    values[::3] = np.nan
    values[values.argmin()] = np.nan
    values[np.nanargmin(values)] = np.nan
    reasons = tuple("it failed" if np.isnan(value) else "" for value in values)
    failed = replace(grid, measured={**grid.measured, "perplexity": values}, reasons=reasons)
    write_grid(tmp_path / "models" / "small-grid.npz", failed, {})
    return tmp_path


def test_the_optimum_is_of_the_points_that_did_not_fail(with_failures: Path) -> None:
    problem = build_problem("online-lda", ASKED, Context(with_failures, torch.Generator()))
    values = problem.function(problem.space.rows, noise=False)  # type: ignore[attr-defined]
    assert values.isnan().sum() > 90
    assert problem.optimum == values[~values.isnan()].max()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["random", "ei", "calibrated"])
def test_a_failed_point_is_an_observation_of_that(
    with_failures: Path, tmp_path: Path, cheap_spec: Callable[..., TrialSpec], method: str
) -> None:
    spec = cheap_spec({"name": "online-lda", "options": ASKED}, method, rounds=4, size=8)
    (folder,) = run_trials([spec], tmp_path / "store", with_failures)
    assert not folder.failed
    y = np.array([row[0] for row in folder.table(spec)["y"].to_pylist()], dtype=float)
    assert len(y) == 12
    assert np.isnan(y[:8]).any()


def test_a_grid_of_other_hyperparameters_is_refused(
    context: Callable[[int], Context], data_folder: Path, tmp_path: Path
) -> None:
    grid = read_grid(data_folder / "models" / "small-grid.npz")
    write_grid(tmp_path / "models" / "small-grid.npz", replace(grid, hyperparameters=("rate", "decay", "size")), {})
    with pytest.raises(PlumblineError, match="a grid of rate, decay, size, not of minibatch, kappa, tau0"):
        build_problem("online-lda", ASKED, Context(tmp_path, torch.Generator()))


def test_a_grid_that_is_not_there_names_the_command(context: Callable[[int], Context]) -> None:
    with pytest.raises(PlumblineError, match=r"no model at .*nowhere\.npz: `plumbline model nowhere` trains it"):
        build_problem("online-lda", {"grid": "nowhere"}, context(0))
