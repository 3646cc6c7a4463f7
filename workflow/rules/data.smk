rule fetch:
    """Download a file, or take it from the mirror, and verify its checksum."""
    output:
        f"{DATA}/raw/{{file}}",
    log:
        f"{LOGS}/fetch/{{file}}.log",
    benchmark:
        f"{BENCHMARKS}/fetch/{{file}}.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        dataset=dataset_of_file,
        mirror=option("--mirror", *filter(None, [PLAN.config.mirror])),
        directory=lambda wildcards, output: Path(output[0]).parent,
    shell:
        "plumbline fetch {params.dataset:q} --directory {params.directory:q} {params.mirror:q} > {log:q} 2>&1"


localrules:
    fetch,
