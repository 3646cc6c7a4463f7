"""Pages from templates: prose with every number in it from the reference results, and the gallery of figures.

A template is Markdown with expressions of Jinja, `{{ test("K1")|f(2) }}`. What may stand in them are the functions that
`result_pages` is given and the filters of `FILTERS`, and nothing else: an unknown name is an error with its file and
line. A number that no file of the reference results has stands as text, and a comment beside it, `{# ... #}`, says
where it is from.
"""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from plumbline.analysis.publish.estimates import (
    Estimate,
    interval,
    percent,
    percent_interval,
    rounded,
    with_interval,
)
from plumbline.analysis.publish.markdown import table
from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
from plumbline.analysis.publish.seeds_table import needed, seeds_table
from plumbline.analysis.publish.two_searches import TwoSearches
from plumbline.analysis.publish.verdict_tables import (
    IN_DOUBT,
    doubt_table,
    one_effect,
    seeds_of,
    verdict_summary,
    verdict_table,
    words_table,
)
from plumbline.analysis.verdicts.criterion import describe
from plumbline.analysis.verdicts.judge import KEEP_AGAIN
from plumbline.analysis.verdicts.rule import counts
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.files import read_csv, write_text
from plumbline.statistics.means import Mean
from plumbline.store.records import read_table as read_records
from plumbline.store.reference_files import CLAIMS, ExperimentFiles
from plumbline.study.experiments import Study
from plumbline.study.verdicts import MEANINGS, unbroken, with_shape

LINK = "../../results/reference"
"""From a page to the reference results."""

HEADER = "<!-- Made from docs/templates/{template} by `plumbline pages`: edit the template. -->\n\n"


FILTERS: dict[str, Callable[..., str]] = {
    "f": rounded,
    "ci": interval,
    "est": with_interval,
    "pc": percent,
    "pci": percent_interval,
}
"""How numbers are written."""


def existing(path: Path) -> Path:
    """Return the path of a file of an experiment.

    Raises:
        PlumblineError: there is no such file.
    """
    if not path.is_file():
        raise PlumblineError(f"{path.parent.name} has no file {path.name} among its reference results")
    return path


