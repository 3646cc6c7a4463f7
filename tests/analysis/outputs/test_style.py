import dataclasses
import math

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
        footer = style.Footer(
            "mean and one standard error", "desk", "5 or 20 seeds", "3 + 25 evaluations", "zinc250k", 2
        )
        assert str(footer).split(style.APART) == [
            "mean and one standard error",
            "preset desk",
            "5 or 20 seeds",
            "3 + 25 evaluations",
            "zinc250k",
            "2 FAILED TRIALS LEFT OUT",
        ]

    def test_it_leaves_out_what_there_is_not(self) -> None:
        assert str(style.Footer("", "quick", "1 seed", "")) == "preset quick  ·  1 seed"

    @given(st.lists(st.text("abc de", min_size=1, max_size=60).map(str.strip).filter(bool), min_size=4, max_size=4))
    def test_its_lines_are_no_longer_than_they_may_be_and_lose_no_word(self, parts: list[str]) -> None:
        footer = style.Footer(*parts)
        lines = footer.lines(60)
        assert all(len(line) <= 60 for line in lines)
        assert " ".join(lines).replace("·", " ").split() == str(footer).replace("·", " ").split()

    def test_parts_that_fit_share_a_line(self) -> None:
        assert style.Footer("mean", "quick", "2 seeds", "3 + 4 evaluations").lines(40) == [
            "mean  ·  preset quick  ·  2 seeds",
            "3 + 4 evaluations",
        ]

    @pytest.mark.parametrize(("failed", "colour"), [(0, "#666666"), (1, "#cc0000")])
    def test_failures_are_red(self, failed: int, colour: str) -> None:
        figure, _ = style.panels(1, 1)
        style.add_footer(figure, style.Footer("", "quick", "1 seed", "", failed=failed))
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


def test_panels_are_a_list_of_lists() -> None:
    for rows, columns in ((1, 1), (2, 1), (1, 3)):
        figure, axes = style.panels(rows, columns)
        assert [len(row) for row in axes] == [columns] * rows
        width = min(style.PANEL[0] * columns, style.WIDEST)
        assert figure.get_size_inches().tolist() == [width, style.PANEL[1] * rows]
        plt.close(figure)


@pytest.mark.parametrize(
    ("count", "across", "lines"),
    [(1, None, 1), (3, None, 1), (4, None, 2), (5, None, 2), (7, None, 3), (3, 1, 3), (2, 4, 1)],
)
def test_panels_go_on_below(count: int, across: int | None, lines: int) -> None:
    figure, axes = style.wrapped_panels(count, across)
    assert len(axes) == len(figure.axes) == count
    assert len({ax.get_position().y0 for ax in axes}) == lines
    assert sum(map(style.begins_a_line, axes)) == lines
    plt.close(figure)


@pytest.mark.parametrize(
    "words", ["a", "a legend of some length", "a legend that is as long as a line of a page can be, or longer"]
)
@pytest.mark.parametrize("count", [1, 5, 11])
def test_a_legend_is_no_wider_than_its_figure(words: str, count: int) -> None:
    with style.house_style():
        figure, ((ax,),) = style.panels(1, 1)
        height = figure.get_figheight()
        for i in range(count):
            ax.plot([0, 1], [0, i], label=f"{words} {i}")
        style.add_legend(figure, last=f"{words} 0")
        (legend,) = figure.legends
        room = legend.get_window_extent()
    assert [text.get_text() for text in legend.get_texts()][-1] == f"{words} 0"
    assert len(legend.get_texts()) == count
    assert room.width <= figure.bbox.width or legend._ncols == 1
    assert figure.get_figheight() == pytest.approx(height + room.height / figure.dpi), "panels keep their size"
    plt.close(figure)


def test_dashed_lines_that_differ_in_nothing_else_have_no_entries_where_it_is_said_what_they_are() -> None:
    figure, ((left, right),) = style.panels(1, 2)
    blue, purple = (style.MethodStyle(style.PALETTE[name], style.MARKERS[name]) for name in ("blue", "purple"))
    left.plot([0, 1], **blue.line, **blue.points, label="plain")
    left.axhline(0, color=style.PALETTE["blue"], linestyle=":", label="level")
    for label, one in (("plain, elsewhere", blue), ("another", purple)):
        hollow = dataclasses.replace(one, dashed=True)
        right.plot([1, 0], **hollow.line, **hollow.points, label=label)
    words = []
    for dashed in ("", "elsewhere"):
        style.add_legend(figure, last="level", dashed=dashed)
        words.append([text.get_text() for text in figure.legends[-1].get_texts()])
    assert words == [["plain", "plain, elsewhere", "another", "level"], ["plain", "another", "elsewhere", "level"]]
    assert figure.legends[-1].get_lines()[2].get_linestyle() == "--"
    plt.close(figure)


