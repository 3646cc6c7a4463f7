# The workflow itself is workflow/Snakefile, where Snakemake's catalogue looks for it; this file lets
# `snakemake --cores all` run from here. An included file does not set the default target.


include: "workflow/Snakefile"


workflow.default_target = "all"