class ReferenceNumbers:
    """What templates ask of the reference results.

    Raises:
        PlumblineError: a call names a claim, a study, an experiment, a task or a metric that there is not.
    """

    def __init__(self, reference: Path, studies: Iterable[Study]) -> None:
        """Look into the folder `reference`; verdicts are those of the claims of `studies`."""
        self._reference = reference
        self._studies = {study.study: study for study in studies}
        self._claims = read_claims(reference / CLAIMS)
        self._doubts = read_doubts(reference / CLAIMS)
        self._table = cache(self._read_table)
        self._runs = cache(self._read_runs)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What a template can call, by name."""
        return {name: getattr(self, name) for name in dir(self) if not name.startswith("_") and name != "functions"}

    # Of claims

    def test(self, claim: str, *words: str) -> Estimate:
        """The one test of a claim whose role, name and statistic have all of `words`; primary tests go first.

        Raises:
            PlumblineError: no claim of this name, no such test, or several.
        """
        found = self._told(claim, words)
        if len(found) != 1:
            listed = "; ".join(self._words(found if len(found) else self._rows(claim)))
            raise PlumblineError(f"{len(found)} tests of {claim} have the words {words}, and one must: {listed}")
        row = found.iloc[0]
        value, low, high, median, share = (float(row[name]) for name in ("ours", "low", "high", "median", "favourable"))
        return Estimate(value, low, high, median, share, int(row["seeds"]))

    def parts(self, claim: str, *outcomes: str) -> int:
        """The number of parts of a claim's primary test, all or those with these outcomes."""
        rows = self._primary(claim)
        return int(rows["outcome"].isin(outcomes).sum()) if outcomes else len(rows)

    def counted(self, claim: str) -> str:
        """The number of parts of a claim by outcome, in words: `1 holds, 2 fail`."""
        return counts(self._primary(claim)["outcome"])

    def size_p(self, claim: str, *words: str) -> float:
        """The probability of such data were the effect of the published size: the least, of tests with these words."""
        return float(self._told(claim, words)["size_p"].min())

    def meanings(self) -> str:
        """What each verdict means, as a list."""
        return "\n".join(f"* *{with_shape(verdict)}*: {meaning}" for verdict, meaning in MEANINGS.items())

    def pattern(self, claim: str) -> float:
        """The share of draws of the paper's number of seeds that look as it claims."""
        return float(self._primary(claim)["pattern"].iloc[0])

    def chance(self, claim: str) -> float:
        """The same share if the methods were alike."""
        return float(self._primary(claim)["chance"].iloc[0])

    def verdict(self, claim: str) -> str:
        """The verdict of a claim, and whether it is in doubt."""
        doubted = any(claim in names.split() for names in self._doubts["claims"])
        return unbroken(str(self._primary(claim)["verdict"].iloc[0])) + f", {IN_DOUBT}" * doubted

    def seeds(self, claim: str) -> str:
        """The number of seeds of a claim's primary test: `50`, or `10 to 50` where its parts differ."""
        return seeds_of(self._primary(claim))

    def effect(self, claim: str) -> str:
        """The first estimate of a claim, in three digits, with its interval."""
        return one_effect(self._primary(claim).iloc[0])

    def verdicts(self, *studies: str) -> str:
        """The verdicts of some studies as a table, of all where none is named."""
        return verdict_table(self._chosen(studies), self._claims, self._doubts)

    def in_words(self, *studies: str) -> str:
        """What holds of the claims of some studies, and what does not or is open, as a table."""
        return words_table(self._chosen(studies), self._claims, self._doubts)

    def verdict_counts(self, *studies: str) -> str:
        """How many claims of each study have each verdict, as a table."""
        return verdict_summary(self._chosen(studies), self._claims)

    def needed(self, claim: str) -> str:
        """The seeds that decide the parts of a claim: `40`, or `160 to 353`."""
        return needed(self._primary(claim))

    def seeds_needed(self, *studies: str) -> str:
        """The seeds of each claim: the paper's, ours, those that decide it, and what few seeds show, as a table."""
        return seeds_table(self._chosen(studies), self._claims)

    def doubts(self) -> str:
        """The doubts about verdicts as a table."""
        return doubt_table(self._doubts)

    # Of experiments

    def without_reference(self, study: str) -> str:
        """The experiments of a study that have no reference results, as a table."""
        (chosen,) = self._chosen((study,))
        there = {one.name for one in self._reference.iterdir() if one.is_dir()}
        rows = [(name, one.title) for name, one in chosen.experiments.items() if name not in there]
        return table(pd.DataFrame(rows, columns=["experiment", "title"]))

    def figure(self, experiment: str, shows: str) -> str:
        """The figure of an experiment, with a text that says what it shows."""
        figure = existing(self._home(experiment).figure)
        return f"![{shows}]({LINK}/{experiment}/{figure.name})"

    def cell(self, experiment: str, column: str, **where: str) -> float:
        """The number in a column of an experiment's table, in the one row that has these values.

        Raises:
            PlumblineError: no such table, column or row, or several rows.
        """
        return float(self._entry(experiment, column, where))

    def numbers(self, experiment: str, column: str, **where: str) -> list[float]:
        """The numbers in such a cell that has several, as `15/15/15`.

        Raises:
            PlumblineError: as in `cell`.
        """
        return [float(one) for one in str(self._entry(experiment, column, where)).split("/")]

    def _entry(self, experiment: str, column: str, where: Mapping[str, str]) -> Any:
        table = self._table(experiment)
        for name in (column, *where):
            if name not in table:
                raise unknown("column", name, table.columns)
        chosen = table
        for name, value in where.items():
            if value not in set(table[name]):
                raise unknown(name, value, table[name].unique())
            chosen = chosen[chosen[name] == value]
        if len(chosen) != 1:
            raise PlumblineError(f"{len(chosen)} rows of the table of {experiment} have {where}, and one must")
        return chosen[column].iloc[0]

    def row(self, experiment: str, column: str, **where: str) -> Estimate:
        """The number in a column of a table, with the interval that stands in its columns `low` and `high`."""
        value, low, high = (self.cell(experiment, name, **where) for name in (column, "low", "high"))
        return Estimate(value, low, high)

    def mean(self, experiment: str, method: str, task: str = "", metric: str = "") -> float:
        """The mean of a method's final values: of the table's first metric where none is named."""
        return self._cell_of(experiment, method, task, metric, "")

    def error(self, experiment: str, method: str, task: str = "", metric: str = "") -> float:
        """The standard error of that mean."""
        return self._cell_of(experiment, method, task, metric, " ±")

    def median(self, experiment: str, method: str, task: str = "", metric: str = "") -> float:
        """The median of a method's final values."""
        return self._cell_of(experiment, method, task, metric, " median")

    def final_mean(self, experiment: str, method: str, metric: str, task: str = "") -> float:
        """The mean over seeds of the final values of runs."""
        return float(self._values(experiment, metric, task, "last", method)[method].mean())

    def final_median(self, experiment: str, method: str, metric: str, task: str = "") -> float:
        """The median over seeds of the final values of runs."""
        return float(self._values(experiment, metric, task, "last", method)[method].median())

    def over_rounds(self, experiment: str, method: str, metric: str, task: str = "") -> float:
        """The mean over seeds and rounds."""
        return float(self._values(experiment, metric, task, "mean", method)[method].mean())

    def diff(
        self, experiment: str, method: str, baseline: str, task: str = "", metric: str = "", of: str = "last"
    ) -> Estimate:
        """The mean of the seeds' differences of two methods, with the interval of the verdict rule.

        Raises:
            PlumblineError: no runs of the two.
        """
        values = self._values(experiment, metric, task, of, method, baseline)
        return _mean_of((values[method] - values[baseline]).dropna(), experiment, task, metric, method, baseline)

    def two_searches(
        self, own: str, shared: str, method: str, baseline: str, task: str = "", suffix: str = "-informed"
    ) -> TwoSearches:
        """A difference of final values under the methods' own search and under one for all, on the seeds of both.

        Args:
            own: experiment with the methods' own search; a baseline that it lacks is looked for in the other.
            shared: experiment with one search for all, or with another change that both methods have.
            method, baseline: methods of the difference.
            task: that both have; the only one if empty.
            suffix: what follows the names of methods that are changed.
        """
        own_search = self._values(own, "", task, "last", method)
        changed, reference = f"{method}{suffix}", f"{baseline}{suffix}"
        one_for_all = self._values(shared, "", task, "last", changed, reference)
        with_baseline = own_search if baseline in own_search else self._values(shared, "", task, "last", baseline)
        apart = pd.DataFrame(
            {
                "own": own_search[method] - with_baseline[baseline],
                "shared": one_for_all[changed] - one_for_all[reference],
            }
        ).dropna()
        apart["change"] = apart["own"] - apart["shared"]
        return TwoSearches(
            *(_mean_of(apart[one], one, shared, task, method, baseline) for one in ("own", "shared", "change"))
        )

    def ahead(self, experiment: str, method: str, baseline: str, task: str = "", metric: str = "") -> int:
        """The number of seeds in which a method ends with a higher value than another."""
        values = self._values(experiment, metric, task, "last", method, baseline)
        return int((values[method] > values[baseline]).sum())

    def above(self, experiment: str, method: str, level: float, task: str = "", metric: str = "") -> int:
        """The number of seeds in which a method ends above a level."""
        return int((self._values(experiment, metric, task, "last", method)[method] > level).sum())

    def after(self, rounds: int, experiment: str, method: str, task: str, metric: str) -> float:
        """The mean over seeds after a number of rounds.

        Raises:
            PlumblineError: no such experiment, no means by round of it, or not exactly one such mean.
        """
        curves = pd.read_parquet(existing(self._home(experiment).curves))
        chosen = curves.query("iteration == @rounds and task == @task and method == @method and metric == @metric")
        if len(chosen) != 1:
            raise PlumblineError(f"{len(chosen)} curves of {experiment} have {task}, {method} and {metric}")
        return float(chosen["mean"].iloc[0])

    # Files

    def _rows(self, claim: str) -> pd.DataFrame:
        rows = self._claims[self._claims["claim"] == claim]
        if rows.empty:
            raise unknown("claim", claim, self._claims["claim"].unique())
        return rows

    def _words(self, rows: pd.DataFrame) -> pd.Series:
        return rows["role"] + ": " + rows["test"] + ": " + [describe(row) for row in rows.to_dict("records")]

    def _told(self, claim: str, words: Iterable[str]) -> pd.DataFrame:
        """The tests that have all of these words; the primary ones where any has."""
        rows = self._rows(claim)
        fits = pd.Series(True, index=rows.index)
        for word in words:
            fits &= self._words(rows).str.contains(word, regex=False)
        primary = fits & (rows["role"] == "primary")
        return rows[primary if primary.any() else fits]

    def _primary(self, claim: str) -> pd.DataFrame:
        rows = self._rows(claim)
        return rows[rows["role"] == "primary"]

    def _chosen(self, studies: tuple[str, ...]) -> list[Study]:
        for name in studies:
            if name not in self._studies:
                raise unknown("study", name, self._studies)
        return [self._studies[name] for name in studies or self._studies]

    def _home(self, experiment: str) -> ExperimentFiles:
        folder = self._reference / experiment
        if not folder.is_dir():
            raise unknown("experiment", experiment, (one.name for one in self._reference.iterdir() if one.is_dir()))
        return ExperimentFiles(folder)

    def _read_table(self, experiment: str) -> pd.DataFrame:
        return read_csv(existing(self._home(experiment).table), remedy=KEEP_AGAIN)

    def _read_runs(self, experiment: str) -> pd.DataFrame:
        return read_records(existing(self._home(experiment).runs), remedy=KEEP_AGAIN).to_pandas()

    def _cell_of(self, experiment: str, method: str, task: str, metric: str, kind: str) -> float:
        columns = self._table(experiment).columns
        metric = metric or columns[list(columns).index("seeds") + 1]
        return self.cell(experiment, metric + kind, **({"task": task} if task else {}), method=method)

    def _values(self, experiment: str, metric: str, task: str, of: str, *methods: str) -> pd.DataFrame:
        """One row per seed and one column per method: of the only metric and the only task where none is named.

        Raises:
            PlumblineError: no such metric or task, several and none is named, or one of `methods` has no runs of it.
        """
        chosen = self._runs(experiment)
        for name, value in (("metric", metric), ("task", task)):
            known = sorted(chosen[name].unique())
            if value and value not in known:
                raise unknown(name, value, known)
            if not value and len(known) > 1:
                raise PlumblineError(f"say which {name} of {experiment}: {', '.join(known)}")
            chosen = chosen[chosen[name] == (value or known[0])]
        values = chosen.pivot_table(index="seed", columns="method", values=of)
        for method in methods:
            if method not in values:
                raise unknown("method", method, values.columns)
        return values


