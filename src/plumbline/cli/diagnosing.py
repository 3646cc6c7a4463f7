"""The command that checks the forecasts of a surrogate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.cli.app import USE, app, file_option, path_argument, refuse_losses, say_written

if TYPE_CHECKING:
    import pandas as pd

CsvFile = Annotated[Path | None, file_option("--csv", help="write the measures as CSV")]
JsonFile = Annotated[Path | None, file_option("--json", help="write measures and sentences as JSON")]

PARTS = {
    "calibration": "tests",
    "drift": "tests",
    "inputs": "tests",
    "coverage": "description",
    "sharpness": "description",
    "earlier": "recalibrated on earlier ones",
    "other": "recalibrated on all others",
}
"""Titles of the tables that parts are in."""

NOTES = (
    "error: y minus mean; |error|: its size; sd: of the forecast, which should include the noise; PIT: the forecast "
    "probability of a value of at most y.",
    "expected: of forecasts that are right; p: of the two-sided test of that; Holm: p corrected for the number of "
    "tests in the first table, on which the verdict rests.",
    "recalibrated: each sd times a factor learnt from forecasts of earlier rounds, or from all other forecasts, later "
    "ones too.",
)
"""What the words in the tables mean; the last is of recalibration."""


@app.command(rich_help_panel=USE)
def diagnose(
    file: Annotated[Path, path_argument(help="CSV with columns y, mean and sd, and perhaps round, x1, x2, ...")],
    window: Annotated[
        int, typer.Option(help="greatest number of earlier forecasts that recalibration learns from")
    ] = 50,
    recalibrator: Annotated[str, typer.Option(help="isotonic or gp")] = "isotonic",
    csv: CsvFile = None,
    json: JsonFile = None,
) -> None:
    """Check a surrogate's Gaussian forecasts, and show the effect of recalibration."""
    from plumbline.api import diagnose as table
    from plumbline.cli.comparing import write_frame

    refuse_losses([path for path in (csv, json) if path is not None], file)
    frame = table(file, window=window, recalibrator=recalibrator)  # type: ignore[arg-type]  # it says what there is
    write_frame(frame, csv, None)  # first: a pipe may end what is printed
    if json is not None:
        write_json(json, frame)
    print_diagnosis(frame)
    say_written(csv, json)


def print_diagnosis(frame: "pd.DataFrame") -> None:
    """Print the measures, a table each kind, then what they mean."""
    from plumbline.analysis.comparisons.numbers import interval, intervals_in_words, is_open, probability
    from plumbline.cli.tables import print_table, print_words, written

    numbers = ["value", "95% interval", "expected", "p", "Holm"]
    for title, rows in frame.groupby(frame["part"].map(PARTS), sort=False):
        cells = [
            [
                *(row["name"], written(row["value"], 3), interval(row["low"], row["high"])),
                *(written(row["expected"], 3), probability(row["p"]), probability(row["p_corrected"])),
            ]
            for row in rows.to_dict("records")
        ]
        print_table([str(title), *numbers], cells, numbers)
        print()
    found = [f"The forecasts are {line}." for line in frame.attrs["verdict"]]
    none = f"No fault found in {frame.attrs['forecasts']} forecasts; intervals say what they cannot exclude."
    for line in found or [none]:
        print_words(line)
    for line in frame.attrs["recalibration"]:
        print_words(f"{line.capitalize()}.")
    if frame.attrs["ignored"]:
        print_words(f"Columns that were not read: {', '.join(frame.attrs['ignored'])}.")
    print()
    ends = list(zip(frame["low"], frame["high"], strict=True))
    if any(is_open(*one) for one in ends):
        print_words(f"{intervals_in_words(ends)}.")
    for line in NOTES if frame.attrs["recalibration"] else NOTES[:-1]:
        print_words(line)


def write_json(path: Path, frame: "pd.DataFrame") -> None:
    """Write measures, verdict and the effect of recalibration as one mapping; what is not finite is null."""
    import json

    from plumbline.core.files import write_text

    measures = json.loads(frame.to_json(orient="records"))
    about = {name: frame.attrs[name] for name in ("forecasts", "verdict", "recalibration", "ignored")}
    write_text(path, json.dumps({**about, "measures": measures}, indent=1) + "\n")
