"""Tables: rows looked up in blocks against brute force, and rows that are left."""

import resource
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor

from plumbline.core.errors import PlumblineError
from plumbline.core.history import History
from plumbline.spaces.box import Box
from plumbline.spaces.table import BLOCK, NONE, Table, row_numbers, without


@given(
    n_rows=st.integers(0, 12),
    n_points=st.sampled_from([0, 1, 5, BLOCK, BLOCK + 1, 3 * BLOCK]),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_looked_up_as_by_brute_force(n_rows: int, n_points: int, d: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows, X = (torch.randint(0, 3, (n, d), generator=generator).double() for n in (n_rows, n_points))
    table = [tuple(row) for row in rows.tolist()]
    expected = [table.index(tuple(x)) if tuple(x) in table else NONE for x in X.tolist()]
    assert row_numbers(rows, X).tolist() == expected
    points = {tuple(x) for x in X.tolist()}
    assert without(rows, X).tolist() == [list(row) for row in table if row not in points]


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 2)])
def test_points_of_any_batch_shape_are_looked_up(shape: tuple[int, ...]) -> None:
    rows = torch.arange(10.0, dtype=torch.float64).reshape(5, 2)
    numbers = torch.arange(torch.Size(shape).numel()).reshape(shape) % 5
    assert torch.equal(row_numbers(rows, rows[numbers]), numbers)


LARGE = """
import torch
from plumbline.spaces.table import row_numbers, without
rows = torch.arange(400_000.0, dtype=torch.float64).reshape(20_000, 20)
assert torch.equal(row_numbers(rows, rows[::50]), torch.arange(0, 20_000, 50))
assert len(without(rows, rows[::2][:4_000])) == 16_000
"""


def test_a_large_table_is_searched_in_little_memory() -> None:
    """All rows with all points would take 1.6 GB."""

    def within() -> None:
        soft = 1_400_000_000
        resource.setrlimit(resource.RLIMIT_DATA, (soft, soft))

    subprocess.run([sys.executable, "-c", LARGE], check=True, preexec_fn=within)


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def history(X: Tensor, initial: int = 0) -> History:
    return History(X, X.sum(dim=-1, keepdim=True), initial)


class TestTable:
    @pytest.fixture
    def table(self, bounds: Tensor) -> Table:
        return Table(bounds, Box(bounds).draw(6, history(bounds[:0]), generator(1)))

    def test_rows_are_there_once(self, table: Table) -> None:
        seen = history(table.rows[[1, 4]])
        left = {tuple(row) for row in table.rows[[0, 2, 3, 5]].tolist()}
        assert {tuple(row) for row in table.remaining(seen).tolist()} == left
        assert {tuple(row) for row in table.draw(9, seen, generator()).tolist()} == left
        assert table.settle(seen, generator()).size == 4

    def test_too_few_in_a_region_are_all(self, table: Table) -> None:
        region = torch.stack([table.rows[0] - 1e-9, table.rows[0] + 1e-9])
        assert table.within(region, history(table.rows[:0]), 1).size == 1
        wide = table.within(region, history(table.rows[:0]), 2)
        assert wide.size == 6
        assert torch.equal(wide.bounds, table.bounds)

    def test_an_empty_one_is_one_line(self, table: Table) -> None:
        with pytest.raises(PlumblineError, match="every row of the table has been evaluated"):
            table.settle(history(table.rows), generator())
