rule trials:
    """Run some seeds of one method on one task; what the store has already is not run again."""
    input:
        chunk_inputs,
    output:
        f"{TRIALS}/{{task}}/{{method}}/{{chunk}}.parquet",
    log:
        f"{LOGS}/trials/{{task}}/{{method}}/{{chunk}}.log",
    benchmark:
        f"{BENCHMARKS}/trials/{{task}}/{{method}}/{{chunk}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    threads: lambda wildcards: resources_of(wildcards.chunk).cores
    resources:
        gpu=lambda wildcards: resources_of(wildcards.chunk).gpu,
        mem_mb=lambda wildcards, attempt: resources_of(wildcards.chunk).mem_mb * attempt,
        runtime=lambda wildcards, attempt: resources_of(wildcards.chunk).runtime * attempt,
    params:
        chunk=lambda wildcards: CHUNKS[wildcards.chunk].model_dump_json(),
        # Not used by the command: a change of the method's or the problem's code makes Snakemake run the job again.
        code=code_of_chunk,
        # Where a GPU was asked for and none is, as on a laptop, the job takes longer.
        device=lambda wildcards: "auto" if resources_of(wildcards.chunk).gpu else "cpu",
        store=STORE,
        data=DATA,
    shell:
        "export OMP_NUM_THREADS={threads} MKL_NUM_THREADS={threads} OPENBLAS_NUM_THREADS={threads}; "
        "plumbline trials --chunk {params.chunk:q} --store {params.store:q} --data {params.data:q} --device {params.device}"
        " --output {output:q} > {log:q} 2>&1"
