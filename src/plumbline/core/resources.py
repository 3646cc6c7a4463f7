"""Resources that jobs request."""

from pydantic import Field

from plumbline.core.options import Options


class Resources(Options):
    """Resources that a job requests.

    Attributes:
        gpu: number of GPUs.
        cores: number of threads, also torch's.
        mem_mb: memory in MB, which grows with each retry.
        runtime: minutes, which grow with each retry.
        seeds_per_job: greatest number of seeds in one job; null for the run's `chunk`.
    """

    gpu: int = Field(default=0, ge=0, le=8)
    cores: int = Field(default=1, ge=1, le=256)
    mem_mb: int = Field(default=2_000, ge=100)
    runtime: int = Field(default=60, ge=1)
    seeds_per_job: int | None = Field(default=None, ge=1)


def greater(*needs: Resources) -> Resources:
    """Return the largest of each requested resource, and the fewest seeds; unset fields count as not requested."""
    merged: dict[str, int] = {}
    for name in Resources.model_fields:
        values = [value for one in needs if name in one.model_fields_set and (value := getattr(one, name)) is not None]
        if values:
            merged[name] = min(values) if name == "seeds_per_job" else max(values)
    return Resources(**merged)
