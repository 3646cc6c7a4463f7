"""The configuration of a run: which preset, which studies, on what data."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, PrivateAttr

from plumbline.core.errors import PlumblineError
from plumbline.core.nested import merge
from plumbline.core.options import Options, parse
from plumbline.core.strict_yaml import read_yaml
from plumbline.registry.references import short_digest
from plumbline.study.claims import Names
from plumbline.study.experiments import Preset

VISIBLE = r"\S"
"""A path that is more than blanks: an empty one would be the root of the file system, once it is joined with others."""

Folder = Annotated[str, Field(pattern=VISIBLE), AfterValidator(lambda path: str(Path(path)))]
"""A folder in one spelling, `out` for `./out/`: rules compare names of files letter by letter."""


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
        default=None, pattern=VISIBLE, description="a folder of downloads; PLUMBLINE_MIRROR is used if this is null"
    )
    studies: Names = Field(min_length=1, description="names of files in config/studies")
    experiments: Names = Field(default=(), description="build only these; empty for all of the preset")
    without: Names = Field(
        default=(), description="leave these out, for instance where their data cannot be had; the rest is whole"
    )
    chunk: PositiveInt | None = Field(
        default=None, description="at most so many seeds a job; null for all that the method's resources allow"
    )
    job: Literal["chunk", "task"] = Field(
        default="chunk",
        description="what a job of trials runs: a chunk (seeds of one method on one task), or all chunks of a task in "
        "an experiment, one after another in one process",
    )
    lockstep: PositiveInt = Field(
        default=1,
        description="greatest number of seeds of a job that take steps jointly, where a method can: faster, with the "
        "same numbers but for the seconds; leave it at 1 where seconds are compared",
    )
    results: Folder = Field(default="results", description="the folder of records, figures, tables and reports")
    datasets: Folder = Field(default="data", description="the folder of downloads, features and trained models")
    allow_incomplete: bool = Field(default=False, description="draw figures although trials failed, and say so in them")
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    def source(self, field: str, otherwise: str) -> str:
        """Name the file that gave `field` its value, and `otherwise` where none is known."""
        return self._files.get(field, otherwise)


def read_config(*layers: Path | Mapping[str, Any]) -> Config:
    """Merge YAML files and mappings into a configuration, later over earlier ones, as Snakemake's --configfile does.

    Mappings are merged at any depth: of `instead`, a later file replaces those that it names.

    Raises:
        PlumblineError: a mistake, with the file that it is in; a mapping is called `--config`.
    """
    merged: dict[str, Any] = {}
    files: dict[str, str] = {}
    sources = [str(layer) if isinstance(layer, Path) else "--config" for layer in layers]
    for layer, source in zip(layers, sources, strict=True):
        content = (read_yaml(layer) or {}) if isinstance(layer, Path) else layer
        if not isinstance(content, Mapping):
            raise PlumblineError(f"{source}: a configuration is a mapping of names to values")
        merged = merge(merged, dict(content))
        files |= dict.fromkeys(content, source)
        parse(Config, {"studies": ["of a later one"], **merged}, source)
    if "studies" not in merged:
        raise PlumblineError(
            f"{', '.join(sources)}: there are no `studies`: a preset comes after the configuration that it changes, as "
            "in config/config.yaml,config/desk.yaml"
        )
    config = parse(Config, merged, ", ".join(sources))
    config._files.update(files)
    return config


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
