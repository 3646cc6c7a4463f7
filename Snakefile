from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/trials.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/tracking.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        f"{SUMMARY}/report.html",
        f"{SUMMARY}/claims.csv",
        f"{SUMMARY}/tracked.txt",
