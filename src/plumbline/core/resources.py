"""What jobs ask of a machine."""

from pydantic import Field

from plumbline.core.options import Options


class Resources(Options):
    """What a job asks of a machine.

    Attributes:
        gpu: number of GPUs.
        cores: threads, of torch too.
        mem_mb: memory in MB, which grows with each retry.
        runtime: minutes, which grow with each retry.
        seeds_per_job: at most so many seeds in one job; null for as many as the run's `chunk` says.
    """

    gpu: int = Field(default=0, ge=0, le=8)
    cores: int = Field(default=1, ge=1, le=256)
    mem_mb: int = Field(default=2_000, ge=100)
    runtime: int = Field(default=60, ge=1)
    seeds_per_job: int | None = Field(default=None, ge=1)


def greater(*asked: Resources) -> Resources:
    """Return the most of each that any asks for, and the fewest seeds; defaults count where nobody says anything."""
    merged: dict[str, int] = {}
    for name in Resources.model_fields:
        values = [value for one in asked if name in one.model_fields_set and (value := getattr(one, name)) is not None]
        if values:
            merged[name] = min(values) if name == "seeds_per_job" else max(values)
    return Resources(**merged)
