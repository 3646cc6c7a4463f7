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
    threads: lambda wildcards: PLAN.models[wildcards.model].resources.cores
    resources:
        gpu=lambda wildcards: PLAN.models[wildcards.model].resources.gpu,
        mem_mb=lambda wildcards, attempt: PLAN.models[wildcards.model].resources.mem_mb * attempt,
        runtime=lambda wildcards, attempt: PLAN.models[wildcards.model].resources.runtime * attempt,
    params:
        data=lambda wildcards, output: Path(output[0]).parents[1],
        # Not used by the command: a change of the entry or of the code makes Snakemake train the model again.
        entry=lambda wildcards: PLAN.models[wildcards.model].model_dump(exclude={"resources", "hours"}),
        code=lambda wildcards: trainer_digest(PLAN.models[wildcards.model].trainer),
        device=lambda wildcards: "auto" if PLAN.models[wildcards.model].resources.gpu else "cpu",
    shell:
        "plumbline model {wildcards.model:q} --data {params.data:q} --device {params.device} --jobs {threads}"
        " --output {output:q} > {log:q} 2>&1"
