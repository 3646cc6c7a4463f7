rule track:
    """Import finished trials into MLflow. The only writer of its database, which is no declared output: it grows."""
    input:
        chunks=[chunk_path(chunk) for chunk in CHUNKS.values()],
        report=f"{OUT}/report.html",
    output:
        f"{OUT}/tracked.txt",
    log:
        f"{LOGS}/{PLAN.config.preset}/track.log",
    benchmark:
        f"{BENCHMARKS}/{PLAN.config.preset}/track.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        config=CONFIG_JSON,
        folder=lambda wildcards, input: Path(input.report).parent,
        store=STORE,
        uri=f"sqlite:///{RESULTS}/mlflow.db",
    shell:
        'MLFLOW_TRACKING_URI="${{MLFLOW_TRACKING_URI:-{params.uri}}}" plumbline track {input.chunks}'
        " --artifacts {params.folder} --config {params.config:q} --store {params.store} > {output} 2> {log}"


localrules:
    track,
