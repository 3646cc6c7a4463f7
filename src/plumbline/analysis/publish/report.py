"""The study's page: the answer and the verdicts on file, then the preset's own run, failures and provenance.

One file with its figures and numbers inside; links lead to the files that lie beside it. `templates/report.html.j2` has
its structure, `report.css` its looks and `report.js` what readers do with it.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from filecmp import cmp
from functools import cache
from os.path import relpath
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
import yaml
from jinja2 import Template
from markupsafe import Markup, escape
from PIL import Image

from plumbline.analysis.atlas.edition import EDITION, is_answered, is_edition
from plumbline.analysis.comparisons.numbers import short
from plumbline.analysis.evidence.collect import failures_of
from plumbline.analysis.outputs.style import verdict_styles
from plumbline.analysis.publish.answer import answer_in_words, comparisons
from plumbline.analysis.publish.atlas_answer import answer_of_atlas
from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.atlas_standings import atlas_standings
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.claim_views import ClaimView, claim_views
from plumbline.analysis.publish.estimates import percent
from plumbline.analysis.publish.experiment_pages import kept, titled
from plumbline.analysis.publish.explorer import (
    Explored,
    chart_library,
    costs_on_file,
    explored_on_file,
    explored_records,
    line_chart,
)
from plumbline.analysis.publish.markdown import duration, number
from plumbline.analysis.publish.pages import html_environment, template_text
from plumbline.analysis.publish.reference import WRITTEN
from plumbline.analysis.publish.roulette import wheels
from plumbline.analysis.publish.verdicts_on_file import read_claims, read_doubts
from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, read_csv, write_text
from plumbline.store.provenance import provenance
from plumbline.store.records import read_table
from plumbline.study.experiments import Experiment, Study
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun
from plumbline.study.verdicts import LOOKS, MEANINGS, OUTCOME_MEANINGS, VERDICTS, brief, slug

DAMAGED = "{path} is empty, cut off or no {kind}: delete it, and run the same command again"

ENDINGS = {
    ".svg": "SVG",
    ".pdf": "PDF",
    ".png": "PNG",
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".json": "provenance",
    ".log": "log",
}
"""What links to files are called."""


class Link(NamedTuple):
    """A file beside the page, or in it: its words, its address, and the name under which one that is in it is saved."""

    words: str
    address: str
    name: str = ""


@dataclass(frozen=True)
class ExperimentView:
    """One experiment on the page.

    Attributes:
        name: of the experiment.
        anchor: its place on the page.
        study: that it belongs to.
        experiment: its settings.
        scale: the preset of its runs.
        facts: trials, what they took, and data, in words.
        picture: address of its figure; empty where there is none.
        table: with titles in the place of names; None where there is none.
        links: its files.
        methods: legends.
        claims: verdicts on the claims that rest on it, by name.
        curves: what readers explore.
        failures: name and error of each trial that failed.
    """

    name: str
    anchor: str
    study: Study
    experiment: Experiment
    scale: str
    facts: list[str]
    picture: str
    table: pd.DataFrame | None
    links: list[Link]
    methods: list[str]
    claims: Mapping[str, str]
    curves: Explored | None
    failures: list[str] = field(default_factory=list)


def data_uri(path: Path) -> str:
    """Return a PNG as a data URI, so that the page is one file.

    Raises:
        PlumblineError: no such file, or none that can be shown.
    """
    if not path.is_file():
        raise PlumblineError(f"no figure {path}: draw it first, by the same command")
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            picture.verify()  # checksums, to the end of the file
        with Image.open(path, formats=["PNG"]) as picture:
            picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise PlumblineError(DAMAGED.format(path=path, kind="PNG")) from error
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def check_svg(path: Path) -> None:
    """Raise PlumblineError for a drawing that does not end as one: the page names it."""
    if not path.read_bytes().rstrip().endswith(b"</svg>"):
        raise PlumblineError(DAMAGED.format(path=path, kind="SVG"))


def failures_in(records: Path) -> list[str]:
    """Return name and error of each failed trial in an experiment's records, in words."""
    table = read_table(records, ["task", "method", "seed", "status", "error"])
    return [f"{task} {method} seed {seed}: {error}" for (task, method, seed), error in failures_of(table)]


