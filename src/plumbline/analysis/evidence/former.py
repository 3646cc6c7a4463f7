"""Methods of reference results whose definition has changed since, so that these results are of another one.

Reference results name methods by their entries in `config/methods`. Where an entry has got another definition and its
experiment has not been run again, the provenance of the results says in `former_variants` with which departures the
method ran: its `variant` today. Keeping the experiment again writes a provenance without it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plumbline.core.files import read_json
from plumbline.store.reference_files import ExperimentFiles

FORMER_VARIANTS = "former_variants"
"""Key of the departures in a provenance, by method."""


def former_definitions(about: Mapping[str, Any], methods: Iterable[str]) -> dict[str, str]:
    """Return the departures that methods ran with, in words, of those whose definition has changed since.

    Args:
        about: provenance of an experiment's reference results.
        methods: their entries.
    """
    variants: Mapping[str, Iterable[str]] = about.get(FORMER_VARIANTS, {})
    return {method: ", ".join(variants[method]) for method in methods if method in variants}


def former_in_words(folder: Path, methods: Iterable[str]) -> str:
    """Return which methods ran by another definition than today's, in one sentence; empty where none did.

    Args:
        folder: of an experiment's reference results, which have a provenance.
        methods: entries whose runs are shown.
    """
    former = former_definitions(read_json(ExperimentFiles(folder).provenance), methods)
    # Methods with the same departures, which may be many, together.
    alike = {departures: [one for one, its in former.items() if its == departures] for departures in former.values()}
    each = "; ".join(f"{', '.join(names)} ran with the departures {departures}" for departures, names in alike.items())
    changed = "its definition has" if len(former) == 1 else "their definitions have"
    return f"{each}: {changed} changed since" if each else ""
