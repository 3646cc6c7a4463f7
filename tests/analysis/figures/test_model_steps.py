"""Models before their queries, step by step."""

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.core.errors import PlumblineError


class TestModelSteps:
    def test_a_column_a_step_and_two_rows_a_method(self, found: Evidence) -> None:
        figure = build("model-steps", found)
        assert len(figure.axes) == 2 * 2 * 2
        assert [ax.get_title() for ax in figure.axes if ax.get_title()] == [
            "plain,\nbefore round 1",
            "plain,\nbefore round 4",
            "calibrated,\nbefore round 1",
            "calibrated,\nbefore round 4",
        ]

    def test_only_what_was_seen_before_the_query_is_drawn(self, found: Evidence) -> None:
        for column, step in enumerate((1, 4)):
            top = build("model-steps", found).axes[column]
            seen = next(line for line in top.lines if line.get_label() == "observed")
            query = next(line for line in top.lines if line.get_label() == "next query")
            assert len(seen.get_xdata()) == made.INITIAL + step - 1
            np.testing.assert_allclose(query.get_xdata(), [(made.INITIAL + step - 1) / 100])

    def test_the_seed_that_is_asked_for_is_shown(self, found: Evidence) -> None:
        for seed in (0, 2):
            rows = found.trials("bowl", "plain")
            values = rows.loc[(rows["seed"] == seed) & (rows["iteration"] < 1), "y"]
            top = build("model-steps", found, minimise=False, seed=seed).axes[0]
            seen = next(line for line in top.lines if line.get_label() == "observed")
            np.testing.assert_allclose(seen.get_ydata(), values)
        with pytest.raises(PlumblineError, match=r"no snapshots of seed 9: the experiment has \[0, 1, 2\]"):
            build("model-steps", found, seed=9)

    @pytest.mark.parametrize(("minimise", "sign"), [(True, -1), (False, 1)])
    def test_it_is_turned_upside_down_as_a_whole(self, found: Evidence, minimise: bool, sign: int) -> None:
        top = build("model-steps", found, minimise=minimise).axes[0]
        truth = next(line for line in top.lines if line.get_label() == "truth")
        seen = next(line for line in top.lines if line.get_label() == "observed")
        assert (sign * np.asarray(truth.get_ydata()) <= 0).all()
        assert (sign * np.asarray(seen.get_ydata()) <= 0).all()
