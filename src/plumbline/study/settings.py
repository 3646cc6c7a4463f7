"""The configuration of a run: which preset, which studies, on what data."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse, read_yaml
from plumbline.registry.references import short_digest
from plumbline.study.experiments import Preset


class Config(Options):
    """What `config/*.yaml` and `snakemake --config` may say."""

    preset: Preset = Field(default="quick", description="which of an experiment's scales is run")
    data: Literal["generated", "real"] = Field(
        default="generated", description="real datasets, or the generated stand-ins that need no network"
    )
    instead: dict[str, str] = Field(
        default_factory=dict,
        description="datasets or models that replace others where tasks and methods name them, for instance "
        "{online-lda: online-lda-rebuilt}",
    )
    mirror: str | None = Field(
        default=None, description="a folder of downloads; PLUMBLINE_MIRROR is used if this is null"
    )
    studies: tuple[str, ...] = Field(min_length=1, description="names of files in config/studies")
    experiments: tuple[str, ...] = Field(default=(), description="build only these; empty for all of the preset")
    without: tuple[str, ...] = Field(
        default=(), description="leave these out, for instance where their data cannot be had; the rest is whole"
    )
    chunk: PositiveInt | None = Field(
        default=None, description="at most so many seeds a job; null for all that the method's resources allow"
    )
    results: str = Field(default="results", description="the folder of records, figures, tables and reports")
    datasets: str = Field(default="data", description="the folder of downloads, features and trained models")
    allow_incomplete: bool = Field(default=False, description="draw figures although trials failed, and say so in them")


def read_config(*paths: Path) -> Config:
    """Return the configuration of YAML files, later ones over earlier ones, as Snakemake's --configfile does."""
    merged: dict[str, Any] = {}
    for path in paths:
        content = read_yaml(path) or {}
        if not isinstance(content, dict):
            raise PlumblineError(f"{path}: a configuration is a mapping of names to values")
        merged |= content
    return parse(Config, merged, paths[-1])


LONGEST = 60
"""Letters of a folder's name that is made of those of experiments or studies."""


def summary_folder(config: Config, usual: Collection[str]) -> str:
    """Return the folder of a run's claims and page, below the results.

    A run of some experiments, or without one of the studies that are usually run, has a folder of its own: it leaves
    the page and the claims of all others alone.

    Args:
        config: of the run.
        usual: the studies of config/config.yaml.
    """
    chosen = config.experiments or (config.studies if set(usual) - set(config.studies) else ())
    words = "-".join(chosen)
    only = f"/only-{words if len(words) <= LONGEST else short_digest(words)}" if chosen else ""
    return f"{config.preset}{only}"
