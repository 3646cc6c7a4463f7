import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.options import parse
from plumbline.data.features import read_features
from plumbline.data.sources import antibodies
from plumbline.data.sources.molecules import DESCRIPTORS
from plumbline.problems.build import build_problem
from plumbline.problems.tabular import MoleculeOptions, TabularProblem, places, pool, ranking_problem

ASKED = {"dataset": "small-molecules", "target": "qed", "pool": 30}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def problem() -> TabularProblem:
    X = torch.tensor([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [-4.0, 7.0]], dtype=torch.float64)
    y = torch.tensor([0.1, 0.5, -2.0, 0.4, 9.0], dtype=torch.float64)
    return TabularProblem(X[:4], y[:4], X[4:], y[4:])


@pytest.mark.parametrize("rows", [0, 3])
def test_a_table_without_a_value_is_refused(rows: int) -> None:
    X = torch.arange(2.0 * rows, dtype=torch.float64).view(rows, 2)
    with pytest.raises(PlumblineError, match=f"a table of {rows} rows to choose from, none of which has a value"):
        TabularProblem(X, torch.full((rows,), torch.nan, dtype=torch.float64), X[:0], X[:0, 0])


def test_looks_rows_up_in_any_order_and_shape(problem: TabularProblem) -> None:
    X = problem.candidates[[2, 0, 2]]
    assert problem(X, noise=False).tolist() == [-2.0, 0.1, -2.0]
    assert problem(X.reshape(3, 1, 2), noise=False).shape == (3, 1)
    assert problem(problem.holdout, noise=False).tolist() == [9.0]


def test_optimum_is_the_best_candidate_not_the_best_holdout(problem: TabularProblem) -> None:
    assert problem.optimal_value == 0.5


@pytest.mark.parametrize(
    ("f", "noted"),
    [(3.0, (0, 2, 1.0)), (1.0, (2, 1, 0.5)), (0.5, (3, 1, 0.5))],
)
def test_an_evaluation_is_noted_with_its_place(f: float, noted: tuple[float, ...]) -> None:
    notes = places(torch.tensor([1.0, 3.0, 0.5, 3.0], dtype=torch.float64))
    F = torch.tensor([[f]], dtype=torch.float64)
    assert notes(F, F) == dict(zip(("greater", "equal", "next"), noted, strict=True))
    assert notes(torch.cat([F, F]), torch.cat([F, F])) == {}


@pytest.mark.parametrize("x", [[0.5, 7.0], [0.0, 7.5], [1e-12, 7.0]])
def test_has_no_values_off_the_table(problem: TabularProblem, x: list[float]) -> None:
    with pytest.raises(ValueError, match="own rows only"):
        problem(torch.tensor([x], dtype=torch.float64), noise=False)


def test_bounds_hold_all_rows_and_a_constant_column_has_an_interval(problem: TabularProblem) -> None:
    assert problem.bounds.tolist() == [[-4.0, 7.0], [3.0, 8.0]]


