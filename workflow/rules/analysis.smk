rule collect:
    """Put the records of an experiment together; refuse a grid with holes."""
    input:
        experiment_chunks,
    output:
        records=f"{OUT}/records/{{experiment}}.parquet",
        snapshots=f"{OUT}/snapshots/{{experiment}}.parquet",
    log:
        f"{LOGS}/{PLAN.config.preset}/collect/{{experiment}}.log",
    benchmark:
        f"{BENCHMARKS}/{PLAN.config.preset}/collect/{{experiment}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=lambda wildcards: config_of(wildcards.experiment, "chunk", "allow_incomplete"),
        trials=lambda wildcards: TRIALS,
        store=STORE,
    shell:
        "plumbline collect {wildcards.experiment} --trials {params.trials:q} --config {params.config:q}"
        " --store {params.store:q} --output {output.records:q} --snapshots {output.snapshots:q} > {log:q} 2>&1"


ILLUSTRATE = "plumbline illustrate {params.words:q} --config {params.config:q} > {log:q} 2>&1"

if PLAN.config.job == "chunk":

    rule illustrate:
        """Compute what the figure of an experiment shows without any trial."""
        output:
            f"{OUT}/illustrations/{{experiment}}.parquet",
        log:
            f"{LOGS}/{PLAN.config.preset}/illustrations/{{experiment}}.log",
        benchmark:
            f"{BENCHMARKS}/{PLAN.config.preset}/illustrations/{{experiment}}.tsv"
        conda:
            "../../envs/plumbline.yaml"
        threads: 1
        params:
            words=lambda wildcards: illustration_words([wildcards.experiment]),
            config=lambda wildcards: config_of(wildcards.experiment),
            # Not used by the command: a change of the illustration or of its code makes Snakemake run the job again.
            illustrations=lambda wildcards: illustrated_with([wildcards.experiment]),
        shell:
            ILLUSTRATE

else:
    # As with trials, one process for what one alone would start many for: here a study's.
    for study, names in illustrated_by_study().items():

        rule:
            name:
                f"illustrate-{study}"
            output:
                [illustration_path(name) for name in names],
            log:
                f"{LOGS}/{PLAN.config.preset}/illustrations/{study}.log",
            benchmark:
                f"{BENCHMARKS}/{PLAN.config.preset}/illustrations/{study}.tsv"
            conda:
                "../../envs/plumbline.yaml"
            threads: 1
            params:
                words=illustration_words(names),
                config=config_json(studies=[study]),
                # Not used by the command, as above.
                illustrations=illustrated_with(names),
            shell:
                ILLUSTRATE


rule figure:
    """Draw the figure of an experiment."""
    input:
        records=experiment_records,
        snapshots=experiment_snapshots,
        illustration=experiment_illustration,
    output:
        svg=report(
            f"{OUT}/figures/{{experiment}}.svg",
            caption="../report/figure.rst",
            category=study_title,
            subcategory=title_of,
            labels={"experiment": "{experiment}", "kind": "figure"},
        ),
        png=f"{OUT}/figures/{{experiment}}.png",
    log:
        f"{LOGS}/{PLAN.config.preset}/figures/{{experiment}}.log",
    benchmark:
        f"{BENCHMARKS}/{PLAN.config.preset}/figures/{{experiment}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=lambda wildcards: config_of(wildcards.experiment),
        # Not used by the command: what makes Snakemake draw again.
        experiment=lambda wildcards: EXPERIMENTS[wildcards.experiment].model_dump(mode="json"),
        words=lambda wildcards: words_of(wildcards.experiment),
        evidence=lambda wildcards, input: named_options(input),
    shell:
        "plumbline figure {wildcards.experiment} --config {params.config:q} {params.evidence:q}"
        " --output {output.svg:q} --output {output.png:q} > {log:q} 2>&1"


rule table:
    """Write the table of an experiment."""
    input:
        experiment_records,
    output:
        report(
            f"{OUT}/tables/{{experiment}}.csv",
            caption="../report/table.rst",
            category=study_title,
            subcategory=title_of,
            labels={"experiment": "{experiment}", "kind": "table"},
        ),
    log:
        f"{LOGS}/{PLAN.config.preset}/tables/{{experiment}}.log",
    benchmark:
        f"{BENCHMARKS}/{PLAN.config.preset}/tables/{{experiment}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=lambda wildcards: config_of(wildcards.experiment),
        # Not used by the command: what makes Snakemake write again.
        experiment=lambda wildcards: EXPERIMENTS[wildcards.experiment].model_dump(mode="json"),
        records=lambda wildcards, input: option("--records", *input),
    shell:
        "plumbline table {wildcards.experiment} --config {params.config:q} {params.records:q} --output {output:q}"
        " > {log:q} 2>&1"


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
    collect,
    figure,
    table,
    claims,
