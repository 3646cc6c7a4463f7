rule features:
    """Turn a dataset into a table of features and targets."""
    input:
        raw_file,
    output:
        f"{DATA}/features/{{dataset}}.parquet",
    log:
        f"{LOGS}/features/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/features/{{dataset}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        raw=lambda wildcards, input: option("--raw", *input),
        # Not used by the command: a change of the entry or of the code makes Snakemake build the table again.
        entry=lambda wildcards: PLAN.datasets[wildcards.dataset].model_dump(),
        code=source_digest("plumbline.data.features"),
    shell:
        "plumbline features {wildcards.dataset:q} {params.raw:q} --jobs {threads} --output {output:q} > {log:q} 2>&1"
