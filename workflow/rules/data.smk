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
        mirror=f"--mirror {PLAN.config.mirror}" if PLAN.config.mirror else "",
    shell:
        "plumbline fetch {params.dataset} --directory $(dirname {output}) {params.mirror} > {log} 2>&1"


localrules:
    fetch,
