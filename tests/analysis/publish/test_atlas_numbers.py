"""Numbers of an edition of the atlas in pages."""

import re
from pathlib import Path

import pandas as pd
import pytest
from made_atlas import METHODS, made_edition

from plumbline.analysis.atlas.edition import is_answered
from plumbline.analysis.atlas.interventions import INTERVENTIONS, PLACEBOS
from plumbline.analysis.publish.atlas_numbers import AtlasNumbers
from plumbline.analysis.publish.result_pages import result_pages
from plumbline.core.errors import PlumblineError
from plumbline.store.records import read_table, write_frame


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_edition(tmp_path_factory.mktemp("atlas"))


@pytest.fixture(scope="module")
def numbers(edition: Path) -> AtlasNumbers:
    return AtlasNumbers(edition, {"atlas-cei": "conformal EI"})


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.slow
def test_interventions_have_their_known_effects(numbers: AtlasNumbers) -> None:
    assert numbers.atlas_finding("conformal").high < 0
    assert numbers.atlas_finding("recalibrated in closed form", "calibration_error").high < 0
    assert numbers.atlas_p("conformal") < 0.05
    head, _, *found = rows(numbers.atlas_interventions())
    assert head == ["intervention", "tasks", "calibration error", "normalised regret", "p, Holm"]
    assert [row[0] for row in found] == [one.words for one in (*INTERVENTIONS, *PLACEBOS)]
    assert found[-1][-1] == "–", "a placebo is not tested"
    assert all(re.fullmatch(r"-?(\d+)?\.\d{3} \(.+ to .+\)", row[3]) for row in found)


@pytest.mark.slow
def test_the_answer_counts_what_the_tables_show(numbers: AtlasNumbers) -> None:
    forecasts, search = numbers.atlas_answer().splitlines()
    _, _, *found = rows(numbers.atlas_interventions())
    for words, _, error, score, p in found[: len(INTERVENTIONS)]:
        low, high = map(float, re.search(r"\((.+) to (.+)\)", error).groups())  # type: ignore[union-attr]
        better, worse = forecasts.split(", and worsened by ")
        assert (words in better) == (high < 0)
        assert (words in worse) == (low > 0)
        lower, higher = search.split(", and raised by ")
        decided = float(p.removeprefix("< ")) <= 0.05
        assert (words in lower) == (decided and score.startswith("-"))
        assert (words in higher) == (decided and not score.startswith("-"))


def test_the_best_methods_come_first(numbers: AtlasNumbers) -> None:
    head, _, *found = rows(numbers.atlas_ranking(4))
    assert head == ["method", "entry", "tasks", "all", "made"]
    assert {tuple(row[:3]) for row in found[:2]} == {
        ("conformal EI", "atlas-cei", "6"),
        ("atlas-cucb", "atlas-cucb", "6"),
    }
    assert len(found) == 4
    assert rows(numbers.atlas_costs(2))[0] == ["method", "entry", "tasks", "1 second", "1 minute", "1 hour", "1 day"]


@pytest.mark.slow
def test_a_method_on_few_tasks_is_not_ranked_among_the_others(tmp_path: Path) -> None:
    folder = made_edition(tmp_path / "atlas", tasks=5)
    for task in range(3):
        path = folder / f"task-{task}.parquet"
        rounds = read_table(path).to_pandas()
        write_frame(path, rounds[rounds["method"] != "atlas-cei"])
    cells = pd.read_csv(folder / "cells.csv")
    gone = (cells["method"] == "atlas-cei") & cells["task"].isin(["task-0", "task-1", "task-2"])
    cells[~gone].to_csv(folder / "cells.csv", index=False)
    found = [row[1] for row in rows(AtlasNumbers(folder, {}).atlas_ranking(100))[2:]]
    assert "atlas-cucb" in found, "on five of five"
    assert "atlas-cei" not in found, "on two"


def test_parts_of_the_tasks_and_other_regrets(numbers: AtlasNumbers) -> None:
    words = [one.words for one in INTERVENTIONS]
    for made, columns in (
        (numbers.atlas_tracks(), ["made"]),
        (numbers.atlas_dimensions(), ["1 to 3 inputs", "4 to 10 inputs", "more than 10 inputs"]),
        (numbers.atlas_regrets(["after the last round"]), ["after the last round"]),
    ):
        head, _, *found = rows(made)
        assert head == ["intervention", *columns]
        assert [row[0] for row in found] == words
        conformal = found[words.index("conformal")]
        assert re.fullmatch(r"-\.\d{3} \(-\.\d{3} to -\.\d{3}\)", conformal[1])
        assert conformal[2:] == ["–"] * len(conformal[2:]), "all tasks have two inputs"


def test_pairs(numbers: AtlasNumbers) -> None:
    _, _, *found = rows(numbers.atlas_pairs())
    assert len(found) == sum(len(one.pairs) + len(one.further) for one in INTERVENTIONS)
    assert ["conformal", "conformal EI", "atlas-ei", "6"] in [row[:4] for row in found]


def test_totals(numbers: AtlasNumbers) -> None:
    totals = {"tasks": 6, "methods": len(METHODS), "trials": 18 * len(METHODS), "failed": 0, "empty": 6}
    totals |= {"missing": 0, "unanswered": 0}
    assert {of: numbers.atlas_total(of) for of in totals} == totals


@pytest.mark.slow
@pytest.mark.parametrize(("method", "unanswered"), [("ax", 0), ("atlas-cei", 2)])
def test_the_analyses_wait_for_methods_that_forecast(tmp_path: Path, method: str, unanswered: int) -> None:
    folder = made_edition(tmp_path / "atlas", tasks=4)
    cells = pd.read_csv(folder / "cells.csv")
    gone = (cells["method"] == method) & cells["task"].isin(["task-1", "task-3"])
    cells[~gone].to_csv(folder / "cells.csv", index=False)
    found = AtlasNumbers(folder, {method: "the last one"})
    assert [found.atlas_total(of) for of in ("missing", "unanswered")] == [2, unanswered]
    assert found.atlas_waiting() == "the last one"
    assert is_answered(folder) == (not unanswered)


def test_what_there_is_not(numbers: AtlasNumbers, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="unknown number of the atlas 'trial': did you mean 'trials'"):
        numbers.atlas_total("trial")
    with pytest.raises(PlumblineError, match="unknown analysis of the atlas 'conformed': did you mean 'conformal'"):
        numbers.atlas_finding("conformed")
    with pytest.raises(PlumblineError, match="no atlas at"):
        AtlasNumbers(tmp_path, {}).atlas_total("trials")


def test_a_page_may_ask_for_them(numbers: AtlasNumbers, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("{{ atlas_total('tasks')|f(0) }} tasks, {{ atlas_finding('conformal')|est(2) }}")
    assert result_pages(tmp_path, numbers)["page.md"].splitlines()[-1].startswith("6 tasks, -.")
