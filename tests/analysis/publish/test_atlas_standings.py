"""What the report says of the methods of the atlas."""

import json

import pandas as pd

from plumbline.analysis.publish.atlas_standings import atlas_standings

ROW = {"cost": "", "track": "all", "method": "ei", "tasks": 2, "beaten": 0.25, "low": 0.1234567, "high": 0.5}


def test_the_best_stands_first_by_track_and_by_cost() -> None:
    ranks = pd.DataFrame(
        [
            ROW,
            ROW | {"method": "ucb", "beaten": 0.75},
            ROW | {"method": "ehvi", "tasks": 0.9, "beaten": 1.0},
            ROW | {"track": "noisy", "tasks": 1, "low": float("nan"), "high": float("nan")},
            ROW | {"cost": "1 day", "beaten": 1.0},
        ]
    )
    found = atlas_standings(ranks, {"ei": "expected improvement"})
    json.dumps(found, allow_nan=False)
    assert [one["entry"] for one in found["tracks"]["all"]] == ["ucb", "ei"]
    assert found["tracks"]["all"][1] == {
        "method": "expected improvement",
        "entry": "ei",
        "tasks": 2,
        "share": 0.25,
        "low": 0.12346,
        "high": 0.5,
    }
    assert found["tracks"]["noisy"][0]["low"] is None
    assert [one["share"] for one in found["costs"]["1 day"]] == [1.0]
    assert list(found["tracks"]) == ["all", "noisy"]
