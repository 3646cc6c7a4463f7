"""Reference figures that are drawn anew are what they were, or stay, and it is said why."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import made_evidence as made
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as arrow
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from PIL import Image

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.draw import columns_for, draw, evidence_of, output_of, tabulate
from plumbline.analysis.publish.redraw import places, redraw, reference_evidence, settings_of
from plumbline.analysis.publish.reference import keep
from plumbline.core.errors import PlumblineError
from plumbline.store.folder import TrialFolder
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.records import write_table
from plumbline.study.plan import Plan, load_plan
from plumbline.study.settings import read_config

CURVES = {"rows": [{"metric": "best_f", "label": "best", "optimum": True}], "panels": [{"task": "bowl"}]}
DIFFERENCES = {"rows": [{"metric": "best_f", "label": "best", "minus": "plain"}], "panels": [{"task": "bowl"}]}
REGRET = {"metric": "regret", "label": "regret"}
EFFECTS = {"metrics": {"regret": "regret"}, "baselines": {"plain": ["calibrated"]}}
COVERAGE = {"panels": [{"task": "bowl"}], "level": 0.5}

FINAL = {"kind": "final-values", "options": {"metrics": ["regret"], "medians": ["regret"]}}


def plan_of(kind: str, options: Mapping[str, Any], table: Mapping[str, Any] = FINAL, **changes: Any) -> Plan:
    figure = {"kind": kind, "options": dict(options)}
    grid = [{"tasks": ["bowl"], "methods": list(made.METHODS)}]
    return made.plan({"E": made.experiment(grid=grid, figure=figure, table=dict(table), **changes)})


@pytest.fixture(autouse=True)
def _bowl(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The task of the trials, and no figure that stays open."""
    monkeypatch.setitem(made.LIBRARY.tasks, "bowl", made.LIBRARY.tasks["forrester"])
    yield
    plt.close("all")


def kept(folder: Path, plan: Plan, *, drawn: bool = False) -> Path:
    """Run an experiment, keep it, and return the folder of what is kept; its figure is `drawn`, or a blank one."""
    quick, store, one = folder / "quick", folder / "store", plan.resolve("E")
    trials = [made.trial(method=method, seed=seed) for method in made.METHODS for seed in range(made.SEEDS)]
    records = made.write(quick / "records/E.parquet", *trials)
    for rows in trials:
        trial = TrialFolder(store, rows[0]["key"])
        trial.write_json(trial.provenance_path, {"commit": "abc", "wall_seconds": 1.0})
    found = from_records(plan, records)
    for kind in ("figures", "tables"):
        (quick / kind).mkdir()
    if drawn:
        draw(one, found, [quick / "figures/E.png"])
    else:
        Image.new("RGB", (4, 3), "white").save(quick / "figures/E.png")
    tabulate(one, found).to_csv(quick / "tables/E.csv", index=False)
    keep([one], quick, store, folder / "reference")
    return folder / "reference"


def from_records(plan: Plan, records: Path) -> Evidence:
    one = plan.resolve("E")
    return evidence_of(one, [*columns_for(one, "figure"), *columns_for(one, "table")], records)


def shown(plan: Plan, found: Evidence) -> list[list[float]]:
    """Return the numbers in a figure: those of its lines, its bands, its bars and its dots."""
    entry, options = output_of(plan.resolve("E"), "figure")
    figure = entry.build(found, options)
    every = [part for ax in figure.axes for part in (ax, *ax.child_axes)]
    numbers = [line.get_xydata() for ax in every for line in ax.lines]
    for area in (area for ax in every for area in ax.collections):
        numbers += [area.get_offsets(), *(path.vertices for path in area.get_paths())]
    return [np.asarray(one, dtype=float).ravel().tolist() for one in numbers]


def redrawn(reference: Path, plan: Plan) -> str:
    """Draw the figure anew, and return the reason why it was not drawn, if it was not."""
    ((name, reason),) = redraw(lambda _: plan, reference)
    assert name == "E"
    return reason


def same(ours: list[list[float]], theirs: list[list[float]]) -> bool:
    """Whether two figures show the same numbers, as far as the file has their digits."""
    return len(ours) == len(theirs) and all(
        one == pytest.approx(other, rel=1e-5, nan_ok=True) for one, other in zip(ours, theirs, strict=True)
    )


