rule report_page:
    """Write the study's page: verdicts, figures, tables, failures, provenance."""
    input:
        outputs_of(*EXPERIMENTS),
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
        "plumbline report {params.folder:q} --claims {input.claims:q} --config {params.config:q} --output {output:q}"
        " > {log:q} 2>&1"


localrules:
    report_page,