@given(rows=st.integers(1, 60), size=st.integers(1, 60), fraction=st.floats(0, 0.99), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_pool_is_cut_in_two_disjoint_parts(rows: int, size: int, fraction: float, seed: int) -> None:
    if size > rows:
        with pytest.raises(PlumblineError, match=f"pool of {size} rows from a table of {rows}"):
            pool(rows, size, fraction, generator(seed))
        return
    kept, held = pool(rows, size, fraction, generator(seed))
    chosen = [*kept.tolist(), *held.tolist()]
    assert len(set(chosen)) == len(chosen) == size
    assert set(chosen) <= set(range(rows))
    assert len(held) == round(fraction * size)


def test_molecules_keep_features_and_values_together(molecule_table: pd.DataFrame) -> None:
    problem = ranking_problem(molecule_table, DESCRIPTORS, parse(MoleculeOptions, ASKED, "test"), generator())
    assert problem.space.rows.shape == (24, len(DESCRIPTORS))
    assert problem.holdout.shape == (6, len(DESCRIPTORS))
    by_features = {tuple(row[list(DESCRIPTORS)]): row["qed"] for _, row in molecule_table.iterrows()}
    for part in (problem.space.rows, problem.holdout):
        expected = [by_features[tuple(row)] for row in part.tolist()]
        assert problem.function(part, noise=False).tolist() == expected


def test_holdout_is_no_candidate(molecule_table: pd.DataFrame) -> None:
    problem = ranking_problem(molecule_table, DESCRIPTORS, parse(MoleculeOptions, ASKED, "test"), generator())
    same = (problem.space.rows.unsqueeze(1) == problem.holdout).all(dim=-1)
    assert not same.any()


def test_minimised_target_is_negated(molecule_table: pd.DataFrame) -> None:
    up = ranking_problem(molecule_table, DESCRIPTORS, parse(MoleculeOptions, ASKED, "test"), generator())
    asked = parse(MoleculeOptions, {**ASKED, "maximise": False}, "test")
    down = ranking_problem(molecule_table, DESCRIPTORS, asked, generator())
    rows = up.space.rows
    assert torch.equal(rows, down.space.rows)
    assert torch.equal(up.function(rows, noise=False), -down.function(rows, noise=False))
    assert down.optimum == -up.function(rows, noise=False).min()


def test_without_a_holdout_all_of_the_pool_is_candidates(context) -> None:
    problem = build_problem("molecules", {**ASKED, "holdout_fraction": 0.0}, context(0))
    assert len(problem.space.rows) == 30
    assert problem.holdout is not None
    assert len(problem.holdout) == 0


def test_seeds_draw_different_pools(context) -> None:
    one, other = (build_problem("molecules", ASKED, context(seed)) for seed in (0, 1))
    assert not torch.equal(one.space.rows, other.space.rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "qedd"}, "did you mean 'qed'"),
        ({"pool": 41}, "pool of 41 rows from a table of 40"),
        ({"dataset": "nowhere"}, "no features at"),
        ({"poool": 3}, "did you mean 'pool'"),
        ({"holdout_fraction": 1.0}, "holdout_fraction"),
    ],
)
def test_mistakes_are_told_in_one_line(context, change: dict[str, object], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        build_problem("molecules", {**ASKED, **change}, context(0))
    assert "\n" not in str(caught.value)


def test_docking_is_ranked_by_its_published_descriptors_the_lowest_score_first(context, molecule_table) -> None:
    options = {"dataset": "small-docking", "target": "3pbl_docking", "pool": 40, "maximise": False}
    problem = build_problem("molecules", options, context(0))
    rows = torch.cat([problem.space.rows, problem.holdout])
    assert rows.shape == (40, len(DESCRIPTORS))
    assert problem.function(rows, noise=False).max().item() == pytest.approx(5.0 + molecule_table["sa"].max() / 10)


def test_antibodies_keep_features_and_stability_together(context, data_folder) -> None:
    problem = build_problem("antibodies", {"dataset": "small-antibodies", "pool": 30}, context(0))
    table = read_features(data_folder / "features" / "small-antibodies.parquet")
    assert problem.space.dim == len(antibodies.DESCRIPTORS) == 22
    assert not any("instability" in name for name in antibodies.DESCRIPTORS)
    by_features = dict(zip(map(tuple, table[list(antibodies.DESCRIPTORS)].to_numpy()), table["stability"], strict=True))
    expected = [by_features[tuple(row)] for row in problem.space.rows.tolist()]
    assert problem.function(problem.space.rows, noise=False).tolist() == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("antibodies", {"dataset": "small-molecules"}, "'small-molecules' has no column heavy_molecular_weight"),
        ("molecules", {"dataset": "small-antibodies", "target": "stability"}, "has no column exact_mol_wt"),
        ("antibodies", {"dataset": "small-antibodies", "target": "stabilty"}, "did you mean 'stability'"),
        ("antibodies", {"dataset": "small-antibodies", "target": "heavy"}, "unknown target 'heavy'"),
        ("antibodies", {"dataset": "small-antibodies", "target": "heavy_gravy"}, "unknown target 'heavy_gravy'"),
        ("molecules", {"dataset": "small-molecules", "target": "mol_weight"}, "unknown target 'mol_weight'"),
    ],
)
def test_a_table_for_another_problem_is_told_in_one_line(context, name, options, message) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        build_problem(name, options, context(0))
    assert "\n" not in str(caught.value)
