# As with trials, one process for what one alone would start many for: here a study's, with `job: task`.
for job, names in illustration_jobs().items():

    rule:
        name:
            f"illustrate-{job}"
        output:
            [illustration_path(name) for name in names],
        log:
            f"{LOGS}/{PLAN.config.preset}/illustrations/{job}.log",
        benchmark:
            f"{BENCHMARKS}/{PLAN.config.preset}/illustrations/{job}.tsv"
        conda:
            "../../envs/plumbline.yaml"
        threads: 1
        params:
            words=illustration_words(names),
            config=config_of(names[0]),
            # Not used by the command: a change of an illustration or of its code makes Snakemake run the job again.
            illustrations=illustrated_with(names),
        shell:
            "plumbline illustrate {params.words:q} --config {params.config:q} > {log:q} 2>&1"


# One process an experiment: it collects, draws and writes in less time than three take to start. Not one a study: Snakemake
# deletes all outputs of a job that failed, and an experiment that is asked for alone would wait for the trials of all.
for experiment in EXPERIMENTS:

    rule:
        name:
            experiment
        input:
            chunks=chunks_of(experiment),
            illustration=illustration_of(experiment),
        output:
            **evidence_of(experiment),
            **figure_of(experiment),
            **table_of(experiment),
        log:
            f"{LOGS}/{PLAN.config.preset}/experiments/{experiment}.log",
        benchmark:
            f"{BENCHMARKS}/{PLAN.config.preset}/experiments/{experiment}.tsv"
        localrule: True
        conda:
            "../../envs/plumbline.yaml"
        params:
            experiment=experiment,
            config=config_of(experiment, "chunk", "allow_incomplete"),
            trials=lambda wildcards: TRIALS,
            folder=lambda wildcards: OUT,
            store=STORE,
            # Not used by the command: what makes Snakemake collect, draw and write again.
            settings=EXPERIMENTS[experiment].model_dump(mode="json"),
            words=words_of(experiment),
        shell:
            "plumbline outputs {params.experiment} --trials {params.trials:q} --folder {params.folder:q}"
            " --config {params.config:q} --store {params.store:q} > {log:q} 2>&1"


rule claims:
    """Give a verdict on every claim."""
    input:
        claimed_records(),
    output:
        report(
            f"{SUMMARY}/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"experiment": "all", "kind": "verdicts"},
        ),
    log:
        f"{LOGS}/{SUMMARY_NAME}/claims.log",
    benchmark:
        f"{BENCHMARKS}/{SUMMARY_NAME}/claims.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=config_json("experiments", "without"),
        folder=lambda wildcards: OUT,
        # Not used by the command: what makes Snakemake judge again.
        claims=[study.model_dump(mode="json")["claims"] for study in PLAN.studies.values()],
    shell:
        "plumbline claims {params.folder:q} --config {params.config:q} --output {output:q} > {log:q} 2>&1"


localrules:
    claims,
