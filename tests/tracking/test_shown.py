"""What a figure says of the metrics that MLflow shows first."""

from pathlib import Path

import pytest

from plumbline.core.options import parse
from plumbline.metrics.registry import METRICS
from plumbline.study.experiments import Experiment, Study
from plumbline.study.plan import Plan, load_plan
from plumbline.study.settings import read_config
from plumbline.tracking import shown


@pytest.fixture(scope="module")
def plan_of_all() -> Plan:
    root = Path(__file__).parents[2]
    return load_plan(read_config(root / "config/config.yaml"), root)


def experiment(**fields: object) -> Experiment:
    return parse(Experiment, {"title": "T", **fields}, "test")


def test_a_figure_that_minimises_in_a_row_or_as_a_whole() -> None:
    rows = [{"metric": "regret"}, {"metric": "best_f", "minimise": True}]
    assert shown.minimises(experiment(figure={"kind": "curves", "options": {"rows": rows}}))
    assert shown.minimises(experiment(figure={"kind": "model-steps", "options": {"minimise": True}}))
    assert not shown.minimises(experiment(figure={"kind": "curves", "options": {"rows": rows[:1]}}))
    assert not shown.minimises(experiment())


def test_metrics_of_figure_and_table_come_first() -> None:
    one = experiment(
        figure={"kind": "mean-ranks", "options": {"metrics": {"crps": "CRPS", "regret": "regret"}}},
        table={"kind": "final-values", "options": {"metrics": ["regret", "nll"]}},
    )
    assert shown.figure_metrics(one) == ["crps", "regret", "nll"]
    core = shown.core_metrics(one)
    assert core[:3] == ["crps", "regret", "nll"]
    assert {*shown.CORE} <= {*core}
    assert len(core) == len({*core})
    assert shown.first_metrics(core, {*core} - {"regret"})[:2] == ["crps", "nll"]
    assert len(shown.first_metrics(core, core)) == 6


@pytest.mark.slow
def test_of_every_experiment_the_metrics_are_found(plan_of_all: Plan) -> None:
    """An experiment whose figure minimises is one of those whose documents do."""
    minimised = set()
    for study in plan_of_all.studies.values():
        assert isinstance(study, Study)
        for name, one in study.experiments.items():
            assert {*shown.figure_metrics(one)} <= METRICS.keys()
            minimised |= {study.study} if shown.minimises(one) else set()
            assert shown.minimises(one) == ("'minimise': True" in str(one.figure)), name
    assert "calibrated" in minimised
