"""The table of a search space."""

import pytest
from table_cases import experiment_of

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import tabulate
from plumbline.core.errors import PlumblineError


class TestSearchSpace:
    def test_it_is_the_configuration_in_words(self, found: Evidence) -> None:
        table = tabulate(experiment_of("search-space"), found)
        assert table.to_numpy().tolist() == [
            ["oven", "0.0001", "0.1", "Continuous (log-scale)"],
            ["eggs", "1", "12", "Discrete (step size 1)"],
        ]

    def test_an_unknown_space_is_answered_with_the_nearest(self, found: Evidence) -> None:
        with pytest.raises(PlumblineError, match="unknown search space 'kitchn': did you mean 'kitchen'"):
            tabulate(experiment_of("search-space", space="kitchn"), found)
