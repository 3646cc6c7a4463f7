rule report_page:
    """Write the study's page: verdicts, figures, tables, failures, provenance."""
    input:
        figures=all_figures(),
        tables=all_tables(),
        claims=f"{OUT}/claims.csv",
    output:
        f"{OUT}/report.html",
    log:
        f"{LOGS}/{PLAN.config.preset}/report.log",
    benchmark:
        f"{BENCHMARKS}/{PLAN.config.preset}/report.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=CONFIG_JSON,
        folder=lambda wildcards, input: Path(input.claims).parent,
    shell:
        "plumbline report {params.folder} --config {params.config:q} --output {output} > {log} 2>&1"


localrules:
    report_page,


# A target a study that has experiments: `snakemake conformal` builds its figures and tables and no other's.
for study in (name for name, one in PLAN.studies.items() if one.experiments):

    rule:
        name:
            study
        input:
            study_outputs(study),
        localrule: True
