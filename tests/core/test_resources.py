from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.resources import Resources, greater
from plumbline.data.models import TRAINING, load_models


@given(st.lists(st.builds(Resources, gpu=st.integers(0, 8), mem_mb=st.integers(100, 9000)), min_size=1, max_size=3))
def test_a_job_gets_the_most_that_is_asked_for(asked: list[Resources]) -> None:
    found = greater(*asked)
    assert found.gpu == max(one.gpu for one in asked)
    assert found.mem_mb == max(one.mem_mb for one in asked)
    assert found == greater(*reversed(asked))


def test_what_nobody_asks_for_is_the_default() -> None:
    assert greater(Resources(), Resources()) == Resources()
    assert greater(Resources(mem_mb=500), Resources()).mem_mb == 500, "less than the default is no accident"
    assert greater(Resources(seeds_per_job=5), Resources(seeds_per_job=2), Resources()).seeds_per_job == 2


def test_models_say_what_their_training_asks_for(root: Path, tmp_path: Path) -> None:
    models = load_models(root / "config/models.yaml")
    assert models["selfies-vae"].resources.gpu == 1, "an epoch takes hours of a core"
    assert models["zinc-components"].resources == TRAINING
    path = tmp_path / "models.yaml"
    path.write_text("m: {title: M, trainer: principal-components, resources: {gpus: 1}}\n")
    with pytest.raises(PlumblineError, match="unknown field 'gpus': did you mean 'gpu'"):
        load_models(path)
