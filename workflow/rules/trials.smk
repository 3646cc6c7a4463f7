rule trials:
    """Run some seeds of one method on one problem; what the store has already is not run again."""
    input:
        chunk_features,
    output:
        f"{RESULTS}/trials/{{problem}}/{{method}}/{{chunk}}.parquet",
    log:
        f"{LOGS}/trials/{{problem}}/{{method}}/{{chunk}}.log",
    benchmark:
        f"{BENCHMARKS}/trials/{{problem}}/{{method}}/{{chunk}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        gpu=lambda wildcards: RESOURCES[wildcards.chunk].gpu,
        mem_mb=lambda wildcards, attempt: RESOURCES[wildcards.chunk].mem_mb * attempt,
        runtime=lambda wildcards, attempt: RESOURCES[wildcards.chunk].runtime * attempt,
    params:
        chunk=lambda wildcards: CHUNKS[wildcards.chunk].model_dump_json(),
        # Not used by the command: a change of the method's or the problem's code makes Snakemake run the job again.
        code=lambda wildcards: code_digest(CHUNKS[wildcards.chunk].spec),
        store=STORE,
        data=DATA,
    shell:
        "plumbline trials --chunk {params.chunk:q} --store {params.store} --data {params.data} --output {output}"
        " > {log} 2>&1"
