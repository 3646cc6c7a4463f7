rule report_page:
    """Write the study's page: verdicts, figures, tables, failures, provenance."""
    input:
        figures=all_figures(),
        tables=all_tables(),
        claims=f"{SUMMARY}/claims.csv",
    output:
        f"{SUMMARY}/report.html",
    log:
        f"{LOGS}/{SUMMARY_NAME}/report.log",
    benchmark:
        f"{BENCHMARKS}/{SUMMARY_NAME}/report.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=config_json("experiments", "without"),
        folder=lambda wildcards: OUT,
    shell:
        "plumbline report {params.folder} --claims {input.claims} --config {params.config:q} --output {output} > {log} 2>&1"


localrules:
    report_page,


# A target a study and one an experiment: `snakemake conformal` and `snakemake CAL-F3` build their figures and tables.
for study in (name for name, one in PLAN.studies.items() if one.experiments):

    rule:
        name:
            study
        input:
            outputs_of(*(name for name in EXPERIMENTS if STUDIES[name].study == study)),
        localrule: True


for experiment in EXPERIMENTS:

    rule:
        name:
            experiment
        input:
            outputs_of(experiment),
        localrule: True
