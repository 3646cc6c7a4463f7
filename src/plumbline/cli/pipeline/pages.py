"""The command `plumbline pages`: write the pages of results."""

from pathlib import Path
from typing import Annotated

from plumbline.cli.app import CONFIG, WORKFLOW, ConfigOption, app, existing_folder, path_option, read_plan
from plumbline.core.errors import PlumblineError
from plumbline.core.places import ATLAS, REFERENCE


@app.command(rich_help_panel=WORKFLOW)
def pages(
    templates: Annotated[Path, path_option(help="folder of the templates")] = Path("docs/templates"),
    output: Annotated[Path, path_option("--output", "-o", help="folder of the pages")] = Path("docs"),
    config: ConfigOption = CONFIG,
    reference: Annotated[Path, path_option(help="folder of the reference results")] = REFERENCE,
    atlas: Annotated[Path, path_option(help="folder of the atlas, read if a template uses it")] = ATLAS,
) -> None:
    """Write pages from their templates, with the numbers and figures of the reference results and of the atlas."""
    from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
    from plumbline.analysis.publish.figure_kinds import FigureKinds
    from plumbline.analysis.publish.result_pages import ReferenceNumbers, result_pages, write_result_pages

    if output.resolve() == templates.resolve():
        raise PlumblineError(f"output {output} is the folder of the templates: name another folder")
    plan = read_plan(config)
    studies = list(plan.studies.values())
    asked = (
        ReferenceNumbers(existing_folder(reference, "reference results"), studies),
        AtlasNumbers(atlas, plan.library.labels()),
        FigureKinds(reference, studies),
    )
    made = result_pages(existing_folder(templates, "templates"), *asked)
    written = write_result_pages(made, output)
    print("\n".join(map(str, written)) or "all pages are current")
