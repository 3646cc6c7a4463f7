"""PyArrow without pandas."""

import subprocess
import sys

import pytest

CODE = """
import sys
from plumbline.core.arrow import without_pandas
without_pandas()
assert "_Hidden" not in {type(finder).__name__ for finder in sys.meta_path}
import numpy as np
import pyarrow as arrow
table = arrow.table({"a": arrow.array([1.5, None]), "b": arrow.array(np.arange(2))})
assert "pandas" not in sys.modules
frame = table.to_pandas()
assert "pandas" in sys.modules
assert frame["a"].isna().tolist() == [False, True]
import pandas as pd
assert arrow.array(pd.Series([1.0, float("nan")])).null_count == 1, "it knows pandas again"
without_pandas()
assert arrow.array(pd.Series([1.0, float("nan")])).null_count == 1, "too late to do without"
"""


@pytest.mark.slow
def test_pandas_is_imported_where_it_is_used(one_core: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], env=one_core, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
