"""Settings in use beside a document's: AABO, table 1, generated from the configuration."""

from collections.abc import Mapping
from typing import Any, Self

import pandas as pd
from pydantic import Field, model_validator

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import OutputOptions, tables
from plumbline.core.errors import PlumblineError, unknown
from plumbline.core.options import Options
from plumbline.registry.catalogue import catalogue

Json = Mapping[str, Any]


class Setting(Options):
    """One row.

    Attributes:
        name: what the document calls it.
        published: what the document has.
        method: the method that it is an option of, or
        task: the task that it is part of the budget of.
        path: of the option, or of the part of the budget: `training.batch`, `initial.size`.
    """

    name: str
    published: str
    method: str = ""
    task: str = ""
    path: str

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if bool(self.method) == bool(self.task):
            raise ValueError(f"{self.name}: give the `method` or the `task` that it is a setting of")
        return self


class SettingsOptions(OutputOptions):
    """Options of the table.

    Attributes:
        settings: its rows.
    """

    settings: tuple[Setting, ...] = Field(min_length=1)


def option_value(schema: Json, options: Json, path: str, source: str) -> Any:
    """Return the value in use of an option: what is given, else the default.

    Args:
        schema: JSON schema of all options.
        options: those that are given.
        path: of the option, with dots.
        source: for errors.

    Raises:
        PlumblineError: there is no such option, or it has no default and is not given.
    """
    entry, value = schema, options
    for part in path.split("."):
        if "$ref" in entry:
            entry = schema["$defs"][entry["$ref"].rpartition("/")[2]]
        if part not in entry.get("properties", {}):
            raise unknown(f"option of {source}", part, entry.get("properties", {}))
        entry = entry["properties"][part]
        value = value[part] if isinstance(value, Mapping) and part in value else entry.get("default")
    if value is None:
        raise PlumblineError(f"{source}: {path} is not given and has no default")
    return value


def value_of(setting: Setting, evidence: Evidence) -> Any:
    """Return the value in use.

    Raises:
        PlumblineError: an unknown method or task, no such option or part of the budget, or an option without a value.
    """
    if setting.task:
        if setting.task not in evidence.budgets:
            raise unknown("task", setting.task, evidence.budgets)
        value: Any = evidence.budgets[setting.task]
        for part in setting.path.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise unknown(
                    f"part of the budget of {setting.task}", part, value if isinstance(value, Mapping) else ()
                )
            value = value[part]
        return value
    if setting.method not in evidence.methods_in_use:
        raise unknown("method", setting.method, evidence.methods_in_use)
    name, options = evidence.methods_in_use[setting.method]
    return option_value(catalogue().find("method", name).options, options, setting.path, setting.method)


@tables.register("settings", SettingsOptions)
def settings(evidence: Evidence, options: SettingsOptions) -> pd.DataFrame:
    """What a document sets, what is in use here, and whether they are the same."""
    found = []
    for row in options.settings:
        value = value_of(row, evidence)
        ours = f"{value:g}" if isinstance(value, int | float) else str(value)
        found.append(
            {
                "setting": row.name,
                "published": row.published,
                "ours": ours,
                "same": "yes" if ours == row.published else "no",
                "where": f"{row.method or row.task}: {row.path}",
            }
        )
    return pd.DataFrame(found)
