from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.arrays import write_arrays
from plumbline.models.learned.hyperparameter_grid import HyperparameterGrid, read_grid, write_grid

GRID = HyperparameterGrid(
    ("rate", "size"),
    np.array([[0.1, 1.0], [0.2, 2.0]]),
    {"loss": np.array([3.0, np.nan]), "steps": np.array([7.0, 0.0])},
    ("", "the loss is not finite"),
)


def test_it_comes_back_and_the_same_grid_is_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.npz", "two.npz")]
    for path in paths:
        write_grid(path, GRID, {"seed": 0})
    assert paths[0].read_bytes() == paths[1].read_bytes()
    found = read_grid(paths[0])
    assert (found.hyperparameters, found.reasons) == (GRID.hyperparameters, GRID.reasons)
    np.testing.assert_array_equal(found.points, GRID.points)
    assert list(found.measured) == list(GRID.measured)
    for name, values in GRID.measured.items():
        np.testing.assert_array_equal(found.measured[name], values)


def test_what_is_no_grid_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no model at .*online-lda\.npz: `plumbline model online-lda` trains it"):
        read_grid(tmp_path / "online-lda.npz")
    write_grid(tmp_path / "cut.npz", GRID, {})
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:300])
    with pytest.raises(PlumblineError, match=r"cut\.npz is corrupt .*: delete it and run again"):
        read_grid(tmp_path / "cut.npz")
    write_arrays(tmp_path / "map.npz", {"axes": np.eye(2)}, {})
    with pytest.raises(PlumblineError, match=r"map\.npz is no grid of hyperparameters: name another model"):
        read_grid(tmp_path / "map.npz")
