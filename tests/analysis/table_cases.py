"""Tables of each kind, from the examples of `made_evidence`."""

from typing import Any

import made_evidence as made
import pytest

from plumbline.study.resolved import ResolvedExperiment


def example(kind: str) -> dict[str, Any]:
    if kind not in made.TABLES:
        pytest.fail(f"table {kind!r} has no example: add its options to TABLES in {made.__file__}")
    return made.TABLES[kind]


def experiment_of(kind: str, **changes: Any) -> ResolvedExperiment:
    return made.plan({"E": made.experiment(table={"kind": kind, "options": example(kind) | changes})}).resolve("E")
