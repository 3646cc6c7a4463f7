"""What OMP_NUM_THREADS may say."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.threads import MOST_THREADS, THREADS, threads_asked

patched = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_one_thread_where_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    assert threads_asked() == 1


@patched
@given(st.lists(st.integers(1, MOST_THREADS), min_size=1, max_size=4), st.sampled_from(["", " ", "  "]))
def test_a_number_for_each_level_is_legal(monkeypatch: pytest.MonkeyPatch, levels: list[int], blanks: str) -> None:
    monkeypatch.setenv(THREADS, f"{blanks},{blanks}".join(map(str, levels)).join((blanks, blanks)))
    assert threads_asked() == levels[0]


@patched
@given(
    st.one_of(
        st.integers(max_value=0).map(str),
        st.integers(min_value=MOST_THREADS + 1).map(str),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs", "Nd"])),
        st.sampled_from(["", "0", "abc", "4,", ",4", "4,0", "1.5", "1e3", "4 2", "+4", "٣", "0x4", "9" * 5000]),
    )
)
def test_anything_else_is_one_line_that_names_the_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(THREADS, text)
    with pytest.raises(PlumblineError, match=f"^{THREADS} is .*: give a number of threads from 1 to") as error:
        threads_asked()
    assert "\n" not in str(error.value)
