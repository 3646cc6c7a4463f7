"""Models on disk, and whose they are."""

import json
from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.models.learned.arrays import read_arrays, write_arrays


@pytest.mark.parametrize("origin", [{"name": "real"}, {"trainer": "of an older version"}])
def test_a_model_is_read_under_its_name(tmp_path: Path, origin: dict[str, str]) -> None:
    write_arrays(tmp_path / "models/real.npz", {"a": np.arange(3)}, origin)
    with read_arrays(tmp_path / "models/real.npz") as held:
        assert held["a"].tolist() == [0, 1, 2]
        assert json.loads(str(held["origin"])) == origin


def test_a_stand_in_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "models/made-up.npz", {"a": np.arange(3)}, {"name": "made-up"})
    (tmp_path / "models/made-up.npz").rename(tmp_path / "models/real.npz")
    words = r"real\.npz is the model 'made-up', not 'real'"
    with pytest.raises(PlumblineError, match=words) as caught, read_arrays(tmp_path / "models/real.npz"):
        pass
    assert "\n" not in str(caught.value)
    (tmp_path / "models/real.npz").rename(tmp_path / "elsewhere.npz")
    with read_arrays(tmp_path / "elsewhere.npz") as held:
        assert len(held["a"]) == 3
