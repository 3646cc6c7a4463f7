import gzip
import os
import random
from pathlib import Path

import numpy as np
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data.sources.dna import CODE, COLUMNS, LABEL, NUCLEOTIDES, read_dna


def test_a_row_has_its_digits_and_its_label(tmp_path: Path) -> None:
    path = tmp_path / "few"
    path.write_text("3 2:1 180:1 \n1 1:1\n")
    table = read_dna(path)
    assert table.columns.tolist() == [*COLUMNS, LABEL]
    assert table[LABEL].tolist() == [3.0, 1.0]
    assert table.iloc[0][table.iloc[0] == 1].index.tolist() == ["x2", "x180"]
    assert table[list(COLUMNS)].sum(axis=1).tolist() == [2.0, 1.0]
    assert (table.dtypes == "float64").all()


@pytest.mark.parametrize("text", ["3 181:1\n", "3 0:1 180:1\n", "three 1:1\n", "3 1:\n", "3 2:1 1:1\n", "\x00\x01 1\n"])
def test_a_damaged_file_is_one_line_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "damaged"
    path.write_text(text)
    with pytest.raises(PlumblineError, match=r"damaged cannot be read .*: delete it and fetch it again") as caught:
        read_dna(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3 1:1\n\n# all\n3 0:1 5:1\n", "line 4: .*index 0"),
        ("3 1:1\n3 5:1 4:1\n", "line 2"),
        ("3 1:1\n3 5:1 5:1\n", "line 2"),
        ("3 1:1\n3 5:1 6\n", "line 2"),
        ("label,x1\n3 5:1\n", "line 1"),
    ],
)
def test_the_bad_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "few").write_text(text)
    with pytest.raises(PlumblineError, match=rf"few cannot be read \({said}.*\): delete it and fetch it again"):
        read_dna(tmp_path / "few")


def by_hand(line: str) -> tuple[list[float], float]:
    """Return features and label of a line, as the format is defined: index 1 is the first feature."""
    label, *pairs = line.partition("#")[0].split()
    row = [0.0] * len(COLUMNS)
    for pair in pairs:
        index, value = pair.split(":")
        row[int(index) - 1] = float(value)
    return row, float(label)


@pytest.mark.parametrize("seed", range(8))
def test_random_rows_are_those_of_the_definition(tmp_path: Path, seed: int) -> None:
    """Whatever indices a file happens to have: the first is 1 also in a file that never uses it, or the last."""
    draw = random.Random(seed)
    low, high = draw.choice([(1, 180), (2, 180), (1, 179), (60, 120)])
    lines = []
    for _ in range(9):
        indices = sorted(draw.sample(range(low, high + 1), draw.randrange(30)))
        pairs = " ".join(f"{i}:{draw.choice(['1', '1.0', '1e0', '+1'])}" for i in indices)
        lines.append(f"{draw.choice(['1', '2.0', '+3'])} {pairs}{draw.choice(['', ' ', ' # text 7:1'])}")
    path = tmp_path / "few.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + draw.choice(["\n", "\r\n"]).join(lines).encode()))
    table = read_dna(path)
    expected = [by_hand(line) for line in lines]
    np.testing.assert_array_equal(table[list(COLUMNS)].to_numpy(), [row for row, _ in expected])
    assert table[LABEL].tolist() == [label for _, label in expected]


def test_a_damaged_file_is_read_or_one_line_with_its_number(tmp_path: Path) -> None:
    draw, said = random.Random(0), []
    whole = "\n".join(f"{i % 3 + 1} " + " ".join(f"{j}:1" for j in range(1 + i, 181, 37)) for i in range(6)).encode()
    path = tmp_path / "few"
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.choice([1, 1, 5])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
        try:
            assert read_dna(path).shape[1] == len(COLUMNS) + 1
        except PlumblineError as error:
            said.append(str(error))
    assert all("few cannot be read (line " in one and "\n" not in one for one in said)


def test_every_row_of_the_real_file_is_that_of_the_definition() -> None:
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "dna.scale"
    if not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with dna.scale")
    table, lines = read_dna(path), path.read_text().splitlines()
    expected = [by_hand(line) for line in lines]
    np.testing.assert_array_equal(table[list(COLUMNS)].to_numpy(), [row for row, _ in expected])
    assert table[LABEL].tolist() == [label for _, label in expected]


def test_the_real_file() -> None:
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "dna.scale"
    if not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with dna.scale")
    table = read_dna(path)
    assert table[LABEL].value_counts().to_dict() == {3.0: 1051, 2.0: 485, 1.0: 464}
    digits = table[list(COLUMNS)].to_numpy().reshape(-1, NUCLEOTIDES, 3)
    assert {tuple(one) for one in digits.reshape(-1, 3)} == set(CODE.values())
    donors = digits[table[LABEL] == 1]
    assert (donors[:, 30] == CODE["G"]).all(axis=1).mean() > 0.99
