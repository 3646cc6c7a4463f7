"""The study's page: verdicts first, then each experiment with its figure and table, then failures and provenance."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from PIL import Image

from plumbline.analysis.evidence.collect import failures_of
from plumbline.analysis.outputs.style import VERDICT_COLOURS, verdict_colour
from plumbline.analysis.publish.markdown import number
from plumbline.analysis.publish.reference import effect, read_claims, seeds_of
from plumbline.analysis.verdicts.rule import counts
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_csv, write_text
from plumbline.core.places import REFERENCE, on_file
from plumbline.store.provenance import provenance
from plumbline.store.records import read_table
from plumbline.study.experiments import Experiment, Study
from plumbline.study.resolved import ResolvedExperiment, ResolvedRun

DAMAGED = "{path} is empty, cut off or no {kind}: delete it, and run the same command again"


@dataclass(frozen=True)
class Section:
    """One experiment on the page; `figure` is a data URI, `table` a frame, `hours` those of its rounds, and `files` lie
    in the folder of its preset."""

    name: str
    experiment: Experiment
    figure: str | None
    table: pd.DataFrame | None
    failures: list[str]
    data: str
    trials: int
    hours: float | None
    files: list[str]


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


def hours_in(records: Path) -> float:
    """Return the hours that all rounds of an experiment's trials took together, each trial on its own."""
    rounds = (
        read_table(records, ["key", "iteration", "round_seconds"]).to_pandas().drop_duplicates(["key", "iteration"])
    )
    return float(rounds["round_seconds"].sum()) / 3600


def section(resolved: ResolvedExperiment, folder: Path) -> Section:
    """Return an experiment's section from the files of its results."""
    name, experiment = resolved.name, resolved.experiment
    figure = folder / "figures" / f"{name}.png"
    table = folder / "tables" / f"{name}.csv"
    records = folder / "records" / f"{name}.parquet"
    files = [path for path in (figure.with_suffix(".svg"), figure, table, records) if path.is_file()]
    for path in files:
        if path.suffix == ".svg":
            check_svg(path)
    return Section(
        name,
        experiment,
        data_uri(figure) if experiment.figure else None,
        read_csv(table, remedy=f"snakemake {name}") if experiment.table else None,
        failures_in(records) if resolved.trials else [],
        resolved.data,
        sum(len(seeds) for _, seeds in resolved.trials),
        hours_in(records) if resolved.trials else None,
        [str(path.relative_to(folder)) for path in files],
    )


def grouped_claims(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one entry a claim, with the list of its tests and its small-sample rate in percent."""
    grouped: list[dict[str, Any]] = []
    for _, tests in claims.groupby("claim", sort=False):
        rows = [dict(zip(tests.columns, row, strict=True)) for row in tests.itertuples(index=False, name=None)]
        primary = tests[tests["role"] == "primary"]
        first = rows[0]
        seen = None if pd.isna(first["pattern"]) else round(100 * first["pattern"])
        words = {"counts": counts(primary["outcome"]), "measured": effect(primary), "seeds": seeds_of(primary)}
        grouped.append({**first, "tests": rows, "seen": seen, **words})
    return grouped


def by_document(studies: Iterable[Study], claims: Iterable[dict[str, Any]]) -> list[tuple[Study, list[dict[str, Any]]]]:
    """Return the claims that rest on the experiments of each study, as one counts them; studies without any are left
    out."""
    ordered = sorted(claims, key=lambda one: by_number(one["claim"]))
    groups = [
        (study, [one for one in ordered if set(one["experiments"].split()).intersection(study.experiments)])
        for study in studies
    ]
    return [(study, of_study) for study, of_study in groups if of_study]


def by_study(sections: Iterable[tuple[Study, Section]]) -> list[tuple[Study, list[Section]]]:
    """Return the sections of each study, in order."""
    groups: dict[str, tuple[Study, list[Section]]] = {}
    for study, one in sections:
        groups.setdefault(study.study, (study, []))[1].append(one)
    return list(groups.values())


def write_report(run: ResolvedRun, folder: Path, output: Path, claims_path: Path) -> None:
    """Write the page of the results in `folder` and of the verdicts to `output`: one HTML file that needs no other."""
    if not folder.is_dir():
        raise PlumblineError(f"no folder of results at {folder}: run the preset first")
    claims = read_claims(claims_path)
    verdicts = on_file(REFERENCE / "claims.csv")
    reference = read_claims(verdicts) if verdicts.is_file() else claims.iloc[:0]
    studies = by_study((one.study, section(one, folder)) for one in run.experiments.values())
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    template = package_files("plumbline.analysis").joinpath("templates", "report.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(template).render(
        run=run,
        verdict_colours={verdict: verdict_colour(verdict) for verdict in VERDICT_COLOURS},
        documents=by_document(run.studies.values(), grouped_claims(claims)),
        not_run=[
            (name, claim)
            for study in run.studies.values()
            for name, claim in study.claims.items()
            if not claim.experiments
        ],
        beyond={
            name: claim.beyond.because
            for study in run.studies.values()
            for name, claim in study.claims.items()
            if claim.beyond is not None
        },
        reference=by_document(run.studies.values(), grouped_claims(reference)),
        studies=studies,
        failures=sum(len(one.failures) for _, sections in studies for one in sections),
        provenance=json.dumps(provenance(), indent=1, sort_keys=True),
    )
    write_text(output, page)
