"""The command that compares a user's method with the atlas."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.cli.app import (
    NAME_VALUE,
    NAMES,
    USE,
    DataOption,
    StoreOption,
    app,
    file_option,
    path_option,
    places,
    refuse_losses,
    say_written,
)
from plumbline.cli.completing import complete, complete_list
from plumbline.core.errors import PlumblineError

if TYPE_CHECKING:
    from plumbline.api.benching import Bench, Compared, TaskTrials

TasksOption = Annotated[
    str,
    typer.Option(
        help="tasks of the atlas, or tracks such as noisy; default: all",
        metavar=NAMES,
        autocompletion=complete_list("track"),
    ),
]
AgainstOption = Annotated[
    str,
    typer.Option(
        help="methods of the atlas; default: atlas-logei, atlas-ucb, botorch-loop",
        metavar=NAMES,
        autocompletion=complete_list("method"),
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(min=0.1, help="seconds that one call of the method may take, inf: no limit; default: 600"),
]
CsvFile = Annotated[Path | None, file_option("--csv", help="write the differences as CSV")]
LatexFile = Annotated[Path | None, file_option("--latex", help="write a table as LaTeX, with booktabs")]
FigureFile = Annotated[Path | None, file_option("--figure", help="draw the differences: .pdf, .svg or .png")]
PageFile = Annotated[Path | None, file_option("--page", help="write all results as one HTML file")]
ParagraphFile = Annotated[
    Path | None, file_option("--paragraph", help="write a paragraph on what was run, as Markdown with BibTeX")
]


@app.command(rich_help_panel=USE)
def bench(
    target: Annotated[
        str,
        typer.Argument(
            help="my_package.module:MyClass, an entry of config/methods, or a class",
            autocompletion=complete("method", "method class"),
        ),
    ],
    tasks: TasksOption = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="number of seeds; default: as many as the atlas has")] = None,
    against: AgainstOption = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-p", help="an option of the method: model.kernel=rbf", metavar=NAME_VALUE),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="processes that run trials; default: one for each core")
    ] = None,
    timeout: TimeoutOption = None,
    csv: CsvFile = None,
    latex: LatexFile = None,
    figure: FigureFile = None,
    page: PageFile = None,
    paragraph: ParagraphFile = None,
    folder: Annotated[
        Path | None, path_option(help="folder of an edition of the atlas; default: results/atlas")
    ] = None,
    store: StoreOption = None,
    data: DataOption = None,
) -> None:
    """Run your own method on tasks of the atlas, and compare it with the methods there."""
    from plumbline.api.benching import TIMEOUT, Bench
    from plumbline.cli.trial import settings_of

    at = places(store, data=data)
    refuse_losses([path for path in (csv, latex, figure, page, paragraph) if path is not None], folders=[at.store])
    if figure is not None:  # before hours of trials
        from plumbline.analysis.atlas.forest import format_of

        format_of(figure)
    found = Bench(target, tasks, seeds, against, settings_of(option), at.data, folder)
    for note in found.notes:
        print(note)
    done = []
    for one in found.run(at.store, cores, TIMEOUT if timeout is None else timeout):
        done.append(one)
        print(task_line(found, one), flush=True)
    result = found.compared(done)
    result.require_scores()
    write_result(found, result, csv, latex, figure, page, paragraph)  # first: a pipe may end what is printed
    print_result(found, result)
    say_written(csv, latex, figure, page, paragraph)
    if result.failures:
        count = sum(len(one.failures) for one in done)
        first = next(one for one in done if one.failures)
        raise PlumblineError(
            f"{count} of {len(done) * found.seeds} trials failed, the first one on {first.task}: {found.reason(first)}"
        )


def task_line(bench: "Bench", one: "TaskTrials") -> str:
    """Return a line on the trials of a task: the mean score with its rank on it, or why they failed."""
    from plumbline.api.benching import NO_SCORE

    if one.rounds is None:
        return "; ".join(filter(None, [one.refusal, bench.failure(one)]))
    result = bench.compared([one])
    if result.standing.empty:
        return f"{one.task}: {NO_SCORE}"
    own = result.standing.set_index("method").loc[bench.method.name]
    line = f"{one.task}: score {own['score']:.3g}, rank {own['rank']:.0f} of {len(result.standing)}"
    return "; ".join([line, *result.failures])


def print_result(bench: "Bench", result: "Compared") -> None:
    """Print the place among the methods of the atlas, and the differences."""
    from plumbline.analysis.atlas.standing import MEASURED
    from plumbline.analysis.comparisons.numbers import interval, probability
    from plumbline.analysis.publish.bench_page import mean_over, terms
    from plumbline.cli.tables import print_table, print_words, written

    names = ["rank", *MEASURED.values()]
    rows = [
        [str(row["method"]), f"{row['rank']} {interval(row['rank_low'], row['rank_high'])}".strip()]
        + [written(row[name], 3) for name in MEASURED]
        for row in result.standing.to_dict("records")
        if row["method"] in (bench.method.name, *bench.against) or row["rank"] == 1
    ]
    count = result.own.loc[result.own["score"].notna(), "task"].nunique()
    print()
    print_table(
        ["method", *names], rows, names, f"of {len(result.standing)} methods that have all tasks ({count}); 0 is best"
    )
    for other in bench.against:
        here = [one for one in result.differences if one.against == other]
        cells = [
            [
                one.task,
                mean_over(one),
                f"{written(one.difference, 3)} {interval(one.low, one.high)}".strip(),
                probability(one.p),
                probability(one.p_corrected),
            ]
            for one in here
        ]
        numbers = ["mean over", "difference", "p", "Holm"]
        print()
        print_table(["task", *numbers], cells, numbers, f"score of {bench.method.name} minus {other}'s")
    print()
    for line in terms(result.standing, result.differences, len(bench.against)):
        print_words(line)


def write_result(
    bench: "Bench",
    result: "Compared",
    csv: Path | None,
    latex: Path | None,
    figure: Path | None,
    page: Path | None,
    paragraph: Path | None,
) -> None:
    """Write the files that were asked for."""
    from plumbline.api import bench_files
    from plumbline.core.files import atomic, write_text

    if csv is not None:
        with atomic(csv) as part:
            result.frame().to_csv(part, index=False)
    if latex is not None:
        write_text(latex, bench_files.latex(bench, result))
    if figure is not None:
        from plumbline.analysis.atlas.forest import format_of

        with atomic(figure) as part:
            part.write_bytes(bench_files.forest(bench, result, format_of(figure)))
    if page is not None:
        write_text(page, bench_files.page(bench, result))
    if paragraph is not None:
        write_text(paragraph, bench_files.paragraph(bench, result))
