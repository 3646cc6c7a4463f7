"""The configuration of a run: which preset, which studies, on what data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from plumbline.core.errors import PlumblineError
from plumbline.core.options import Options, parse, read_yaml
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


def read_config(*layers: Path | Mapping[str, Any]) -> Config:
    """Merge YAML files and mappings into a configuration, later over earlier ones, as Snakemake's --configfile does."""
    merged: dict[str, Any] = {}
    source: Path | str = "--config"
    for layer in layers:
        source = layer if isinstance(layer, Path) else "--config"
        content = (read_yaml(layer) or {}) if isinstance(layer, Path) else layer
        if not isinstance(content, Mapping):
            raise PlumblineError(f"{source}: a configuration is a mapping of names to values")
        merged |= content
    return parse(Config, merged, source)
