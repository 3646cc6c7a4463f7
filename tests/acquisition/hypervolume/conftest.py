"""BoTorch's own arithmetic, which ours is compared with."""

from collections.abc import Iterator

import pytest
from botorch.acquisition.multi_objective import logei


@pytest.fixture(autouse=True, scope="module")
def in_python() -> Iterator[None]:
    """BoTorch's own automatic differentiation, not the extension that it compiles where there is a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logei, "_C", None)
        patch.setattr(logei, "_load_attempted", True)
        yield
