"""What trials read -> inputs of their runs in MLflow: datasets, and models that others were trained on."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mlflow.entities import Dataset

from plumbline.core.files import digest_of
from plumbline.store.keys import trial_inputs
from plumbline.store.spec import TrialSpec
from plumbline.study.resolved import ResolvedRun

DIGITS = 16
"""Of a digest, as in keys of trials."""


def dataset_inputs(run: ResolvedRun, data: Path | None) -> Callable[[TrialSpec], list[Dataset]]:
    """Return the function from a trial's spec to the datasets and models that it reads.

    Args:
        run: with the entries of datasets and models.
        data: the folder of built inputs; None for no inputs.
    """

    @cache
    def dataset(path: str) -> Dataset:
        file, name = Path(data or ".") / path, Path(path).stem
        entry = run.datasets.get(name) or run.models.get(name)
        url = getattr(entry, "url", None)
        about = {key: getattr(entry, key) for key in ("title", "licence", "stands_in_for") if getattr(entry, key, None)}
        return Dataset(
            name=name,
            digest=digest_of(file)[:DIGITS] if file.is_file() else "not-built",
            source_type="http" if url else "local",
            source=json.dumps({"url": url} if url else {"uri": path}),
            profile=json.dumps(about),
        )

    def of_trial(spec: TrialSpec) -> list[Dataset]:
        return [] if data is None else [dataset(path) for path in trial_inputs(spec)]

    return of_trial
