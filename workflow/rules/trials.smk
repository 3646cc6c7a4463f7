# A job runs one chunk or, with `job: task`, the chunks of a task in one process; Snakemake's groups start a process for each.
# Either way each chunk has a file of its own, and what the store has already is not run again.
RUN_TRIALS = (
    "export OMP_NUM_THREADS={threads} MKL_NUM_THREADS={threads} OPENBLAS_NUM_THREADS={threads}; "
    "plumbline trials {params.chunks:q} --store {params.store:q} --data {params.data:q} --device {params.device} --lockstep {params.lockstep}"
    " > {log:q} 2>&1"
)

if PLAN.config.job == "chunk":

    rule trials:
        """Run some seeds of one method on one task."""
        input:
            lambda wildcards: inputs_of([CHUNKS[wildcards.chunk]]),
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
            chunks=lambda wildcards: chunk_options([CHUNKS[wildcards.chunk]]),
            # Not used by the command: a change of the method's or the problem's code makes Snakemake run the job again.
            code=lambda wildcards: code_of([CHUNKS[wildcards.chunk]]),
            device=lambda wildcards: device_of(wildcards.chunk),
            lockstep=LOCKSTEP,
            store=STORE,
            data=DATA,
        shell:
            RUN_TRIALS

else:
    # No wildcard rule has a number of outputs that depends on the job, hence a rule a job.
    for job, chunks in PLAN.jobs_by_task().items():
        needs = resources_of(chunks[0].id)

        rule:
            name:
                f"trials-{job}"
            input:
                inputs_of(chunks),
            output:
                [PATHS[chunk.id] for chunk in chunks],
            log:
                f"{LOGS}/trials/{job}.log",
            benchmark:
                f"{BENCHMARKS}/trials/{job}.tsv"
            conda:
                "../../envs/plumbline.yaml"
            threads: needs.cores
            resources:
                gpu=needs.gpu,
                mem_mb=growing(needs.mem_mb),
                runtime=growing(needs.runtime * len(chunks)),
            params:
                chunks=chunk_options(chunks),
                # Not used by the command, as above.
                code=code_of(chunks),
                device=device_of(chunks[0].id),
                lockstep=LOCKSTEP,
                store=STORE,
                data=lambda wildcards: DATA,
            shell:
                RUN_TRIALS
