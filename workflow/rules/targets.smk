import shutil

from snakemake.cli import parse_args

# A target a study: `snakemake conformal` builds its figures and tables, as `snakemake CAL-F3` those of one experiment.
for study in (name for name, one in PLAN.studies.items() if one.experiments):

    rule:
        name:
            study
        input:
            outputs_of(*(name for name in EXPERIMENTS if STUDY_OF[name].study == study)),
        localrule: True


def unknown_target(target):
    """Return what is wrong with a target that is no rule and that no rule makes; None where all is well."""
    path = os.path.relpath(target)
    if workflow.is_rule(target) or any(one.is_producer(path) for one in workflow.rules):
        return None
    if target in PLAN.names():
        PLAN.experiment(target)  # says which presets have it
        return PlumblineError(f"{target} is left out by `experiments` or `without` of the configuration")
    stages = [one.name for one in workflow.rules]
    return unknown("target", target, [*stages, *all_figures(), *all_tables()], "plumbline experiments")


def command_line():
    """Return the arguments of Snakemake, which tells a workflow its targets after it has read its files; None in jobs."""
    started = Path(sys.argv[0])
    asked = workflow.is_main_process and "snakemake" in (started.stem, started.parent.name)
    return parse_args(sys.argv[1:])[1] if asked else None


# Snakemake's own words for a target that there is not have no near name, and its plugin looks for Slurm's commands job
# by job, and waits in between.
if (arguments := command_line()) is not None:
    try:
        for error in filter(None, map(unknown_target, arguments.targets)):
            raise error
        if arguments.executor == "slurm" and not arguments.dryrun and shutil.which("sbatch") is None:
            raise PlumblineError("no Slurm here (no command `sbatch`): run on a login node, or without --profile slurm")
    except PlumblineError as error:
        raise WorkflowError(str(error))
