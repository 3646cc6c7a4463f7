"""Evidence from reference results answers as evidence from records does, as far as they go."""

from dataclasses import replace

import made_evidence as made
import numpy as np
import pandas as pd
import pytest

from plumbline.analysis.evidence.evidence import PLACE, Evidence
from plumbline.analysis.evidence.final_values import final_values
from plumbline.analysis.evidence.reference import NotInReferenceError, Reference
from plumbline.analysis.evidence.runs import runs_of
from plumbline.analysis.publish.reference import curves, rounds

METRICS = ("regret", "best_f", "nll", "query_coverage")


def in_reference(found: Evidence, **changes: pd.DataFrame) -> Evidence:
    """Return evidence as reference results: places, and `changes` of what there is."""
    return replace(found, rows=found.rows[PLACE], reference=Reference(**changes))


def all_runs(found: Evidence) -> pd.DataFrame:
    return runs_of(found, [(*pair, metric) for pair in found.pairs for metric in METRICS])


class TestRounds:
    @pytest.mark.slow
    def test_they_are_what_records_say(self, found: Evidence) -> None:
        reference = in_reference(found, rounds=rounds(found, METRICS))
        for pair in found.pairs:
            for metric in METRICS:
                expected = found.by_round(*pair, metric)
                theirs = reference.by_round(*pair, metric)
                assert (theirs.index == expected.index).all()
                assert (theirs.columns == expected.columns).all()
                np.testing.assert_allclose(theirs, expected, rtol=1e-6)
                np.testing.assert_allclose(reference.ends(*pair, metric), found.ends(*pair, metric), rtol=1e-6)
                np.testing.assert_allclose(
                    final_values(reference, *pair, metric), final_values(found, *pair, metric), rtol=1e-6
                )

    def test_a_method_without_values_has_no_columns(self, found: Evidence) -> None:
        """Random search has no coverage; a figure that shows the others' is drawn anew all the same."""
        kept = rounds(found, METRICS)
        reference = in_reference(found, rounds=kept[(kept["method"] != "plain") | (kept["metric"] != "nll")])
        assert reference.by_round("bowl", "plain", "nll").size == 0
        assert reference.ends("bowl", "plain", "nll").empty
        assert reference.by_round("bowl", "calibrated", "nll").size

    def test_without_them_there_are_none(self, found: Evidence) -> None:
        with pytest.raises(NotInReferenceError, match="no regret by round of single runs of plain on bowl"):
            in_reference(found, runs=all_runs(found)).by_round("bowl", "plain", "regret")


class TestRuns:
    @pytest.mark.slow
    def test_final_values_are_what_records_say(self, found: Evidence) -> None:
        reference = in_reference(found, runs=all_runs(found))
        for pair in found.pairs:
            for metric in METRICS:
                np.testing.assert_allclose(
                    final_values(reference, *pair, metric), final_values(found, *pair, metric), err_msg=metric
                )
                np.testing.assert_allclose(reference.ends(*pair, metric), found.ends(*pair, metric))
                assert reference.end_summary(*pair, metric, 0.5) == pytest.approx(found.end_summary(*pair, metric, 0.5))

    def test_best_values_follow_from_regrets(self, found: Evidence) -> None:
        """The optimum is as far above the best value as the regret says."""
        runs = all_runs(found)
        reference = in_reference(found, runs=runs[runs["metric"] != "best_f"], curves=curves(found, ["best_f"]))
        np.testing.assert_allclose(reference.ends("bowl", "plain", "best_f"), found.ends("bowl", "plain", "best_f"))
        assert reference.reference is not None
        assert reference.reference.optimum("bowl", "plain") == pytest.approx(0.0)

    def test_nominal_coverage_follows_from_its_gap(self, found: Evidence) -> None:
        runs = runs_of(found, [("bowl", "plain", metric) for metric in ("query_coverage", "query_coverage_gap")])
        of = ("bowl", "plain", "mean_nominal_coverage")
        assert in_reference(found, runs=runs).end_summary(*of).mean == pytest.approx(found.end_summary(*of).mean)
        with pytest.raises(NotInReferenceError, match="no final mean_nominal_coverage"):
            in_reference(found, runs=runs.query("metric == 'query_coverage'")).end_summary(*of)

    def test_what_is_not_there_is_said(self, found: Evidence) -> None:
        reference = in_reference(found, runs=all_runs(found).query("method == 'plain'"))
        with pytest.raises(NotInReferenceError, match="no final regret of single runs of calibrated on bowl"):
            reference.ends("bowl", "calibrated", "regret")


class TestTable:
    TABLE = pd.DataFrame(
        {
            "task": "bowl",
            "method": ["plain", "calibrated"],
            "seeds": 50,
            "regret": [1.0, 2.0],
            "regret ±": [0.1, 0.2],
            "regret median": [0.9, 1.9],
            "seeds above 5": [3, 0],
            "nll": [0.5, 0.6],
            "nll ±": [0.1, 0.1],
            "nll seeds": [48, 50],
        }
    )

    def test_summaries_are_those_of_the_table_where_there_are_no_runs(self, found: Evidence) -> None:
        reference = in_reference(found, table=self.TABLE)
        assert reference.end_summary("bowl", "plain", "regret", 5.0) == (1.0, 0.1, 50, 0.9, 3)
        assert reference.end_summary("bowl", "plain", "regret", 7.0).above is None
        summary = reference.end_summary("bowl", "plain", "nll")
        assert summary[:3] == (0.5, 0.1, 48)
        assert np.isnan(summary.median)

    @pytest.mark.parametrize("of", [("valley", "plain", "regret"), ("bowl", "plain", "crps")])
    def test_what_is_not_there_is_said(self, found: Evidence, of: tuple[str, str, str]) -> None:
        with pytest.raises(NotInReferenceError, match="no final"):
            in_reference(found, table=self.TABLE).end_summary(*of)


def test_without_a_value_there_is_a_summary_all_the_same() -> None:
    silent = [row | {"nll": float("nan")} for row in made.trial(model=False)]
    assert silent
    summary = replace(Evidence(pd.DataFrame(silent))).end_summary("bowl", "plain", "nll", 1.0)
    assert summary.seeds == 0
    assert summary.above is None
    assert np.isnan(summary.mean)