def _mean_of(apart: pd.Series, *name: str) -> Estimate:
    """Return the mean of differences over seeds with the interval of the verdict rule, whose resamples have a name."""
    inferred = Mean(apart.to_numpy(dtype=float), " ".join(name))
    higher = float(((apart > 0) + 0.5 * (apart == 0)).mean())
    return Estimate(inferred.value, *inferred.interval(), inferred.median, higher, inferred.n)


def line_of(error: Exception, template: Path) -> int:
    """The line of a template where an error arose."""
    found = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(template)]
    return getattr(error, "lineno", None) or (found[-1] if found else None) or 1


class Asked(Protocol):
    """What templates ask."""

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What a template can call, by name."""


def result_pages(templates: Path, *asked: Asked) -> dict[str, str]:
    """The pages by their paths, which are those of their templates.

    Args:
        templates: folder of the templates.
        asked: what they may ask.

    Raises:
        PlumblineError: an expression of a template that cannot be filled in, with its file and line.
    """
    environment = Environment(loader=FileSystemLoader(templates), undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()  # Jinja's own would fill in numbers that are on no file
    for one in asked:
        environment.globals.update(one.functions())
    environment.filters.update(FILTERS)
    pages = {}
    for template in sorted(templates.rglob("*.md")):
        name = template.relative_to(templates).as_posix()
        try:
            text = environment.get_template(name).render()
        except (PlumblineError, TemplateError, TypeError, ValueError, KeyError) as error:
            raise PlumblineError(f"{template}:{line_of(error, template)}: {error}") from error
        tidy = re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))
        pages[name] = HEADER.format(template=name) + tidy
    return pages


def write_result_pages(pages: dict[str, str], folder: Path) -> list[Path]:
    """Write the pages that differ from those in `folder`, and return their paths."""
    stale = {folder / name: text for name, text in pages.items() if not is_current(folder / name, text)}
    for path, text in stale.items():
        write_text(path, text)
    return list(stale)


def is_current(path: Path, text: str) -> bool:
    """Whether the file at `path` has this text."""
    return path.is_file() and path.read_text(encoding="utf-8") == text
