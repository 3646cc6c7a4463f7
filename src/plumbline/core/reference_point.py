"""The reference point of the hypervolume."""

from collections.abc import Sequence

import torch
from torch import Tensor

from plumbline.core.outcomes import Outcome


def reference_point(outcomes: Sequence[Outcome]) -> Tensor | None:
    """Return the reference point of the hypervolume, `m`; None for a single objective."""
    references = [outcome.reference for outcome in outcomes if outcome.role == "objective"]
    known = [reference for reference in references if reference is not None]
    return torch.tensor(known, dtype=torch.float64) if len(known) == len(references) else None
