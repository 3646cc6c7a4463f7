"""The study's page: the answer and the reference verdicts, then the preset's own run, failures and provenance.

One file with its figures and numbers inside; links lead to the files that lie beside it. `templates/report.html.j2` has
its structure, `report.css` its looks and `report.js` what readers do with it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Template
from markupsafe import Markup, escape

from plumbline.analysis.atlas.edition import EDITION, is_answered, is_edition
from plumbline.analysis.comparisons.numbers import NOTHING, ends_in_words, probability, short
from plumbline.analysis.outputs.style import verdict_styles
from plumbline.analysis.publish.answer import answer_in_words, comparisons
from plumbline.analysis.publish.atlas_answer import answer_of_atlas
from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.atlas_standings import atlas_standings
from plumbline.analysis.publish.claim_pages import Titles
from plumbline.analysis.publish.claim_views import ClaimView, claim_views
from plumbline.analysis.publish.estimates import percent
from plumbline.analysis.publish.explorer import chart_library, line_chart
from plumbline.analysis.publish.markdown import number
from plumbline.analysis.publish.pages import html_environment, template_text
from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
from plumbline.analysis.publish.report_experiments import ExperimentView, by_study, of_run, reference_views
from plumbline.analysis.publish.report_links import address_of_stored, pictured
from plumbline.analysis.publish.roulette import wheels
from plumbline.core import places
from plumbline.core.errors import PlumblineError
from plumbline.core.files import write_text
from plumbline.store.provenance import provenance
from plumbline.store.reference_files import ANSWER, CLAIMS, EditionFiles
from plumbline.study.experiments import Study
from plumbline.study.resolved import ResolvedRun
from plumbline.study.verdicts import LOOKS, MEANINGS, OUTCOME_MEANINGS, VERDICTS, brief, slug


def reference_folder() -> Path:
    """Return the folder of the reference results."""
    return places.own_or_shipped(places.REFERENCE)


def atlas_folder() -> Path:
    """Return the folder of the atlas."""
    return places.own_or_shipped(places.ATLAS)


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
    """Return the answer of the reference results; None without a figure.

    It is that of the atlas once its primary analyses have all their trials, and else that of the verdicts.
    """
    picture, record = EditionFiles(atlas_folder()).figure("svg"), reference_folder() / f"{ANSWER}.svg"
    if atlas and picture.is_file() and is_answered(atlas_folder()):
        return Answer(list(answer_of_atlas(atlas.findings)), *pictured(picture, page), OF_ATLAS)
    if not record.is_file():
        return None
    compared = comparisons(claims, same_methods)
    return Answer([] if compared.empty else answer_in_words(compared), *pictured(record, page), OF_CLAIMS)


OF_ATLAS = "Effects of interventions on the uncertainty on calibration and on regret"
OF_CLAIMS = "Forecasts and search, compared with the same methods under plain uncertainty"


def in_page(value: Any) -> Markup:
    """Return JSON that can stand inside of a page: nothing in it ends the element that it stands in."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def with_code(text: str) -> Markup:
    """Return text as HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def with_bold(text: str) -> Markup:
    """Return text as HTML in which `**bold**` is the only markup."""
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text))))


def p_value(p: float) -> str:
    """Return a p-value as papers print it: `.0042`, or `<.0001`."""
    return probability(p, 1e-4)


def share(value: float) -> str:
    """Return a share in percent; a dash where there is none."""
    return NOTHING if pd.isna(value) else percent(value)


@cache
def page_template() -> Template:
    """The template of the page."""
    found = html_environment()
    found.filters.update(
        number=number,
        code=with_code,
        bold=with_bold,
        json=in_page,
        p=p_value,
        share=share,
        short=short,
        ends=lambda ends: ends_in_words(*ends),
        slug=slug,
        brief=brief,
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
    """Write the page of the reference verdicts and of the results in `folder` to `output`: one HTML file.

    Raises:
        PlumblineError: there is no folder of results or no table of claims, or a file that the page shows is damaged.
    """
    if not folder.is_dir():
        raise PlumblineError(f"no folder of results at {folder}: run the preset first")
    claims = read_claims(claims_path)
    stored = reference_folder()
    committed = stored / CLAIMS
    reference = read_claims(committed) if committed.is_file() else claims.iloc[:0]
    of_studies = list(run.studies.values())
    titles = Titles(run.entries, run.stand_ins)
    own = claim_views(of_studies, claims, read_doubts(claims_path), titles)
    record = claim_views(of_studies, reference, read_doubts(committed), Titles(run.entries))
    logs = folder.parent / "logs" / run.config.preset / "experiments"
    verdicts = verdict_of_each(own)
    views = [of_run(one, folder, logs, output, titles, verdicts) for one in run.experiments.values()]
    references = reference_views(run, stored, output, verdict_of_each(record))
    rates = reference.drop_duplicates("claim").set_index("claim")[["pattern", "chance"]].astype(object)
    draws = [
        wheel | rates.where(rates.notna(), None).loc[wheel["claim"]].to_dict()
        for wheel in wheels(of_studies, stored, Titles(run.entries))
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
        stored=relpath(address_of_stored(stored, output), output.parent),
        record=record,
        own=own,
        references=by_study(references),
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
        choices=choices(of_studies, [one for _, some in (*record, *own) for one in some], [*references, *views]),
        styles=Markup(verdict_styles() + template_text("report.css")),
        script=Markup(template_text("report.js")),
        library=Markup(chart_library()) if any(one.curves for one in (*views, *references)) else "",
        chart=Markup(line_chart()),
    )
    write_text(output, page)
