"""Results that are committed: small tables, figures and verdicts, each with where it comes from."""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.evidence.reference import WHERE
from plumbline.analysis.outputs.draw import budget_label, evidence_of, output_of
from plumbline.analysis.publish.reference_verdicts import read_claims
from plumbline.analysis.verdicts.judge import KEEP_AGAIN, judge_reference, runs_for_outputs, runs_from_records
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, read_csv, read_json, write_text
from plumbline.core.locks import locked_folder
from plumbline.core.words import counted
from plumbline.metrics.registry import METRICS, by_round, columns_of
from plumbline.statistics.over_seeds import mean_and_standard_error
from plumbline.store.folder import TrialFolder
from plumbline.store.provenance import read_provenance
from plumbline.store.records import read_table, write_frame
from plumbline.store.reference_files import CLAIMS, COSTS, SMALL_SAMPLES, ExperimentFiles
from plumbline.study.experiments import Study
from plumbline.study.methods_and_tasks import MethodsAndTasks
from plumbline.study.resolved import ResolvedExperiment

PAIR = ["task", "method"]
"""What a row of the costs is about."""

KEEPS = "keeps results there"
"""What the holder of the lock of a folder of reference results does."""


def metrics_by_round(resolved: ResolvedExperiment) -> tuple[str, ...]:
    """Return the metrics that are kept by round, to be compared with without running anything.

    They are those whose curves the figure draws, or else the first running metric of figure and table.
    """
    if resolved.experiment.figure is not None:
        _, options = output_of(resolved, "figure")
        if options.draws_curves:
            return tuple(dict.fromkeys(options.names().metrics))
    shown = (metric for _, _, metric in runs_for_outputs(resolved) if metric in METRICS)
    return tuple(metric for metric in shown if METRICS[metric].kind == "running")[:1]


def curves(found: Evidence, metrics: Sequence[str]) -> pd.DataFrame:
    """Return mean and standard error of `metrics` of each method on each task, by iteration, over the seeds that have
    a value, and how many those are."""
    frames = []
    for task, method in found.pairs:
        for metric in metrics:
            table = by_round(found.trials(task, method), metric)
            if table.size == 0:
                continue
            mean, error = mean_and_standard_error(table.to_numpy())
            frames.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "method": method,
                        "metric": metric,
                        "iteration": table.columns,
                        "mean": mean,
                        "standard_error": error,
                        "seeds": table.notna().sum().to_numpy(),
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def rounds(found: Evidence, metrics: Sequence[str]) -> pd.DataFrame:
    """Return `metrics` of each run by iteration, where there is a value: what curves are drawn from anew."""
    frames = []
    for task, method in found.pairs:
        for metric in metrics:
            table = found.by_round(task, method, metric)
            # Run by run: best values so far are constant over many rounds, which compresses well in this order.
            values = table.reset_index().melt("seed", var_name="iteration").dropna().sort_values(["seed", "iteration"])
            frames.append(values.assign(task=task, method=method, metric=metric))
    types = dict.fromkeys(WHERE, "category") | dict.fromkeys(("seed", "iteration"), "int32") | {"value": "float32"}
    return pd.concat(frames, ignore_index=True)[list(types)].astype(types)


