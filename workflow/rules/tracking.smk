rule track:
    """Import finished trials into MLflow. The only writer of its database, which is no declared output: it grows."""
    input:
        chunks=list(PATHS.values()),
        report=f"{SUMMARY}/report.html",
    output:
        f"{SUMMARY}/tracked.txt",
    log:
        f"{LOGS}/{SUMMARY_NAME}/track.log",
    benchmark:
        f"{BENCHMARKS}/{SUMMARY_NAME}/track.tsv"
    conda:
        "../../envs/plumbline.yaml"
    params:
        # All of the preset, whichever experiments this run builds: what was imported stays, and so does its summary.
        config=config_json("chunk", "job"),
        trials=lambda wildcards: TRIALS,
        folder=lambda wildcards: OUT,
        store=STORE,
        data=DATA,
        benchmarks=f"{BENCHMARKS}/trials",
        uri=f"sqlite:///{RESULTS}/mlflow.db",
    shell:
        "own={params.uri:q}; "
        'MLFLOW_TRACKING_URI="${{MLFLOW_TRACKING_URI:-$own}}" plumbline track --trials {params.trials:q}'
        " --artifacts {params.folder:q} --config {params.config:q} --store {params.store:q} --data {params.data:q}"
        " --benchmarks {params.benchmarks:q}"
        " > {output:q} 2> {log:q}"


localrules:
    track,