def test_without_dashed_lines_it_is_not_said_what_they_are() -> None:
    figure, ((ax,),) = style.panels(1, 1)
    ax.plot([0, 1], label="plain")
    style.add_legend(figure, dashed="elsewhere")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plain"]
    plt.close(figure)


@pytest.mark.parametrize(
    "title", ["Ackley", "Function of a Matern-5/2 kernel, 2 dimensions", "two\nlines", "a" * 90, "a  b"]
)
def test_a_title_is_no_wider_than_its_panel(title: str) -> None:
    figure, axes = style.wrapped_panels(3)
    style.set_title(axes[0], title)
    shown = axes[0].get_title()
    assert shown.replace("\n", " ").split() == title.split()
    assert all(len(line) <= 36 or " " not in line for line in shown.split("\n"))
    plt.close(figure)


def test_a_number_stays_beside_what_it_counts() -> None:
    figure, axes = style.wrapped_panels(3)
    style.set_title(axes[0], "RKHS function of Matern-5/2, 2 dimensions")
    assert axes[0].get_title() == "RKHS function of Matern-5/2,\n2 dimensions"
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
        assert style.colour("sky") == style.PALETTE["sky"]
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


class TestMethodStyles:
    def test_a_method_looks_the_same_whatever_is_drawn_beside_it(self) -> None:
        alone, together = style.method_styles(LOOKS, ["c"]), style.method_styles(LOOKS, ["a", "b", "c"])
        assert alone["c"] == together["c"]

    def test_colours_that_are_named_are_given_to_no_other(self) -> None:
        found = style.method_styles(LOOKS, ["a", "b", "c"])
        assert found["b"] == style.MethodStyle(style.PALETTE["blue"], style.MARKERS["blue"], dashed=True)
        assert len({one.colour for one in found.values()}) == 3

    def test_one_legend_is_one_colour_and_one_marker(self) -> None:
        found = style.method_styles(LOOKS, ["c", "c-2"])
        assert found["c"].colour == found["c-2"].colour
        assert found["c"].marker == found["c-2"].marker
        assert (found["c"].dashed, found["c-2"].dashed) == (False, True)

    def test_methods_without_a_look_differ(self) -> None:
        names = [f"method-{i}" for i in range(13)]
        assert len({one.colour for one in style.method_styles({}, names).values()}) == 13

    def test_where_all_are_dashed_dashes_tell_nothing_and_lines_are_solid(self) -> None:
        all_dashed = {name: legend.model_copy(update={"dashed": True}) for name, legend in LOOKS.items()}
        found = style.method_styles(all_dashed, all_dashed)
        assert [one.dashed for one in found.values()] == [False] * len(LOOKS)
        some = style.method_styles(LOOKS, ["b"])
        assert some["b"].dashed, "others of the experiment are solid, drawn beside it or not"

    def test_dashed_lines_have_hollow_markers(self) -> None:
        solid, dashed = (style.MethodStyle("#0173b2", "o", dashed=dashed) for dashed in (False, True))
        assert (solid.line["linestyle"], solid.points["markerfacecolor"]) == ("-", "#0173b2")
        assert (dashed.line["linestyle"], dashed.points["markerfacecolor"]) == ("--", "white")


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


@pytest.mark.parametrize(
    ("low", "high", "some"),
    [
        (1e-5, 1e3, {"10⁻⁵", "10³"}),
        (0.02, 400.0, {"0.1", "1", "10", "100"}),
        (0.2, 4.0, {"1"}),
        (1.0, 2.0, {"1", "2"}),
        (3e4, 8e6, {"10⁵", "10⁶"}),
    ],
)
def test_a_logarithmic_axis_has_powers_of_ten_and_no_formula(low: float, high: float, some: set[str]) -> None:
    with style.house_style():
        figure, ((ax,),) = style.panels(1, 1)
        ax.plot([low, high], [1, 2])
        style.logarithmic(ax.xaxis)
        figure.canvas.draw()
        labels = [label.get_text() for label in ax.get_xticklabels(which="both") if label.get_text()]
        major = [float(tick) for tick in ax.get_xticks() if low <= tick <= high]
    assert not {"$", "\\", "^", "{", "}"} & set("".join(labels))
    assert some <= set(labels)
    assert all(round(math.log10(tick)) == pytest.approx(math.log10(tick)) for tick in major)
    plt.close(figure)


def test_a_legend_entry_is_one_line_and_never_left_out() -> None:
    assert style.legend_entry("a\n b\tc\x00d") == "a b cd"
    assert style.legend_entry("_private") == "\u200b_private"
    assert style.legend_entry("$x_1$ 50% [bold] é 😀") == "$x_1$ 50% [bold] é 😀"
