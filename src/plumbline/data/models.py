"""The list of trained models, `config/models.yaml`, as data: known without importing what trains them."""

from pathlib import Path
from typing import Any

from pydantic import Field, PositiveFloat

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse, read_yaml
from plumbline.core.resources import Resources

TRAINING = Resources(mem_mb=4_000, runtime=60)
"""What a training asks for where its entry does not say."""


class ModelEntry(Options):
    """One model; its file is `models/<name>.npz` in the data folder.

    Attributes:
        title: what it is.
        trainer: a registered trainer.
        options: those of the trainer.
        seed: of the training.
        stands_in_for: the model that it replaces in runs on generated data.
        resources: of the job that trains it; on a GPU where one is asked for and there.
        hours: of a core, or of a GPU, that the training is expected to take; None where nothing is known.
    """

    title: str
    trainer: str
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0)
    stands_in_for: str | None = None
    resources: Resources = TRAINING
    hours: PositiveFloat | None = None


def load_models(path: Path) -> dict[str, ModelEntry]:
    """Return the models listed in a YAML file, by name; none where there is no such file.

    Raises:
        PlumblineError: no YAML, or a typo, with file, model and field.
    """
    content = (read_yaml(path) or {}) if path.is_file() else {}
    if not isinstance(content, dict):
        raise PlumblineError(f"{path}: not a mapping of names to models")
    models = {name: parse(ModelEntry, entry, f"{path}: {name}") for name, entry in content.items()}
    for name, model in models.items():
        if model.stands_in_for is not None and model.stands_in_for not in models:
            raise PlumblineError(f"{path}: {name}: stands_in_for: {unknown('model', model.stands_in_for, models)}")
    return models