def combined_provenance(facts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return one provenance of many trials: each value that occurs, once, and the wall time of all."""
    facts = list(facts)
    keys = sorted({key for fact in facts for key in fact} - {"spec", "wall_seconds", "status"})
    values = {key: sorted({json.dumps(fact.get(key), sort_keys=True) for fact in facts}) for key in keys}
    return {
        **{key: [json.loads(text) for text in texts] for key, texts in values.items()},
        "trials": len(facts),
        "wall_hours": round(sum(fact["wall_seconds"] for fact in facts) / 3600, 3),
    }


def costs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the median seconds of a round of each method on each task."""
    rounds = rows[rows["iteration"] > 0].drop_duplicates(["key", "iteration"])
    seconds = rounds.groupby(["task", "method"], sort=False, observed=True)["round_seconds"].median()
    return seconds.rename("seconds_a_round").reset_index().astype(dict.fromkeys(PAIR, str))


def merge(path: Path, new: pd.DataFrame, keys: Sequence[str]) -> None:
    """Write `new` into the CSV at `path`, in place of the rows that have the same `keys`.

    Raises:
        PlumblineError: the CSV is damaged, or lacks a column of `new`.
    """
    if new.empty:
        return
    if path.is_file():
        old = read_csv(path, map(str, new), remedy="take it from version control")
        fresh = set(new[list(keys)].itertuples(index=False, name=None))
        stays = [row not in fresh for row in old[list(keys)].itertuples(index=False, name=None)]
        new = pd.concat([old[stays], new], ignore_index=True)
    with atomic(path) as part:
        new.sort_values(list(keys), kind="stable").to_csv(part, index=False, float_format="%.6g")


def keep_figure(path: Path, home: Path) -> None:
    """Copy a figure, a PNG, in 256 colours: a third of the bytes.

    In four figures that were compared no pixel moved by more than 18 of 255.

    Raises:
        PlumblineError: it is damaged.
    """
    try:
        with Image.open(path) as figure:
            # Anti-aliasing makes thousands of colours; of the quantizers, this one leaves none of them far away. Means
            # of what falls to each keep the pale colours of bands, which are large.
            drawn = figure.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    except (OSError, SyntaxError, ValueError) as error:
        raise PlumblineError(f"{path} is no whole picture: delete it, and draw it again") from error
    with atomic(ExperimentFiles(home).figure) as part:
        drawn.save(part, format="png", optimize=True)


def keep_illustration(path: Path, home: Path, preset: str) -> None:
    """Copy an illustration to the folder of its experiment: a table, and where it comes from, with its preset.

    Raises:
        PlumblineError: the file is missing or damaged, or holds the illustration of another experiment.
    """
    table, files = read_table(path), ExperimentFiles(home)
    shown = table.to_pandas()
    write_frame(
        files.illustration,
        shown.astype(dict.fromkeys(shown.select_dtypes("float"), "float32")),
        small=True,
    )
    about = {"experiment": path.stem, "preset": preset, **read_provenance(table.schema.metadata, path)}
    if about["experiment"] != path.stem:
        raise PlumblineError(f"{path} is the illustration of {about['experiment']}: delete it, and compute it again")
    write_text(files.illustration_provenance, json.dumps(about, indent=1, sort_keys=True) + "\n")


def keep(
    experiments: Sequence[ResolvedExperiment], folder: Path, store: Path, reference: Path, replace: bool = False
) -> None:
    """Copy the results of experiments from a preset's `folder` to the `reference` results, with provenance.

    All is gathered and checked before anything is replaced; what is kept of an experiment is replaced as a whole, while
    no other process keeps results there.

    Args:
        experiments: those to keep.
        folder: results of their preset.
        store: folder of all trials.
        reference: folder of the reference results.
        replace: whether results of fewer seeds, of another preset or of other data may take the place of those kept.

    Raises:
        PlumblineError: failed trials among them, or a figure or table that is not there: reference results are whole
            or not at all; or kept results would be replaced by lesser ones.
    """
    if reference.resolve() == folder.resolve() or reference.resolve().is_relative_to(store.resolve()):
        raise PlumblineError(f"{reference} holds results of runs: name another folder for what is kept (--output)")
    if (reference / CLAIMS).is_file():
        read_claims(reference / CLAIMS)  # they are judged anew in the end: they must be readable
    reference.mkdir(parents=True, exist_ok=True)
    with locked_folder(reference, KEEPS), tempfile.TemporaryDirectory(prefix=".gathered-", dir=reference) as place:
        measured = [(one.name, gather(one, folder, store, Path(place) / one.name)) for one in experiments]
        if not replace:
            for name, _ in measured:
                refuse_lesser(name, reference / name, Path(place) / name)
        measured_costs = [cost for _, cost in measured if cost is not None]
        if measured_costs:
            merge(reference / COSTS, pd.concat(measured_costs).drop_duplicates(PAIR, keep="last"), PAIR)
        for name, _ in measured:
            swap(Path(place) / name, reference / name)


def swap(new: Path, home: Path) -> None:
    """Put the folder `new` in place of `home`; files that no experiment leaves there, such as notes, stay."""
    made = {path.name for path in new.iterdir()} | {path.name for path in ExperimentFiles(home).files}
    if home.is_dir():
        for path in home.iterdir():
            if path.name not in made:
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, new / path.name)
        old = home.rename(new.with_name(f"{new.name}.old"))
        try:
            new.rename(home)
        except BaseException:
            old.rename(home)
            raise
    else:
        new.rename(home)


