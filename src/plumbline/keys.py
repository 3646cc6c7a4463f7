"""Names of trials: what was asked, and the code and data that answer."""

import hashlib
import json
from functools import cache
from pathlib import Path

from plumbline.catalogue import catalogue
from plumbline.sources import source_digest
from plumbline.specs import TrialSpec, short_digest


@cache
def _content_digest(path: Path, modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def features_path(data: Path, dataset: str) -> Path:
    """Return where the features of a dataset lie under the data folder."""
    return data / "features" / f"{dataset}.parquet"


def code_digest(spec: TrialSpec) -> str:
    """Return the digest of the source that a trial runs: its method, its problem, and the rounds."""
    method = catalogue().find("method", spec.method.name).module
    problem = catalogue().find("problem", spec.problem.name).module
    return source_digest(method, problem, f"{__package__}.trials.trial")


def illustration_digest(kind: str) -> str:
    """Return the digest of the source that computes the illustration called `kind`."""
    return source_digest(catalogue().find("illustration", kind).module)


def trial_key(spec: TrialSpec, data: Path) -> str:
    """Return the 16 hex digits that name a trial: spec, source, and the features that a tabular problem reads.

    Labels do not count: they are what figures call things, not what is computed.
    """
    asked = spec.model_dump(mode="json")
    del asked["task"], asked["method"]["label"]
    parts = [json.dumps(asked, sort_keys=True), code_digest(spec)]
    dataset = spec.problem.options.get("dataset")
    if dataset is not None:
        path = features_path(data, dataset)
        parts.append(_content_digest(path, path.stat().st_mtime_ns) if path.is_file() else "no features yet")
    return short_digest("\n".join(parts))
