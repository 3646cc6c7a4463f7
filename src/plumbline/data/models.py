"""The list of trained models in `config/models.yaml`, read without an import of their trainers."""

from pathlib import Path
from typing import Any

from pydantic import Field, PositiveFloat

from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options, parse
from plumbline.core.resources import Resources
from plumbline.core.strict_yaml import read_yaml

TRAINING = Resources(mem_mb=4_000, runtime=60)
"""Default resources of a training."""


class ModelEntry(Options):
    """A model; its file is `models/<name>.npz` in the data folder.

    Attributes:
        title: description of the model.
        trainer: a registered trainer.
        options: options of the trainer.
        seed: seed of the training.
        stands_in_for: the model that it replaces in runs on generated data.
        resources: resources of the training job, which uses a GPU if it requests one and there is one.
        hours: expected core or GPU hours of the training; None where unknown.
    """

    title: str
    trainer: str
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0)
    stands_in_for: str | None = None
    resources: Resources = TRAINING
    hours: PositiveFloat | None = None

    def origin(self, name: str) -> dict[str, Any]:
        """Return what the file of the model called `name` says of its training.

        Without the title, since the file's content is part of trials' keys.
        """
        return {"name": name, **self.model_dump(mode="json", include={"trainer", "options", "seed"})}


def load_models(path: Path) -> dict[str, ModelEntry]:
    """Return the models listed in a YAML file, by name; none if there is no such file.

    Raises:
        PlumblineError: the file is not YAML, or has a typo; the message names file, model and field.
    """
    content = (read_yaml(path) or {}) if path.is_file() else {}
    if not isinstance(content, dict):
        raise PlumblineError(f"{path}: not a mapping of names to models")
    models = {name: parse(ModelEntry, entry, f"{path}: {name}") for name, entry in content.items()}
    for name, model in models.items():
        if model.stands_in_for is not None and model.stands_in_for not in models:
            raise PlumblineError(f"{path}: {name}: stands_in_for: {unknown('model', model.stands_in_for, models)}")
    return models
