rule model:
    """Train a model that problems or methods read."""
    input:
        model_inputs,
    output:
        f"{DATA}/models/{{model}}.npz",
    log:
        f"{LOGS}/models/{{model}}.log",
    benchmark:
        f"{BENCHMARKS}/models/{{model}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        data=lambda wildcards, output: Path(output[0]).parents[1],
        # Not used by the command: a change of the entry or of the code makes Snakemake train the model again.
        entry=lambda wildcards: PLAN.models[wildcards.model].model_dump(),
        code=lambda wildcards: trainer_digest(PLAN.models[wildcards.model].trainer),
    shell:
        "plumbline model {wildcards.model} --data {params.data} --output {output} > {log} 2>&1"
