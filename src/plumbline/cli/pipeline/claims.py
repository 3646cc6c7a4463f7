"""The command `plumbline claims`: judge claims."""

from plumbline.cli.app import (
    CONFIG,
    WORKFLOW,
    ConfigOption,
    FolderArgument,
    OutputOption,
    app,
    existing_folder,
    read_plan,
    refuse_losses,
)


@app.command(rich_help_panel=WORKFLOW)
def claims(
    folder: FolderArgument,
    output: OutputOption,
    config: ConfigOption = CONFIG,
) -> None:
    """Compute the verdict on every claim about the experiments of this run, from their collected records."""
    from plumbline.analysis.verdicts.judge import judge_folder
    from plumbline.core.files import atomic

    refuse_losses(output, *folder.glob("records/*"), config=config)
    frame = judge_folder(read_plan(config).run.experiments, existing_folder(folder, "results"))
    with atomic(output) as part:
        frame.to_csv(part, index=False, float_format="%.6g")
