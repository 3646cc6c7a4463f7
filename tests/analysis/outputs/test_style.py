import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import seaborn as sns
from hypothesis import given
from hypothesis import strategies as st

from plumbline.analysis.outputs import style
from plumbline.core.errors import PlumblineError
from plumbline.study.legends import COLOURS, Legend
from plumbline.study.verdicts import LOOKS as WORDS
from plumbline.study.verdicts import UNDECIDABLE, VERDICTS, slug


class TestFooter:
    def test_it_says_all_it_knows(self) -> None:
        footer = style.Footer("desk", "5 or 20 seeds", "3 + 25 evaluations", "zinc250k", 2)
        assert str(footer).split("  ·  ") == [
            "preset desk",
            "5 or 20 seeds",
            "3 + 25 evaluations",
            "zinc250k",
            "2 FAILED TRIALS LEFT OUT",
        ]

    def test_it_leaves_out_what_there_is_not(self) -> None:
        assert str(style.Footer("quick", "1 seed", "")) == "preset quick  ·  1 seed"

    @pytest.mark.parametrize(("failed", "colour"), [(0, "#666666"), (1, "#cc0000")])
    def test_failures_are_red(self, failed: int, colour: str) -> None:
        figure, _ = style.panels(1, 1)
        style.add_footer(figure, style.Footer("quick", "1 seed", "", failed=failed))
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

    def test_it_is_seaborns_but_for_what_is_ours(self) -> None:
        with mpl.rc_context(), sns.axes_style("ticks"), sns.plotting_context("paper"):
            theirs = {**sns.axes_style(), **sns.plotting_context()}
        with style.house_style():
            differing = {key for key, value in theirs.items() if mpl.rcParams[key] != pytest.approx(value)}
        ours = {"axes.titlesize", "font.size", "lines.linewidth", "axes.spines.right", "axes.spines.top", "image.cmap"}
        assert differing == ours


def test_the_palette_is_seaborns() -> None:
    assert list(style.PALETTE) == list(COLOURS)
    assert list(style.PALETTE.values()) == sns.color_palette("colorblind").as_hex()


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


def test_colours_that_are_taken_are_not_given() -> None:
    taken = style.PALETTE["blue"]
    assert taken not in style.colours([str(i) for i in range(13)], [taken]).values()


class TestColour:
    def test_by_name_and_as_it_is(self) -> None:
        assert style.colour("sky") == "#56b4e9"
        assert style.colour("#123456") == "#123456"

    @pytest.mark.parametrize("name", ["blu", "#12345g", "tab:blue"])
    def test_others_are_refused(self, name: str) -> None:
        with pytest.raises(PlumblineError, match=f"unknown colour '{name}'"):
            style.colour(name)


LOOKS = {
    "a": Legend(label="A"),
    "b": Legend(label="B", colour="blue", dashed=True),
    "c": Legend(label="C"),
    "c-2": Legend(label="C", dashed=True),
}


class TestLines:
    def test_a_method_looks_the_same_whatever_is_drawn_beside_it(self) -> None:
        alone, together = style.lines(LOOKS, ["c"]), style.lines(LOOKS, ["a", "b", "c"])
        assert alone["c"] == together["c"]

    def test_colours_that_are_named_are_given_to_no_other(self) -> None:
        found = style.lines(LOOKS, ["a", "b", "c"])
        assert found["b"] == {"color": style.PALETTE["blue"], "linestyle": "--"}
        assert len({line["color"] for line in found.values()}) == 3

    def test_one_legend_is_one_colour(self) -> None:
        found = style.lines(LOOKS, ["c", "c-2"])
        assert found["c"]["color"] == found["c-2"]["color"]
        assert (found["c"]["linestyle"], found["c-2"]["linestyle"]) == ("-", "--")

    def test_methods_without_a_look_differ(self) -> None:
        names = [f"method-{i}" for i in range(13)]
        assert len({line["color"] for line in style.lines({}, names).values()}) == 13


def test_the_palette_has_the_colours_that_looks_may_name() -> None:
    assert tuple(style.PALETTE) == COLOURS


def test_every_verdict_that_is_tested_has_a_colour_of_its_own() -> None:
    found = {verdict: style.verdict_colour(verdict) for verdict in VERDICTS if verdict not in UNDECIDABLE}
    assert "#ffffff" not in found.values()
    assert len(set(found.values())) == len(found)


@given(st.text(max_size=20))
def test_a_word_that_is_no_verdict_is_white(word: str) -> None:
    assert word in WORDS or style.verdict_colour(word) == "#ffffff"


def test_the_style_sheet_has_every_verdict_and_outcome() -> None:
    rules = style.verdict_styles()
    for word in WORDS:
        assert f".label.{slug(word)} {{ background: {style.verdict_colour(word)};" in rules
    assert f"--blue: {style.PALETTE['blue']};" in rules
    assert ".holds { --mark: var(--blue); }" in rules


@pytest.mark.parametrize(("low", "high"), [(1e-5, 1e3), (0.2, 4.0), (1.0, 2.0)])
def test_a_logarithmic_axis_has_no_formula_for_a_label(low: float, high: float) -> None:
    with style.house_style():
        figure, ((ax,),) = style.panels(1, 1)
        ax.plot([low, high], [1, 2])
        ax.set_xscale("log")
        style.plain_powers(ax.xaxis)
        figure.canvas.draw()
        labels = [label.get_text() for label in ax.get_xticklabels(which="both") if label.get_text()]
    assert labels
    assert not {"$", "\\", "^", "{", "}"} & set("".join(labels))
    if high / low > 1e3:
        assert {"10⁻⁵", "10³"} <= set(labels)
    plt.close(figure)


def test_a_legend_entry_is_one_line_and_never_left_out() -> None:
    assert style.legend_entry("a\n b\tc\x00d") == "a b cd"
    assert style.legend_entry("_private") == "\u200b_private"
    assert style.legend_entry("$x_1$ 50% [bold] é 😀") == "$x_1$ 50% [bold] é 😀"
