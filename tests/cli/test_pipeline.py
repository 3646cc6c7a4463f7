"""The commands that the workflow calls."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as compute
import pytest
from command_line import check_one_line

from plumbline.methods.baselines import SobolSearch
from plumbline.registry.catalogue import catalogue
from plumbline.store import records
from plumbline.store.provenance import METADATA_KEY
from plumbline.store.spec import Chunk, TrialSpec
from plumbline.study.legends import Legend

Make = Callable[..., TrialSpec]
Run = Callable[..., tuple[int, str, str]]


def test_commands_without_their_files(run: Run, tiny: Path) -> None:
    none = ("--records", "none.parquet", "--snapshots", "none.parquet")
    (tiny / "results/quick").mkdir(parents=True)
    check_one_line(run("figure", "TINY-F1", *none, "-o", "x.svg"), "no records at none.parquet: run the trials first")
    check_one_line(run("table", "TINY-T1", "--records", "none.parquet", "-o", "x.csv"), "no records at none.parquet")
    check_one_line(run("claims", "results/quick", "-o", "x.csv"), "no records at results/quick/records/TINY-T1.parquet")
    outputs = ("-o", "x.parquet", "--snapshots", "y.parquet")
    check_one_line(run("collect", "TINY-T1", *outputs), "no records at results/trials/branin/dice/")
    check_one_line(run("report", "results/quick", "-o", "x.html"), "no table of claims at results/quick/claims.csv")
    check_one_line(run("fetch", "zinc250", "--catalogue", "config/datasets.yaml"), "unknown dataset 'zinc250'")
    assert not list(tiny.glob("x.*"))


@pytest.mark.usefixtures("tiny")
def test_tracked_runs_have_the_colours_of_figures(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("plumbline.tracking.importing.import_trials", lambda *arguments: asked.extend(arguments))
    assert run("track", "--artifacts", ".")[0] == 0
    experiment, colours = asked[0].experiments["TINY-T1"], asked[8]
    legends = {
        "ucb": Legend(label="UCB", colour="#336699"),
        "ucb-code": Legend(label="UCB, code", colour="#336699", dashed=True),
    }
    assert colours(replace(experiment, legends=legends)) == {"ucb": "#336699", "ucb-code": "#99b2cc"}


@pytest.mark.slow
def test_what_is_asked_of_nothing_is_no_success(run: Run, tiny: Path) -> None:
    """Neither a traceback nor a quiet success where nothing was done."""
    (tiny / "README.md").write_text("# Title\n\nOne, two\nthree, four, five\n")
    (tiny / "results/quick").mkdir(parents=True)
    outputs = ("-o", "x.parquet", "--snapshots", "x.s.parquet")
    for arguments, part in (
        (("verdicts", "README.md"), "README.md is no table of claims"),
        (("verdicts", "none.csv"), "no table of claims at none.csv"),
        (("figure", "TINY-I1", "-o", "x.foo"), "unknown format of x.foo 'foo': allowed: "),
        (("figure", "TINY-F1", "-o", "x.svg"), "TINY-F1 rests on trials: give its collected records (--records)"),
        (("table", "TINY-T1", "-o", "x.csv"), "TINY-T1 rests on trials: give its collected records (--records)"),
        (("claims", "-o", "x.csv", "README.md"), "no folder of results at README.md"),
        (("claims", "-o", "x.csv", "nope"), "no folder of results at nope"),
        (("report", "-o", "x.html", "nope"), "no folder of results at nope"),
        (("reference", "TINY-T1", "--folder", "nope"), "no folder of results at nope"),
        (("reference", "TINY-T1"), "name the results to add: --folder results/<preset>"),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1"),
            "no runs of TINY-T1: run it, and name its results as `folder`: results/<preset>",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T9"),
            "unknown experiment 'TINY-T9': did you mean 'TINY-T1'",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1", "--folder", "nope"),
            "no folder of results at nope",
        ),
        (
            ("compare", "--methods", "dice,bound", "--experiment", "TINY-T1", "--folder", "results/quick"),
            "no records at results/quick/records/TINY-T1",
        ),
        (("failures", "--store", "nope"), "no folder of trials at nope: `snakemake` and `plumbline trial` make one"),
        (("track", "--artifacts", "nope"), "no folder of results at nope"),
        (
            ("track", "--artifacts", "results/quick"),
            "no records of any job in results/trials: run the trials",
        ),
        (("collect", "TINY-I1", *outputs), "TINY-I1 has no trials in preset 'quick'"),
        (("outputs", "TINY-T1", "--folder", "x.results"), "no records at results/trials/branin/dice/"),
        (("outputs", "TINY-I1", "--folder", "x.results"), "no records at x.results/illustrations/TINY-I1.parquet"),
        (("illustrate", "TINY-T1", "-o", "x.parquet"), "TINY-T1 has no illustration"),
    ):
        check_one_line(run(*arguments), part)
    assert not list(tiny.glob("x.*"))
    assert not (tiny / "results/mlflow.db").exists()


COLLECT = (
    "collect",
    "TINY-F1",
    "-o",
    "results/quick/records/TINY-F1.parquet",
    "--snapshots",
    "s/TINY-F1.parquet",
)


SHOWN = ("--records", "results/quick/records/TINY-F1.parquet", "--snapshots", "s/TINY-F1.parquet")


@pytest.mark.slow
def test_what_an_experiment_does_not_have(run: Run, collected: Path) -> None:
    assert run(*COLLECT)[0] == 0
    check_one_line(run("figure", "TINY-F2", *SHOWN, "-o", "x.svg"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-T1", *SHOWN, "-o", "x.svg"), "TINY-T1 has no figure")
    check_one_line(run("table", "TINY-F1", "-o", "x.csv"), "TINY-F1 has no table")
    check_one_line(run("figure", "TINY-F9", *SHOWN, "-o", "x.svg"), "unknown experiment 'TINY-F9': did you mean")


@pytest.mark.slow
def test_an_illustration_is_computed_and_drawn(run: Run, tiny: Path) -> None:
    path, svg = tiny / "i/TINY-I1.parquet", tiny / "f/TINY-I1.svg"
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    first = path.read_bytes()
    both = run("illustrate", "TINY-I1", "TINY-I1", "-o", path, "-o", tiny / "i/again.parquet")
    assert both[0] == 0
    assert (tiny / "i/again.parquet").read_bytes() == first, "whatever is computed before it in the process"
    words = "name an --output for each experiment (got 2 for 1)"
    check_one_line(run("illustrate", "TINY-I1", "-o", path, "-o", "x.parquet"), words)
    about = json.loads(records.read_table(path).schema.metadata[METADATA_KEY.encode()])
    assert {"commit", "packages", "host"} <= about.keys()
    assert run("illustrate", "TINY-I1", "-o", path)[0] == 0
    assert path.read_bytes() == first, "the same table whenever it is asked for"
    assert run("figure", "TINY-I1", "--illustration", path, "-o", svg)[0] == 0
    assert "illustration" in svg.read_text(encoding="utf-8")
    drawn = ("figure", "TINY-I1", "--illustration", path, "-o", svg)
    for metadata, words in (
        (
            {METADATA_KEY: json.dumps(about | {"experiment": "TINY-I2"})},
            "is the illustration of TINY-I2, not of TINY-I1",
        ),
        ({METADATA_KEY: "{"}, "does not say where it comes from"),
        ({METADATA_KEY: "[]"}, "does not say where it comes from"),
    ):
        records.write_table(path, records.read_table(path).replace_schema_metadata(None), metadata)
        check_one_line(run(*drawn), words)


def test_illustrations_that_are_not_there(run: Run, tiny: Path) -> None:
    check_one_line(run("illustrate", "TINY-F1", "-o", "i.parquet"), "TINY-F1 has no illustration")
    check_one_line(run("illustrate", "TINY-F2", "-o", "i.parquet"), "TINY-F2 is not part of preset 'quick'")
    check_one_line(run("figure", "TINY-I1", "-o", "x.svg"), "TINY-I1 has no trial that ended well")


@pytest.mark.slow
def test_a_grid_with_holes_is_refused(run: Run, collected: Path) -> None:
    (path,) = (collected / "results/trials/branin/dice").iterdir()
    table = records.read_table(path)
    records.write_table(path, table.filter(compute.equal(table["seed"], 1)))
    outputs = ("-o", "r.parquet", "--snapshots", "s.parquet")
    check_one_line(run("collect", "TINY-T1", *outputs), "1 of 2 trials are missing, the first: branin dice seed 0")
    assert not (collected / "r.parquet").exists()


@pytest.mark.slow
def test_aggregation_does_not_import_torch(collected: Path, one_core: dict[str, str]) -> None:
    figure = "results/quick/figures/TINY-F1"
    commands = [
        ["outputs", "TINY-T1", "--folder", "results/quick"],
        [
            "collect",
            "TINY-T1",
            "-o",
            "results/quick/records/TINY-T1.parquet",
            "--snapshots",
            "s/TINY-T1.parquet",
        ],
        list(COLLECT),
        ["figure", "TINY-F1", *SHOWN, "-o", f"{figure}.svg", "-o", f"{figure}.png"],
        ["figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet", "-o", "results/quick/figures/TINY-I1.png"],
        [
            "table",
            "TINY-T1",
            "--records",
            "results/quick/records/TINY-T1.parquet",
            "-o",
            "results/quick/tables/TINY-T1.csv",
        ],
        ["claims", "results/quick", "-o", "results/quick/claims.csv"],
        ["report", "results/quick", "-o", "results/quick/report.html"],
        ["verdicts", "results/quick/claims.csv"],
    ]
    code = f"""
