"""The figure of fits of approximations."""

from illustrated_cases import build, labels

from plumbline.analysis.figures.illustrated.approximation_fits import COLOURS


def test_queries_that_are_nearer_and_farther_are_counted() -> None:
    (counts,) = build("approximation-fits").axes[3].texts
    assert counts.get_text().splitlines() == [
        "query alone: 1 nearer, 1 farther, 2 alike",
        "EULBO: 2 nearer, 1 farther, 1 alike",
    ]


def test_the_legend_of_fits_names_every_mark_once() -> None:
    assert set(labels(build("approximation-fits"))) == {
        "truth",
        "data",
        "inducing points",
        "two standard deviations",
        "query of a model",
        "exact GP",
        "SVGP fitted by the ELBO",
        "SVGP refined by the EULBO",
        "equal distances (d)",
        "query alone (d)",
        "EULBO (d)",
    }


def test_each_model_asks_where_its_line_is() -> None:
    ax = build("approximation-fits").axes[1]
    at = {line.get_color(): line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"}
    assert at == {COLOURS["exact"]: 0.8, COLOURS["ELBO"]: 1.0, COLOURS["EULBO"]: 0.9}