def seconds_in(records: Path) -> float:
    """Return the seconds that all rounds of an experiment's trials took together, each trial on its own."""
    rounds = (
        read_table(records, ["key", "iteration", "round_seconds"]).to_pandas().drop_duplicates(["key", "iteration"])
    )
    return float(rounds["round_seconds"].sum())


def links(paths: Iterable[Path], page: Path) -> list[Link]:
    """Return links to those of some files that exist, from the folder of the page; two of a kind say their names."""
    there = [path for path in paths if path.is_file()]
    endings = [path.suffix for path in there]
    return [
        Link(
            ENDINGS[path.suffix] + (f" ({path.stem})" if endings.count(path.suffix) > 1 else ""),
            address(path, page),
        )
        for path in there
    ]


PACKAGED = "stored"
"""The folder beside a page with the files of the package that it links to."""


def address(path: Path, page: Path) -> str:
    """Return the address of a file from the folder of the page.

    A file of the package, where the workspace is another folder, is copied beside the page first, so that the page can
    be moved.
    """
    packaged = places.shipped() / "results"
    if path.is_relative_to(packaged) and not path.is_relative_to(places.own_folder()):
        copy = page.parent / PACKAGED / path.relative_to(packaged)
        if not copy.is_file() or not cmp(path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            with atomic(copy) as part:
                copyfile(path, part)
        path = copy
    return quote(relpath(path, page.parent))


def address_of_stored(page: Path) -> Path:
    """Return the folder of the results on file that the page links to."""
    inside = reference_folder().is_relative_to(places.own_folder())
    return reference_folder() if inside else page.parent / PACKAGED / places.REFERENCE.name


def specification(name: str, experiment: Experiment) -> Link:
    """Return a link to the settings of an experiment, as a study has them in YAML."""
    settings = {name: experiment.model_dump(mode="json", exclude_defaults=True)}
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=120)
    return Link("spec", "data:text/yaml;base64," + base64.b64encode(text.encode()).decode(), f"{name}.yaml")


def of_run(
    resolved: ResolvedExperiment, folder: Path, logs: Path, page: Path, titles: Titles, verdicts: Mapping[str, str]
) -> ExperimentView:
    """Return an experiment of the run from the files of its results.

    Args:
        resolved: the experiment.
        folder: of the results of its preset.
        logs: of its jobs.
        page: that is written.
        titles: of methods and tasks.
        verdicts: of this run, by claim.
    """
    name, experiment = resolved.name, resolved.experiment
    figure, table = folder / "figures" / f"{name}.png", folder / "tables" / f"{name}.csv"
    records = folder / "records" / f"{name}.parquet"
    if figure.with_suffix(".svg").is_file():
        check_svg(figure.with_suffix(".svg"))
    files = [
        *(figure.with_suffix(ending) for ending in (".svg", ".pdf", ".png")),
        *(table, records, folder / "illustrations" / records.name, logs / f"{name}.log"),
    ]
    ran = bool(resolved.trials)
    trials = sum(len(seeds) for _, seeds in resolved.trials)
    facts = [f"{trials} trial{'s' * (trials != 1)}, {duration(seconds_in(records))}"] if ran else []
    return ExperimentView(
        name,
        f"run-{name}",
        resolved.study,
        experiment,
        resolved.preset,
        facts + [f"data: {resolved.data}"] * bool(resolved.data),
        data_uri(figure) if experiment.figure else "",
        titled(read_csv(table, remedy=f"snakemake {name}"), titles) if experiment.table else None,
        [*links(files, page), specification(name, experiment)],
        list(dict.fromkeys(legend.label for legend in resolved.legends.values())),
        verdicts_on(name, resolved.study, verdicts),
        explored_records(resolved, records) if ran else None,
        failures_in(records) if ran else [],
    )


def verdicts_on(experiment: str, study: Study, verdicts: Mapping[str, str]) -> dict[str, str]:
    """Return the verdicts on the claims that rest on an experiment."""
    return {
        name: verdicts[name]
        for name, claim in study.claims.items()
        if experiment in claim.all_experiments and name in verdicts
    }