class TestTheSameFigure:
    @pytest.mark.parametrize(
        ("kind", "options", "table"),
        [
            ("curves", CURVES, FINAL),
            ("curves", {**DIFFERENCES, "band": "median-interval"}, FINAL),
            ("curves", {"rows": [{**REGRET, "against": "minutes"}], "panels": [{"task": "bowl"}]}, FINAL),
            ("final-dots", REGRET | {"stuck": 0.5}, FINAL),
            ("run-ends", REGRET, FINAL),
            ("coverage-density", COVERAGE, FINAL),
            ("mean-ranks", {"metrics": {"regret": "regret"}}, FINAL),
            ("paired-effects", EFFECTS, {"kind": "paired-effects", "options": EFFECTS}),
        ],
    )
    def test_from_what_is_kept(
        self, tmp_path: Path, kind: str, options: Mapping[str, Any], table: Mapping[str, Any]
    ) -> None:
        plan = plan_of(kind, options, table)
        reference = kept(tmp_path, plan)
        found = from_records(plan, tmp_path / "quick/records/E.parquet")
        assert same(shown(plan, reference_evidence(plan.resolve("E"), reference)), shown(plan, found))

    @pytest.mark.parametrize(
        ("kind", "options", "without"),
        [
            ("curves", {"rows": [REGRET], "panels": [{"task": "bowl"}], "band": "mean-error"}, "rounds"),
            ("curves", {"rows": [REGRET], "panels": [{"task": "bowl"}], "band": "mean-interval"}, "rounds"),
            ("final-dots", REGRET, "runs"),
        ],
    )
    def test_from_what_older_experiments_kept(
        self, tmp_path: Path, kind: str, options: Mapping[str, Any], without: str
    ) -> None:
        """Means by round, and the table."""
        plan = plan_of(kind, options)
        reference = kept(tmp_path, plan)
        (reference / f"E/E-{without}.parquet").unlink()
        found = from_records(plan, tmp_path / "quick/records/E.parquet")
        assert same(shown(plan, reference_evidence(plan.resolve("E"), reference)), shown(plan, found))

    @pytest.mark.parametrize("band", ["quantiles", "median-interval"])
    def test_with_means_where_older_experiments_kept_nothing_of_medians(self, tmp_path: Path, band: str) -> None:
        """The footer says so: it names the band that is drawn."""
        rows = [REGRET, {"metric": "best_f", "label": "best", "band": "mean-interval"}]
        plan, of_means = (
            plan_of("curves", {"rows": rows, "panels": [{"task": "bowl"}], "band": kind})
            for kind in (band, "mean-error")
        )
        reference = kept(tmp_path, plan)
        (reference / "E/E-rounds.parquet").unlink()
        found, older = (
            from_records(plan, tmp_path / "quick/records/E.parquet"),
            reference_evidence(plan.resolve("E"), reference),
        )
        assert same(shown(plan, older), shown(of_means, found))
        (_, ours), (_, theirs) = (output_of(one.resolve("E"), "figure") for one in (plan, of_means))
        assert (
            ours.shown(older)
            == theirs.shown(found)
            == "mean and one standard error, mean and its 70% interval (best) over seeds"
        )
        assert ours.shown(found) != ours.shown(older)

    def test_costs_are_not_on_file(self, tmp_path: Path) -> None:
        plan = plan_of("curves", {"rows": [REGRET], "panels": [{"task": "bowl"}]})
        reference = kept(tmp_path, plan)
        costly = plan_of("curves", {"rows": [REGRET], "panels": [{"task": "bowl", "costs": [2.0]}]})
        assert "no costs of evaluations of plain on bowl" in redrawn(reference, costly)

    def test_from_runs_of_the_same_trials_that_another_experiment_keeps(self, tmp_path: Path) -> None:
        plan = plan_of("run-ends", REGRET)
        reference, found = kept(tmp_path, plan), from_records(plan, tmp_path / "quick/records/E.parquet")
        (reference / "F").mkdir()
        (reference / "E/E-runs.parquet").rename(reference / "F/F-runs.parquet")
        (reference / "E/E-rounds.parquet").unlink()
        about = json.loads((reference / "E/provenance.json").read_text())
        (reference / "F/provenance.json").write_text(json.dumps(about | {"commit": ["another"]}))
        assert "no final regret of single runs" in redrawn(reference, plan)
        (reference / "F/provenance.json").write_text(json.dumps(about))
        assert same(shown(plan, reference_evidence(plan.resolve("E"), reference)), shown(plan, found))

    @pytest.mark.slow
    def test_into_the_same_file(self, tmp_path: Path) -> None:
        plan = plan_of("curves", CURVES)
        reference = kept(tmp_path, plan, drawn=True)
        before = (reference / "E/E.png").read_bytes()
        (reference / "E/E.png").write_bytes(b"")
        assert redrawn(reference, plan) == ""
        assert (reference / "E/E.png").read_bytes() == before

    def test_of_an_illustration(self, tmp_path: Path) -> None:
        drawn = {"kind": "rkhs-function"}
        plan = made.plan({"E": {"title": "No trials", "illustration": drawn, "figure": drawn, "quick": {}}})
        found = made.illustrated("rkhs-function")
        table = arrow.Table.from_pandas(found.illustration, preserve_index=False)
        write_table(tmp_path / "quick/illustrations/E.parquet", table, {METADATA_KEY: json.dumps({"commit": "abc"})})
        (tmp_path / "quick/figures").mkdir()
        Image.new("RGB", (4, 3), "white").save(tmp_path / "quick/figures/E.png")
        keep([plan.resolve("E")], tmp_path / "quick", tmp_path / "store", tmp_path / "reference")
        assert same(shown(plan, reference_evidence(plan.resolve("E"), tmp_path / "reference")), shown(plan, found))