import sys
from plumbline.cli.main import main
for command in {commands!r}:
    sys.argv = ["plumbline", *command]
    main()
    assert "torch" not in sys.modules, command[0]
"""
    assert catalogue().figure, "written down: to build the catalogue takes torch"
    done = subprocess.run(
        [sys.executable, "-c", code], env=one_core, cwd=collected, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("figures/TINY-F1.svg", "tables/TINY-T1.csv", "claims.csv", "report.html"):
        assert (collected / "results/quick" / name).stat().st_size > 0


@pytest.mark.slow
def test_outputs_are_what_its_three_commands_make(run: Run, collected: Path) -> None:
    apart, whole = collected / "apart", collected / "whole"
    assert run("collect", "TINY-T1", "-o", apart / "T1.parquet", "--snapshots", apart / "T1-s.parquet")[0] == 0
    assert run("table", "TINY-T1", "--records", apart / "T1.parquet", "-o", apart / "T1.csv")[0] == 0
    assert run("collect", "TINY-F1", "-o", apart / "F1.parquet", "--snapshots", apart / "F1-s.parquet")[0] == 0
    files = ("--records", apart / "F1.parquet", "--snapshots", apart / "F1-s.parquet")
    assert run("figure", "TINY-F1", *files, "-o", apart / "F1.svg", "-o", apart / "F1.pdf")[0] == 0
    assert run("figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet", "-o", apart / "I1.svg")[0] == 0
    (whole / "illustrations").mkdir(parents=True)
    (whole / "illustrations/TINY-I1.parquet").write_bytes((collected / "i/TINY-I1.parquet").read_bytes())
    for name in ("TINY-T1", "TINY-F1", "TINY-I1"):
        assert run("outputs", name, "--folder", whole) == (0, "", "")
    assert {str(path.relative_to(whole)) for path in snapshot_of(whole)} == {
        "illustrations/TINY-I1.parquet",
        *(f"{kind}/TINY-{name}.parquet" for kind in ("records", "snapshots") for name in ("T1", "F1")),
        *(f"figures/TINY-{name}.{ending}" for name in ("F1", "I1") for ending in ("svg", "pdf", "png")),
        "tables/TINY-T1.csv",
    }
    for one, other in (
        ("T1.parquet", "records/TINY-T1.parquet"),
        ("F1-s.parquet", "snapshots/TINY-F1.parquet"),
        ("T1.csv", "tables/TINY-T1.csv"),
        ("F1.svg", "figures/TINY-F1.svg"),
        ("F1.pdf", "figures/TINY-F1.pdf"),
        ("I1.svg", "figures/TINY-I1.svg"),
    ):
        assert (apart / one).read_bytes() == (whole / other).read_bytes(), other


def test_trials_gather_the_seeds_of_a_chunk(run: Run, cheap_spec: Make, tmp_path: Path) -> None:
    chunk = Chunk(spec=cheap_spec("branin", "random", rounds=1, label="dice"), seeds=(3, 4))
    code, _, _ = run("trials", "--chunk", chunk.model_dump_json(), "-o", "out.parquet")
    assert code == 0
    frame = records.read_table(tmp_path / "out.parquet").to_pandas(maps_as_pydicts="strict")
    assert frame["seed"].unique().tolist() == [3, 4]
    assert frame["method"].unique().tolist() == ["dice"]
    assert "x" not in frame


def test_failures_are_forgotten_where_their_store_is(
    run: Run, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `results: out` the jobs' records lie beside the store, and no longer say that the trial failed."""
    chunk = Chunk(spec=cheap_spec("branin", "sobol", rounds=1), seeds=(0,))
    file, store = chunk.path(Path("out/trials")), ("--store", "out/store")
    with monkeypatch.context() as patch:
        patch.setattr(SobolSearch, "ask", lambda *arguments: 1 / 0)
        assert run("trials", "--chunk", chunk.model_dump_json(), "-o", file, *store)[0] == 0
    assert "1 failure forgotten; 1 job to run again" in run("failures", "--forget", *store)[1]
    assert not file.exists()