def reference_folder() -> Path:
    """Return the folder of the results on file."""
    return places.on_file(places.REFERENCE)


def atlas_folder() -> Path:
    """Return the folder of the atlas on file."""
    return places.on_file(places.ATLAS)


def on_file(run: ResolvedRun, page: Path, verdicts: Mapping[str, str]) -> list[ExperimentView]:
    """Return the experiments of the run's studies whose results are on file.

    Args:
        run: with the studies.
        page: that is written.
        verdicts: those on file, by claim.
    """
    titles = Titles(run.entries)
    costs = costs_on_file(reference_folder() / "costs.csv")
    found = []
    for study in run.studies.values():
        for name, experiment in study.experiments.items():
            there = kept(reference_folder(), name)
            if there.about is None:
                continue
            files = [there.folder / written.format(name) for written in WRITTEN]
            curves = explored_on_file(there.folder, costs, run.entries, titles)
            about = there.about
            taken = duration(3600 * about.get("wall_hours", 0))
            facts = [f"{about['trials']} trials of {about['seeds']} seeds, {taken}"] if about.get("trials") else []
            found.append(
                ExperimentView(
                    name,
                    name,
                    study,
                    experiment,
                    str(about.get("preset", "")),
                    [*facts, f"data: {about.get('data', 'synthetic')}"],
                    address(there.folder / f"{name}.png", page) if there.figure else "",
                    None if there.table is None else titled(there.table, titles),
                    [*links(files, page), specification(name, experiment)],
                    [] if curves is None else list(dict.fromkeys(one["label"] for one in curves["methods"].values())),
                    verdicts_on(name, study, verdicts),
                    curves,
                )
            )
    return found


class Answer(NamedTuple):
    """The answer on the first screen.

    Attributes:
        sentences: of it.
        picture: address of its figure.
        source: the same figure as a file beside the page.
        alternative: what the figure shows, in words.
    """

    sentences: list[str]
    picture: str
    source: str
    alternative: str


def answer(
    claims: pd.DataFrame, page: Path, same_methods: Mapping[str, str], atlas: AtlasNumbers | None = None
) -> Answer | None:
    """Return the answer of the results on file; None without a figure.

    It is that of the atlas once its primary analyses have all their trials, and else that of the verdicts.
    """
    picture, record = atlas_folder() / "interventions.svg", reference_folder() / "answer.svg"
    if atlas and picture.is_file() and is_answered(atlas_folder()):
        return Answer(list(answer_of_atlas(atlas.findings)), *pictured(picture, page), OF_ATLAS)
    if not record.is_file():
        return None
    compared = comparisons(claims, same_methods)
    return Answer([] if compared.empty else answer_in_words(compared), *pictured(record, page), OF_CLAIMS)


OF_ATLAS = "Effects of interventions on the uncertainty on calibration and on regret"
OF_CLAIMS = "Forecasts and search, compared with the same methods under plain uncertainty"


def pictured(path: Path, page: Path) -> tuple[str, str]:
    """Return an SVG as a data URI, and its address as a file beside the page."""
    check_svg(path)
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode(), address(path, page)


def by_study(views: Iterable[ExperimentView]) -> list[tuple[Study, list[ExperimentView]]]:
    """Return the experiments of each study, in order."""
    groups: dict[str, tuple[Study, list[ExperimentView]]] = {}
    for one in views:
        groups.setdefault(one.study.study, (one.study, []))[1].append(one)
    return list(groups.values())


def in_page(value: Any) -> Markup:
    """Return JSON that can stand inside of a page: nothing in it ends the element that it stands in."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def with_code(text: str) -> Markup:
    """Return text as HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def p_value(p: float) -> str:
    """Return a p-value as papers print it: `.0042`, or `<.0001`."""
    if pd.isna(p):
        return "–"
    return "<.0001" if p < 1e-4 else f"{p:.2g}".replace("0.", ".", 1)


