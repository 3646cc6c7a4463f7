import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import seaborn as sns

from plumbline.analysis import style


class TestFooter:
    def test_it_says_all_it_knows(self) -> None:
        footer = style.Footer("desk", 5, "3 + 25 evaluations", "zinc250k", 2)
        assert str(footer).split("  ·  ") == [
            "preset desk",
            "5 seeds",
            "3 + 25 evaluations",
            "zinc250k",
            "2 FAILED TRIALS LEFT OUT",
        ]

    def test_it_leaves_out_what_there_is_not(self) -> None:
        assert str(style.Footer("quick", 1, "")) == "preset quick  ·  1 seed"

    @pytest.mark.parametrize(("failed", "colour"), [(0, "#666666"), (1, "#cc0000")])
    def test_failures_are_red(self, failed: int, colour: str) -> None:
        figure, _ = style.panels(1, 1)
        style.add_footer(figure, style.Footer("quick", 1, "", failed=failed))
        (text,) = [text for text in figure.texts if "preset quick" in text.get_text()] or [figure._supxlabel]
        assert text.get_color() == colour
        plt.close(figure)


class TestHouseStyle:
    def test_what_was_there_is_put_back_after_an_error_too(self) -> None:
        before = dict(mpl.rcParams)
        with pytest.raises(ZeroDivisionError), style.house_style():
            raise ZeroDivisionError
        assert dict(mpl.rcParams) == before

    def test_it_looks_the_same_whatever_was_set_before(self) -> None:
        with style.house_style():
            usual = dict(mpl.rcParams)
        with mpl.rc_context(), sns.axes_style("darkgrid"), sns.plotting_context("poster"), style.house_style():
            assert dict(mpl.rcParams) == usual


def test_panels_are_a_list_of_lists() -> None:
    for rows, columns in ((1, 1), (2, 1), (1, 3)):
        figure, axes = style.panels(rows, columns)
        assert [len(row) for row in axes] == [columns] * rows
        assert figure.get_size_inches().tolist() == [style.PANEL[0] * columns, style.PANEL[1] * rows]
        plt.close(figure)


@pytest.mark.parametrize("count", [1, 2, 6, 10, 14])
def test_each_method_has_its_own_colour(count: int) -> None:
    names = [f"method-{i}" for i in range(count)]
    found = style.colours(names)
    assert list(found) == names
    assert len(set(found.values())) == count


class TestLook:
    def test_names_that_are_not_drawn_keep_their_colours(self) -> None:
        look = style.Look(first=("a", "b", "c"))
        alone, together = look.of(["c", "d"]), look.of(["a", "c", "d"])
        assert alone["c"] == together["c"]
        assert alone["d"] == together["d"]
        assert alone["c"]["color"] == style.colours(["a", "b", "c"])["c"]

    def test_dashes_in_the_colour_of_another(self) -> None:
        look = style.Look(dashed={"plain a": "a"})
        found = look.of(["plain a", "b", "a"])
        assert found["plain a"] == {"color": found["a"]["color"], "linestyle": "--"}
        assert found["a"]["linestyle"] == found["b"]["linestyle"] == "-"
        assert found["b"]["color"] != found["a"]["color"]

    def test_as_many_as_there_are(self) -> None:
        names = [f"method-{i}" for i in range(13)]
        assert len({look["color"] for look in style.Look(first=("a",)).of(names).values()}) == 13
