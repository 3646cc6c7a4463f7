import os
from pathlib import Path

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