class TestItStays:
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (
                {"rows": [{**REGRET, "against": "minutes"}], "panels": [{"task": "bowl"}]},
                "no regret by round of single runs of plain on bowl",
            ),
            (CURVES | {"panels": [{"task": "bowl", "costs": [1.0]}]}, "no best_f by round"),
        ],
    )
    def test_where_it_takes_more_than_is_on_file(self, tmp_path: Path, options: Mapping[str, Any], reason: str) -> None:
        plan = plan_of("curves", options)
        reference = kept(tmp_path, plan)
        (reference / "E/E-rounds.parquet").unlink()
        before = (reference / "E/E.png").read_bytes()
        assert reason in redrawn(reference, plan)
        assert (reference / "E/E.png").read_bytes() == before

    @pytest.mark.parametrize("change", [{"seeds": 2}, {"quick": {"rounds": 3}}])
    def test_where_its_grid_has_changed(self, tmp_path: Path, change: Mapping[str, Any]) -> None:
        reference = kept(tmp_path, plan_of("curves", CURVES))
        reason = redrawn(reference, plan_of("curves", CURVES, **change))
        assert f"{made.INITIAL} + {made.ROUNDS} evaluations of {made.SEEDS} seeds" in reason

    def test_pictures_of_models_are_not_kept(self, tmp_path: Path) -> None:
        plan = plan_of("curves", CURVES)
        reference = kept(tmp_path, plan)
        assert "pictures of models" in redrawn(reference, plan_of("set-bands", {"task": "bowl"}))


def test_a_difference_from_means_has_its_interval_at_the_end(tmp_path: Path) -> None:
    """Its band along the rounds would take single runs."""
    plan = plan_of("curves", {**DIFFERENCES, "band": "mean-error"})
    reference, found = kept(tmp_path, plan), from_records(plan, tmp_path / "quick/records/E.parquet")
    (reference / "E/E-rounds.parquet").unlink()
    entry, options = output_of(plan.resolve("E"), "figure")
    ours, theirs = (
        entry.build(one, options).axes[0] for one in (reference_evidence(plan.resolve("E"), reference), found)
    )
    line, expected = (next(one for one in ax.lines if one.get_label() == "calibrated") for ax in (ours, theirs))
    np.testing.assert_allclose(line.get_xydata(), expected.get_xydata(), rtol=1e-5, atol=1e-9)
    (strip,), (band,) = ours.child_axes, (one for one in theirs.collections if isinstance(one, PolyCollection))
    (bar,) = (one for one in strip.collections if isinstance(one, LineCollection))
    last = band.get_paths()[0].vertices
    last = last[last[:, 0] == last[:, 0].max(), 1]
    np.testing.assert_allclose(bar.get_segments()[0][:, 1], [last.min(), last.max()], rtol=1e-5)


LOGARITHMIC = ("BOWH-6-lengthscales", "BOWH-6-kernels", "LOCBO-F5a-50")
"""Experiments with reference results whose regret is drawn on a logarithmic axis."""


@pytest.mark.parametrize("name", LOGARITHMIC)
def test_no_line_on_file_leaves_its_logarithmic_axis(root: Path, name: str) -> None:
    one = load_plan(read_config(root / "config/config.yaml", {"preset": "paper"}), root, "config").resolve(name)
    entry, options = output_of(one, "figure")
    figure = entry.build(reference_evidence(one, root / "results/reference"), options)
    drawn = [(ax, part) for ax in figure.axes if ax.get_yscale() == "log" for part in (ax, *ax.child_axes)]
    assert drawn
    for ax, part in drawn:
        low, high = ax.get_ylim()
        values = np.concatenate([np.atleast_1d(line.get_ydata()) for line in part.lines])
        assert (low <= values.min(), values.max() <= high) == (True, True)
        assert not [text for text in part.texts if text.get_text() in "↑↓"]


def test_an_experiment_without_a_figure_is_one_line(tmp_path: Path) -> None:
    plan = plan_of("curves", CURVES)
    with pytest.raises(PlumblineError, match=r"no figure of F in .*: keep one"):
        list(redraw(lambda _: plan, kept(tmp_path, plan), ["F"]))


def test_places_are_those_of_the_trials(found: Any) -> None:
    plan = plan_of("curves", CURVES)
    rows = places(plan.resolve("E"))
    expected = found.rows[found.rows["task"] == "bowl"]
    names = ["method", "seed", "evaluation"]
    in_order = (frame.astype({"method": str}).sort_values(names) for frame in (rows, expected))
    ours, theirs = (frame[[*names, "iteration"]] for frame in in_order)
    assert ours.to_numpy().tolist() == theirs.to_numpy().tolist()


@pytest.mark.parametrize(
    ("data", "instead"),
    [
        ("synthetic", {}),
        ("guacamol-10k, selfies-vae-10k", {}),
        ("cifar-10-jpegs (stands in for cifar-10-subset)", {"cifar-10-subset": "cifar-10-jpegs"}),
        ("a, made (generated, stands in for b), c (stands in for d)", {"b": "made", "d": "c"}),
    ],
)
def test_stand_ins_are_those_of_the_provenance(data: str, instead: dict[str, str]) -> None:
    found = settings_of({"preset": "desk", "data": data})
    assert found == {"preset": "desk", "data": "real", "instead": instead}
