# The workflow itself is in workflow/, where Snakemake's catalogue and `snakemake` in other repositories look for it. This
# file lets `snakemake --cores all` run from here.


include: "workflow/Snakefile"