def refuse_lesser(name: str, home: Path, new: Path) -> None:
    """Raise PlumblineError where kept results are of more seeds, of another preset, or of other data than new ones."""
    before, after = ExperimentFiles(home).provenance, ExperimentFiles(new).provenance
    if not before.is_file():
        return
    needs, remedy = ("preset", "data", "seeds"), f"{KEEP_AGAIN}, or --replace it"
    old = read_json(before, needs, remedy)
    now = read_json(after, needs) if after.is_file() else None
    there, here = (
        f"{about['seeds']} seeds of preset {about['preset']} on {about['data']}" if about else "no trials"
        for about in (old, now)
    )
    same = now is not None and (old["preset"], old["data"]) == (now["preset"], now["data"])
    if now is None or not same or now["seeds"] < old["seeds"]:
        raise PlumblineError(f"{name}: kept are {there}, these are {here}: --replace puts them in their place")


def existing_file(path: Path, name: str) -> Path:
    """Return the path of a file among the results of the experiment `name`.

    Raises:
        PlumblineError: there is no such file.
    """
    if not path.is_file():
        raise PlumblineError(f"{name}: no file {path}: make it first (snakemake {name})")
    return path


def gather(resolved: ResolvedExperiment, folder: Path, store: Path, home: Path) -> pd.DataFrame | None:
    """Copy what is kept of an experiment to the folder `home`, and return the costs of its rounds, None without trials.

    Raises:
        PlumblineError: as `keep`.
    """
    name, kept, files = resolved.name, metrics_by_round(resolved), ExperimentFiles(home)
    columns = (*columns_of(kept), "round_seconds")
    found = evidence_of(resolved, columns, folder / "records" / f"{name}.parquet" if resolved.trials else None)
    if len(found.failures):
        raise PlumblineError(f"{name}: {counted(len(found.failures), 'trial')} failed; reference results must be whole")
    home.mkdir(parents=True)
    if resolved.experiment.figure is not None:
        keep_figure(existing_file(folder / "figures" / f"{name}.png", name), home)
    if resolved.experiment.table is not None:
        table = existing_file(folder / "tables" / f"{name}.csv", name)
        read_csv(table, remedy=f"delete it, and make it again (snakemake {name})")
        shutil.copyfile(table, files.table)
    if resolved.experiment.illustration is not None:
        keep_illustration(existing_file(folder / "illustrations" / f"{name}.parquet", name), home, resolved.preset)
    if not resolved.trials:
        return None
    if kept:
        write_frame(files.curves, curves(found, kept), small=True)
        write_frame(files.rounds, rounds(found, kept), small=True)
    keys = found.rows["key"].unique()
    about = {
        "experiment": name,
        "preset": resolved.preset,
        "data": resolved.data or "synthetic",
        "seeds": found.seeds,
        "budget": budget_label(found.rows),
        **combined_provenance(TrialFolder(store, key).provenance() for key in keys),
    }
    write_text(files.provenance, json.dumps(about, indent=1, sort_keys=True) + "\n")
    found_runs = runs_from_records(resolved, folder / "records" / f"{name}.parquet", runs_for_outputs(resolved))
    if found_runs is not None:
        write_frame(files.runs, found_runs.runs, small=True)
    return costs(found.rows)


def keep_verdicts(studies: Collection[Study], library: MethodsAndTasks, reference: Path) -> None:
    """Judge the claims of `studies` anew by the runs among the reference results; verdicts of other studies stay.

    The two figures that sum them up are drawn anew too.
    """
    with locked_folder(reference, KEEPS):
        _keep_verdicts(studies, library, reference)


def _keep_verdicts(studies: Collection[Study], library: MethodsAndTasks, reference: Path) -> None:
    # Drawing takes seconds to import: who only reads verdicts need not wait for it.
    from plumbline.analysis.publish.answer import write_answer
    from plumbline.analysis.publish.small_samples import write_small_samples

    path = reference / CLAIMS
    claims = judge_reference(studies, library, reference)
    here = {name for study in studies for name in study.claims}
    kept = read_csv(path, ["claim"], remedy="take it from version control")["claim"] if path.is_file() else ()
    if set(kept) - here:  # else the old table is not needed, and may have other columns
        old = read_claims(path)
        claims = pd.concat([old[~old["claim"].isin(here)], claims], ignore_index=True)
    claims = claims.sort_values("claim", kind="stable", key=lambda names: names.map(by_number))
    with atomic(path) as part:
        claims.to_csv(part, index=False, float_format="%.6g")
    claims = read_claims(path)  # as rounded: figures then depend on the committed table alone
    write_small_samples(claims, reference / SMALL_SAMPLES, [name for study in studies for name in study.claims])
    write_answer(claims, reference, library.same_methods)
