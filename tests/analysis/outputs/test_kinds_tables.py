"""What every kind of table must do; a new kind is noticed here and asks for an example."""

from pathlib import Path

import pandas as pd
import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import tabulate
from plumbline.analysis.outputs.kinds import tables
from plumbline.core.errors import PlumblineError

KINDS = list(tables.entries())


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_it_is_a_table_that_survives_csv(self, kind: str, found: Evidence, folder: Path) -> None:
        table = tabulate(experiment_of(kind), found)
        assert len(table)
        assert table.columns.is_unique
        table.to_csv(folder / "E.csv", index=False)
        assert pd.read_csv(folder / "E.csv").columns.tolist() == table.columns.tolist()

    def test_it_repeats_itself(self, kind: str, found: Evidence) -> None:
        pd.testing.assert_frame_equal(*(tabulate(experiment_of(kind), found) for _ in range(2)))

    def test_a_typo_in_its_options_is_one_line(self, kind: str, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="table of E: unknown field 'rows'"):
            tabulate(experiment_of(kind, rows=3), found)
