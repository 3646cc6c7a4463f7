"""Listings of entries of the configuration, registered classes, experiments and claims, as tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from plumbline.api.arguments import checked
from plumbline.api.repository import find_repository, study_names
from plumbline.api.written import entry_files, read_written
from plumbline.core.errors import PlumblineError, shown, unknown
from plumbline.core.libraries import absent
from plumbline.core.places import ATLAS, REFERENCE, STUDIES, own_or_shipped
from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.schema_options import Option, options_of
from plumbline.store.reference_files import CLAIMS
from plumbline.study.experiments import Preset, Study, in_atlas, load_study
from plumbline.study.methods_and_tasks import load_methods_and_tasks

if TYPE_CHECKING:
    import pandas as pd

KINDS: tuple[str, ...] = (*get_args(Kind), "metric", "statistic")
"""Kinds of registered code: what the catalogue has, metrics of records and statistics over seeds."""


class Listing(NamedTuple):
    """Rows under the names of their columns, for callers that do not need pandas, which is slow to import."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def frame(self) -> "pd.DataFrame":
        """Return the listing as a table of pandas."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=self.columns)


def methods() -> "pd.DataFrame":
    """Return the methods: the names that experiments, figures and claims use, and that `run` takes.

    Returns:
        A row for each method: `method`, the `paper` whose file has its entry, its `legend`, the registered `class`, its
        `entry` (several methods share an entry that varies an option), and whether its libraries are `installed`.

    Examples:
        >>> pb.methods().query("paper == 'conformal'")
    """
    return listed_methods().frame()


def listed_methods() -> Listing:
    """Return the rows of `methods`."""
    repository = find_repository()
    written = read_written(entry_files(repository, "methods"))
    found = load_methods_and_tasks(repository / "config").methods
    rows = [
        (
            *(name, written[one.legend.entry].path.stem, one.legend.label, one.ref.name, one.legend.entry),
            not absent(catalogue().find("method", one.ref.name).libraries),
        )
        for name, one in found.items()
    ]
    return Listing(["method", "paper", "legend", "class", "entry", "installed"], rows)


def tasks() -> "pd.DataFrame":
    """Return the tasks: problems with an initial design, a number of rounds and a batch size q.

    Returns:
        A row for each task: `task`, the `paper` whose file has its entry, its `title`, the registered `problem`, the
        number of points of the `initial` design, `rounds`, evaluations per round `q`, and its `entry`.

    Examples:
        >>> pb.tasks().query("rounds <= 30 and q == 1")
    """
    return listed_tasks().frame()


def listed_tasks() -> Listing:
    """Return the rows of `tasks`."""
    repository = find_repository()
    written = read_written(entry_files(repository, "tasks"))
    rows = [
        (
            *(name, written[one.entry].path.stem, one.title_with({}), one.problem.typed()),
            *(one.budget.initial.size, one.budget.rounds, one.budget.q, one.entry),
        )
        for name, one in load_methods_and_tasks(repository / "config").tasks.items()
    ]
    return Listing(["task", "paper", "title", "problem", "initial", "rounds", "q", "entry"], rows)


def _studies() -> list[Study]:
    repository = find_repository()
    return [load_study(repository / STUDIES / f"{name}.yaml") for name in study_names(repository)]


def reference_results(study: Study, name: str) -> Path | None:
    """Return where an experiment has reference results, for those of the atlas its edition; None without any."""
    if study.study == ATLAS.name:
        return ATLAS if in_atlas(study.experiments[name], own_or_shipped(ATLAS)) else None
    return REFERENCE / name if own_or_shipped(REFERENCE / name).is_dir() else None


def experiments() -> "pd.DataFrame":
    """Return the experiments of all studies.

    Returns:
        A row for each experiment: `experiment`, its `paper`, its `title`, the `presets` that have it, the number of
        `seeds` at the paper's settings, the `claims` that it is run for, and whether it has `reference` results.
    """
    return listed_experiments().frame()


def listed_experiments() -> Listing:
    """Return the rows of `experiments`."""
    rows = [
        (
            *(name, study.study, one.title),
            ", ".join(preset for preset in get_args(Preset) if getattr(one, preset) is not None),
            one.seeds,
            ", ".join(claim for claim, about in study.claims.items() if name in about.all_experiments),
            reference_results(study, name) is not None,
        )
        for study in _studies()
        for name, one in study.experiments.items()
    ]
    return Listing(["experiment", "paper", "title", "presets", "seeds", "claims", "reference"], rows)


def claims() -> "pd.DataFrame":
    """Return the claims of the papers, with our verdicts on them.

    Returns:
        A row for each claim: `claim`, its `paper`, the `statement`, our `verdict`, whether it is `in_doubt`, what was
        `measured`, the `estimate` with its 95% interval, `seeds` (`10 to 50` if the parts differ), `paper_seeds` (0 if
        the paper does not state it), and the `experiments` that it rests on.

    Examples:
        >>> pb.claims().groupby("paper")["verdict"].value_counts()
    """
    from plumbline.analysis.publish.reference_verdicts import read_claims, read_doubts
    from plumbline.analysis.publish.verdict_tables import verdict_rows

    path = own_or_shipped(REFERENCE / CLAIMS)
    return verdict_rows(_studies(), read_claims(path), read_doubts(path))


def claim_names() -> list[str]:
    """Return the names of the claims of all studies."""
    return [name for study in _studies() for name in study.claims]


def class_names(kind: str) -> list[str]:
    """Return the names of the registered classes of a kind of `KINDS`; raise PlumblineError of another kind."""
    return [name for _, name, _, _ in _classes(kind)]


@checked
def classes(kind: str = "", name: str = "") -> "pd.DataFrame":
    """Return the registered classes, or the options of one.

    Args:
        kind: method, problem, design, trainer, illustration, figure, table, metric or statistic; all if empty.
        name: the name of a class of this kind, which must be given too.

    Returns:
        A row for each class: `kind`, `name`, `summary` and `module`. For a single class, a row for each option:
        `option`, its `default`, its possible `values`, and a `description` if there is one.

    Raises:
        PlumblineError: an unknown kind or name, with the nearest one, or a name without a kind.

    Examples:
        >>> pb.classes("method")
        >>> pb.classes("method", "ucb")
    """
    import pandas as pd

    if not name:
        rows = [row for one in ([kind] if kind else KINDS) for row in _classes(one)]
        return pd.DataFrame(rows, columns=["kind", "name", "summary", "module"])
    if not kind:
        raise PlumblineError(f"no kind of {shown(name)}: give one of {', '.join(KINDS)}")
    if kind not in get_args(Kind):
        known = class_names(kind)
        if name not in known:
            raise unknown(kind, name, known, f"plumbline classes {kind}")
        return pd.DataFrame(columns=Option._fields)
    options = catalogue().find(kind, name).options  # type: ignore[arg-type]
    return pd.DataFrame(options_of(options, inside=True), columns=Option._fields)


def _classes(kind: str) -> Iterable[tuple[str, str, str, str]]:
    if kind not in KINDS:
        raise unknown("kind of class", kind, KINDS)
    if kind in get_args(Kind):
        return [(kind, one.name, one.summary, one.place) for one in catalogue().listed(kind).values()]  # type: ignore[arg-type]
    if kind == "metric":
        import plumbline.metrics  # noqa: F401 - enters the metrics
        from plumbline.metrics.registry import METRICS

        return [
            (kind, one.name, f"{one.summary}{one.better and f' ({one.better} is better)'}", one.compute.__module__)
            for one in METRICS.values()
        ]
    from plumbline.statistics.over_seeds import STATISTICS

    return [(kind, name, _first_line(function), function.__module__) for name, function in STATISTICS.items()]


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().splitlines()[0].removeprefix("Return ").rstrip(".")