@pytest.mark.slow
def test_a_job_of_several_chunks_goes_on_after_failures(
    run: Run, cheap_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [Chunk(spec=cheap_spec("branin", name, rounds=1), seeds=(0, 1)) for name in ("sobol", "random")]
    files = [tmp_path / "out" / f"{number}.parquet" for number in range(2)]
    words = [
        word for one, file in zip(chunks, files, strict=True) for word in ("--chunk", one.model_dump_json(), "-o", file)
    ]
    with monkeypatch.context() as patch:
        patch.setattr(SobolSearch, "ask", lambda *arguments: 1 / 0)
        assert run("trials", *words)[0] == 0
    first, second = (records.read_table(file).to_pandas(maps_as_pydicts="strict") for file in files)
    assert first["error"].notna().groupby(first["seed"]).any().tolist() == [True, True]
    assert second["error"].isna().all()
    content, kept = files[1].read_bytes(), second["key"].unique()
    ends = [tmp_path / "results/store" / key / "records.parquet" for key in kept]
    times = [end.stat().st_mtime_ns for end in ends]
    assert "2 failures forgotten; 1 job to run again" in run("failures", "--forget", "--trials", "out")[1]
    assert run("trials", *words)[0] == 0
    assert records.read_table(files[0])["error"].null_count == len(records.read_table(files[0]))
    assert [end.stat().st_mtime_ns for end in ends] == times, "these are done"
    assert files[1].read_bytes() == content
    check_one_line(run("trials", *words, "-o", "more.parquet"), "name an --output for each --chunk (got 3 for 2)")


def snapshot_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_no_command_writes_over_its_input(run: Run, collected: Path) -> None:
    assert run("collect", "TINY-T1", "-o", "T1.parquet", "--snapshots", "T1-s.parquet")[0] == 0
    assert run("collect", "TINY-F1", "-o", "F1.parquet", "--snapshots", "F1-s.parquet")[0] == 0
    (job,) = (collected / "results/trials/branin").rglob("*.parquet")
    (kept,) = sorted((collected / "results/store").glob("*/records.parquet"))[:1]
    (collected / "F1.svg").symlink_to("F1.parquet")
    before = snapshot_of(collected)
    table, figure = ("table", "TINY-T1", "--records", "T1.parquet"), ("figure", "TINY-F1", "--records", "F1.parquet")
    gather, drawn = ("collect", "TINY-T1", "-o"), ("figure", "TINY-I1", "--illustration", "i/TINY-I1.parquet")
    for arguments, words in (
        ((*table, "-o", "T1.parquet"), "is an input of this command too"),
        ((*table, "-o", "./i/../T1.parquet"), "is an input of this command too"),
        ((*table, "-o", "config/config.yaml"), "is an input of this command too"),
        ((*table, "-o", "config/studies/tiny.yaml"), "is an input of this command too"),
        ((*table, "-o", "i"), "is a folder: name a file"),
        ((*table, "-o", "/dev/null"), "is a device or a pipe: name a file"),
        ((*table, "-o", kept), "where no command may write"),
        ((*figure, "-o", "F1.svg"), "is an input of this command too"),
        ((*figure, "-o", "a.svg", "-o", "./a.svg"), "is named twice"),
        ((*drawn, "-o", "a.png", "-o", "a.png"), "is named twice"),
        ((*gather, "x.parquet", "--snapshots", "x.parquet"), "is named twice"),
        ((*gather, job, "--snapshots", "x.parquet"), "is an input of this command too"),
        ((*gather, "x.parquet", "--snapshots", job), "is an input of this command too"),
        (("illustrate", "TINY-I1", "-o", "config/tasks/tiny.yaml"), "is an input of this command too"),
        (("features", "generated-dna", "-o", "config/datasets.yaml"), "is an input of this command too"),
    ):
        check_one_line(run(*arguments), words)
        assert snapshot_of(collected) == before, arguments


@pytest.mark.slow
def test_records_of_another_experiment_are_refused(run: Run, collected: Path) -> None:
    assert run("collect", "TINY-T1", "-o", "T1.parquet", "--snapshots", "T1-s.parquet")[0] == 0
    assert run("collect", "TINY-F1", "-o", "F1.parquet", "--snapshots", "F1-s.parquet")[0] == 0
    words = "holds records of {}, not of {}'s grid"
    check_one_line(
        run("table", "TINY-T1", "--records", "F1.parquet", "-o", "t.csv"),
        words.format("forrester/bound seed 0", "TINY-T1"),
    )
    check_one_line(
        run("table", "TINY-T1", "--records", "T1-s.parquet", "-o", "t.csv"),
        "T1-s.parquet has no column",
    )


def test_without_an_output_a_model_is_where_trials_look_for_it(
    run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As errors about a file that is not there say it."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("model", "selfies-vae-10k", "--catalogue", root / "config/models.yaml")
    assert code == 0
    assert out.startswith("data/models/selfies-vae-10k.npz: a copy of ")
    assert (tmp_path / "data/models/selfies-vae-10k.npz").is_file()


def test_a_model_that_is_kept_with_the_atlas_is_copied(run: Run, root: Path, tmp_path: Path) -> None:
    kept = root / "results/atlas/models/selfies-vae-10k.npz"
    command = (
        "model",
        "selfies-vae-10k",
        "--catalogue",
        root / "config/models.yaml",
        "-o",
        "models/selfies-vae-10k.npz",
    )
    code, output, _ = run(*command)
    assert code == 0
    assert output == f"models/selfies-vae-10k.npz: a copy of {kept}\n"
    assert (tmp_path / "models/selfies-vae-10k.npz").read_bytes() == kept.read_bytes()
    code, _, errors = run(*command, "--anew")
    assert code == 2
    assert "guacamol-10k" in errors, "a training needs its data"
