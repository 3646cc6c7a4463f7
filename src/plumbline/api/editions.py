"""The atlas: reference results of every method on every task, and how trials are added to it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from plumbline.api.arguments import checked
from plumbline.api.repository import find_repository
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.places import ATLAS, own_folder, own_or_shipped, shipped
from plumbline.core.words import counted, names_of
from plumbline.registry.catalogue import catalogue
from plumbline.registry.references import MethodRef

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.analysis.atlas.edition import Cell
    from plumbline.methods.base import Domain
    from plumbline.store.spec import TrialSpec

Part = Literal["rounds", "trials", "cells", "tasks", "findings", "ranks", "profiles"]

STUDY = "atlas"

CORNER = "ATLAS-corner"
"""The experiment of the quick preset, whose trials are part of no edition."""


@checked
def atlas(
    part: Part = "rounds",
    *,
    task: str = "",
    methods: str | Iterable[str] = (),
    folder: str | Path | None = None,
) -> "pd.DataFrame":
    """Return reference results of the atlas: every method on every task that it can run on.

    Args:
        part: `rounds`, a row for each task, method, seed and round, where round 0 is the initial design; `trials`, a
            row for each seed; `cells`, a row for each task and method, including empty ones; `tasks`, a row for each
            task; `findings`, a row for each analysis of the protocol, primary ones first, over tasks with one objective
            and no constraints; `ranks`, the share of the other methods that each method beats, by track and by the cost
            of an evaluation; `profiles`, shares of trials that are solved.
        task: the task; all tasks if empty.
        methods: the methods, as a list or separated by commas; all methods if empty.
        folder: the folder of an edition; if None, `results/atlas` of the workspace or the package.

    Returns:
        For `rounds`: `best`, the best noise-free value so far, and `incumbent`, that of the best observation, both to
        be maximised; `recommended` after the last round; whether the observation lay in the sets of level 50, 80 and
        95% (`covered_50` and others); its `pit` and `nll` under the forecast, and `width_80`; the seconds of fit,
        search and evaluation; the trial's `optimum` and `regret`; and `normalised_regret`, the regret in units of that
        of the initial design. If the optimum is unknown, the best value of any trial on the task stands for it.
        `results/atlas/README.md` explains all columns of `rounds`, `tasks` and `cells`.

        For `trials`: `score`, the mean normalised regret over the rounds, `early` over the first ten, and `final` after
        the last; then `observed`, that of the best observation, and `recommended`, that of the point which the method
        recommends; `calibration_error`, `first_half` that of the first half, and the mean `nll`; and the median
        `seconds` of fit and search in a round.

        For `findings`: the `analysis`, `where` it holds (a part of the tasks, rounds or pairs), the column `of` trials
        that it is about, the number of `tasks`, the mean `value` with its 95% interval `low` to `high`, the two-sided
        `p`, and `p_corrected` by Holm's method, for primary analyses only.

        For `ranks`: the `track`, or the `cost` of an evaluation in words; `method`, its number of `tasks` and mean
        `score`, and `beaten`, the share of the other methods that it beats, with its 95% interval.

        For `profiles`: the `profile` (`performance` or `data`), `track` and `method`, the place `at` on the profile's
        axis, the number of `tasks`, and the `share` of trials that are solved, with its 95% interval.

    Raises:
        PlumblineError: no atlas in the folder, one of another edition, an unknown part, task or method, `findings`
            with `task` or `methods`: they are analyses of the whole grid, or too few trials for the part.

    Examples:
        >>> rounds = pb.atlas(task="common-levy-5-0.1", methods=["atlas-logei", "optuna-gp"])
        >>> rounds.groupby(["method", "round"])["regret"].median().unstack("method")
    """
    from plumbline.analysis.atlas.edition import check_edition, read_cells, read_rounds, read_tasks
    from plumbline.analysis.atlas.scores import trials, with_regret

    if part not in get_args(Part):
        raise unknown("part of the atlas", part, get_args(Part))
    wanted = names_of(methods, "methods")
    if part == "findings" and (task or wanted):
        raise PlumblineError("the findings are analyses of all tasks and methods: leave the task and methods out")
    place = own_or_shipped(ATLAS) if folder is None else Path(folder)
    check_edition(place)
    cells, tasks = read_cells(place), read_tasks(place)
    if task and task not in set(tasks["task"]):
        raise unknown("task of the atlas", task, tasks["task"])
    for method in wanted:
        if method not in set(cells["method"]):
            raise unknown("method of the atlas", method, cells["method"].unique())
    if part == "tasks":
        return tasks[tasks["task"] == task] if task else tasks
    here = cells[(cells["task"] == task) if task else cells["task"].notna()]
    if part == "cells":
        return here[here["method"].isin(wanted)] if wanted else here
    # Of all methods: where the optimum is unknown, the best of any trial stands for it.
    rounds = with_regret(read_rounds(place, here.loc[here["seeds"] > 0, "task"].unique()))
    if rounds.empty and part != "rounds":
        where = f"trials on {task!r}" if task else "trials yet"
        raise PlumblineError(f"{place} has no {where}: `plumbline atlas --add results` adds those of a run")
    if part == "findings":
        from plumbline.analysis.atlas.interventions import findings

        return findings(trials(rounds), tasks)
    # Methods are chosen last: a rank is among all of them.
    if part == "trials":
        found = trials(rounds)
    elif part == "rounds":
        found = rounds
    else:
        from plumbline.analysis.atlas.ranks import profiles, ranks

        refuse_too_few(part, rounds, place)
        found = (ranks if part == "ranks" else profiles)(rounds, tasks)
    return found[found["method"].isin(wanted)].reset_index(drop=True) if wanted else found


FEWEST: Mapping[str, int] = {"ranks": 2, "profiles": 1}
"""Methods with scores on one task that a part takes at least."""


def refuse_too_few(part: str, rounds: "pd.DataFrame", place: Path) -> None:
    """Raise PlumblineError where no task has enough methods for a part: a score takes a regret to begin with."""
    scored = rounds.dropna(subset="normalised_regret").groupby("task", observed=True)["method"].nunique()
    if scored.max() < FEWEST[part] or scored.empty:
        raise PlumblineError(
            f"{place} has no {part}: they take {counted(FEWEST[part], 'method')} with scores on a task"
        )


@checked
def add_to_atlas(results: str | Path, *, data: str | Path | None = None, folder: str | Path | None = None) -> int:
    """Add the finished trials of a results folder to the atlas; return how many cells are new or were replaced.

    Args:
        results: a folder with `trials` and `store`, of runs of the study `atlas` at the preset `paper`, on real data.
        data: folder of features and trained models; `data` of the workspace where None.
        folder: of the edition; `results/atlas` of the workspace where None, which begins as a copy of the package's.

    Raises:
        PlumblineError: the results have no trials, the folder holds another edition, or a result is damaged.
    """
    from plumbline.analysis.atlas.edition import add_cells

    if not (Path(results) / "trials").is_dir():
        raise PlumblineError(f"no trials in {results}: name a folder of results in which the study atlas has run")
    grid = AtlasGrid(find_repository())
    specs = grid.specs()
    finished = list(finished_cells(grid, Path(results)))
    at_hand = own_folder() / "data" if data is None else Path(data)
    domains = {task: domain_of(specs[task], at_hand) for task in dict.fromkeys(cell.pair[0] for cell in finished)}
    cells = [cell._replace(facts={**cell.facts, "inputs": domains[cell.pair[0]].bounds.shape[-1]}) for cell in finished]
    cells += empty_cells(grid, domains)
    own = own_folder() / ATLAS
    place = own if folder is None else Path(folder)
    # The workspace's edition is read in place of the package's: it has all cells of that.
    start = shipped() / ATLAS if place.resolve() == own.resolve() else None
    return add_cells(place, cells, grid.tasks(), EDITION_FACTS, start)


EDITION_FACTS = {
    "title": "An atlas of Bayesian optimisation under imperfect models",
    "creators": ["the plumbline developers"],
    "licence": "MIT",
    "protocol": "docs/results/atlas-protocol.md",
    "study": STUDY,
    "preset": "paper",
    "data": "real",
}
"""What a deposit of an edition says of itself."""


class AtlasGrid:
    """The trials of the atlas, as its study plans them, and what is known of its tasks."""

    def __init__(self, repository: Path) -> None:
        from plumbline.study.plan import load_plan

        plan = load_plan({"studies": [STUDY], "preset": "paper", "data": "real"}, repository)
        self.entries = plan.library
        self.experiments = [one for name, one in plan.run.experiments.items() if name != CORNER]

    @property
    def methods(self) -> list[str]:
        """All methods, in the order of the grid."""
        return list(dict.fromkeys(spec.method.label for one in self.experiments for spec in one.specs))

    def specs(self) -> "dict[str, TrialSpec]":
        """Return a spec of each task, of any method, with seed 0."""
        return {spec.task: spec for one in self.experiments for spec in one.specs}

    def tasks(self) -> "pd.DataFrame":
        """Return `tasks.csv` without what only trials tell."""
        import pandas as pd

        from plumbline.analysis.atlas.runs import track_of

        return pd.DataFrame(
            {
                "task": spec.task,
                "track": track_of(one.name),
                "title": one.titles[spec.task],
                "initial": spec.budget.initial.size,
                "rounds": spec.budget.rounds,
            }
            for one in self.experiments
            for spec in {spec.task: spec for spec in one.specs}.values()
        )


def finished_cells(grid: AtlasGrid, results: Path) -> "Iterator[Cell]":
    """Yield the cells whose trials are all in a results folder."""
    import pandas as pd

    from plumbline.analysis.atlas.edition import Cell
    from plumbline.analysis.atlas.rounds import RECORDED, measure_of, rounds_of
    from plumbline.analysis.evidence.evidence import read_rows
    from plumbline.store.folder import TrialFolder

    for experiment in grid.experiments:
        chunks: dict[tuple[str, str], list[Path]] = {}
        for chunk in experiment.chunks:
            pair = chunk.spec.task, chunk.spec.method.label
            chunks.setdefault(pair, []).append(chunk.path(results / "trials"))
        for spec, seeds in experiment.trials:
            paths = chunks[spec.task, spec.method.label]
            if not all(path.is_file() for path in paths):
                continue
            read = [read_rows(path, RECORDED) for path in paths]
            rows, failed = (pd.concat(frames, ignore_index=True) for frames in zip(*read, strict=True))
            found = len(rows) > 0
            keys = rows["key"].astype(str).unique()
            about = {
                "task": spec.task,
                "method": spec.method.label,
                "class": spec.method.name,
                "seeds": len(seeds) - len(failed),
                "failed": len(failed),
                "empty": "" if found else " ".join(str(failed["error"].iloc[0]).split()),
            }
            if not found:
                yield Cell(about, None, {})
                continue
            facts = [TrialFolder(results / "store", key).provenance() for key in keys]
            about |= provenance_of(spec.method, facts)
            yield Cell(
                about, rounds_of(rows), {"measure": measure_of(list(rows["roles"].iloc[0]))}, made_with_of(facts)
            )


def provenance_of(method: MethodRef, provenances: "Sequence[Mapping[str, Any]]") -> dict[str, Any]:
    """Return commit, versions of the libraries that a method is, and median wall time of trials."""
    from statistics import median

    wanted = catalogue().method[method.name].libraries
    versions = [{**fact["packages"], **fact["imported"]} for fact in provenances]
    libraries = {f"{name} {found[name]}" for found in versions for name in wanted if name in found}
    return {
        "commit": " ".join(sorted({str(fact["commit"])[:12] for fact in provenances})),
        "libraries": "; ".join(sorted(libraries)),
        "seconds": round(median(fact["wall_seconds"] for fact in provenances), 2),
    }


def made_with_of(provenances: "Sequence[Mapping[str, Any]]") -> frozenset[str]:
    """Return the versions of Python and packages that trials were run with."""
    packages = {f"{name} {version}" for fact in provenances for name, version in fact["packages"].items()}
    return frozenset(packages | {f"Python {fact['python']}" for fact in provenances})


def empty_cells(grid: AtlasGrid, domains: "Mapping[str, Domain]") -> "Iterator[Cell]":
    """Yield the cells of some tasks that the grid leaves empty, each with the reason that the method gives.

    Args:
        grid: the trials of the atlas.
        domains: of problems, by task.
    """
    from plumbline.analysis.atlas.edition import Cell

    planned = {(spec.task, spec.method.label) for one in grid.experiments for spec in one.specs}
    for task, domain in domains.items():
        for method in grid.methods:
            if (task, method) not in planned:
                ref = grid.entries.methods[method].ref
                about = {"task": task, "method": method, "class": ref.name, "seeds": 0, "failed": 0}
                yield Cell({**about, "empty": reason_of(ref, domain)}, None, {})


def reason_of(ref: MethodRef, domain: "Domain") -> str:
    """Return why a method has no trials on a task: its own error message, or that it was left out."""
    from plumbline.analysis.atlas.edition import NOT_PLANNED

    return refusal_of(ref, domain) or NOT_PLANNED


def refusal_of(ref: MethodRef, domain: "Domain") -> str:
    """Return why a method cannot run on a task, in its own words; empty where it can."""
    from plumbline.methods.base import build_method

    try:
        build_method(ref.name, ref.options, domain)
    except PlumblineError as error:
        reason = " ".join(str(error).split(": use ")[0].split())
        return re.sub(r"^method '[^']*'(: | is )", "", reason)
    return ""


def domain_of(spec: "TrialSpec", data: Path) -> "Domain":
    """Return the description of a task's problem that methods receive."""
    from plumbline.trials.trial import Trial

    return Trial(spec.model_copy(update={"method": MethodRef(name="random")}), data).domain