def share(value: float) -> str:
    """Return a share in percent; a dash where there is none."""
    return "–" if pd.isna(value) else percent(value)


@cache
def page_template() -> Template:
    """The template of the page."""
    found = html_environment()
    found.filters.update(
        number=number, code=with_code, json=in_page, p=p_value, share=share, short=short, slug=slug, brief=brief
    )
    return found.from_string(template_text("report.html.j2"))


def verdict_of_each(documents: Sequence[tuple[Study, list[ClaimView]]]) -> dict[str, str]:
    """Return the verdicts by claim."""
    return {one.name: one.verdict for _, views in documents for one in views}


def choices(
    studies: Sequence[Study], claims: Sequence[ClaimView], experiments: Sequence[ExperimentView]
) -> dict[str, list[tuple[str, str]]]:
    """Return what can be chosen by each filter: a value with its words."""
    there = {one.verdict for one in claims}
    methods = {method for one in claims for method in one.methods}.union(*(one.methods for one in experiments))
    scales = {scale for one in claims for scale in one.scales} | {one.scale for one in experiments}
    return {
        "paper": [(study.study, study.title) for study in studies],
        "verdict": [(slug(verdict), brief(verdict)) for verdict in VERDICTS if verdict in there],
        "method": [(method, method) for method in sorted(methods, key=str.casefold)],
        "scale": [(scale, scale) for scale in sorted(scales - {""})],
    }


def write_report(run: ResolvedRun, folder: Path, output: Path, claims_path: Path) -> None:
    """Write the page of the verdicts on file and of the results in `folder` to `output`: one HTML file."""
    if not folder.is_dir():
        raise PlumblineError(f"no folder of results at {folder}: run the preset first")
    claims = read_claims(claims_path)
    committed = reference_folder() / "claims.csv"
    reference = read_claims(committed) if committed.is_file() else claims.iloc[:0]
    of_studies = list(run.studies.values())
    titles = Titles(run.entries, run.stand_ins)
    own = claim_views(of_studies, claims, read_doubts(claims_path), titles)
    record = claim_views(of_studies, reference, read_doubts(committed), Titles(run.entries))
    logs = folder.parent / "logs" / run.config.preset / "experiments"
    verdicts = verdict_of_each(own)
    views = [of_run(one, folder, logs, output, titles, verdicts) for one in run.experiments.values()]
    filed = on_file(run, output, verdict_of_each(record))
    rates = reference.drop_duplicates("claim").set_index("claim")[["pattern", "chance"]].astype(object)
    draws = [
        wheel | rates.where(rates.notna(), None).loc[wheel["claim"]].to_dict()
        for wheel in wheels(of_studies, reference_folder(), Titles(run.entries))
        if wheel["claim"] in rates.index
    ]
    legends = {name: one.legend.label for name, one in run.entries.methods.items()}
    atlas = AtlasNumbers(atlas_folder(), legends) if record and is_edition(atlas_folder()) else None
    page = page_template().render(
        run=run,
        stand_ins={real: name for real, name in run.stand_ins.items() if name in run.inputs},
        answer=answer(reference, output, run.entries.same_methods, atlas) if record else None,
        edition=EDITION,
        standings=atlas_standings(atlas.ranks, legends) if atlas else None,
        stored=relpath(address_of_stored(output), output.parent),
        record=record,
        own=own,
        filed=by_study(filed),
        studies=by_study(views),
        wheels=draws,
        not_run=[
            (name, claim) for study in of_studies for name, claim in study.claims.items() if not claim.experiments
        ],
        failures=sum(len(one.failures) for one in views),
        provenance=json.dumps(provenance(), indent=1, sort_keys=True),
        looks=LOOKS,
        meanings=MEANINGS,
        outcomes=OUTCOME_MEANINGS,
        choices=choices(of_studies, [one for _, some in (*record, *own) for one in some], [*filed, *views]),
        styles=Markup(verdict_styles() + template_text("report.css")),
        script=Markup(template_text("report.js")),
        library=Markup(chart_library()) if any(one.curves for one in (*views, *filed)) else "",
        chart=Markup(line_chart()),
    )
    write_text(output, page)
