"""The picture of the radio problem shows the network that trials run on."""

import pandas as pd
import pytest
import torch

from plumbline.illustrations.radio_layout import LayoutOptions, radio_layout
from plumbline.problems.radio import Radio, RadioOptions


def build(**options: object) -> pd.DataFrame:
    return radio_layout(LayoutOptions.model_validate(options), torch.Generator())


def part(frame: pd.DataFrame, panel: str, series: str) -> pd.DataFrame:
    return frame[(frame["panel"] == panel) & (frame["series"] == series)]


def test_it_is_the_network_of_the_problem() -> None:
    frame, layout = build(), Radio(RadioOptions()).layout
    for name, places in (("antenna", layout.sectors), ("ground user", layout.ground), ("uav", layout.uavs)):
        assert part(frame, "map", name)[["x", "x2"]].to_numpy().tolist() == places.tolist()


def test_uavs_are_in_their_corridors() -> None:
    frame = build()
    corridors = part(frame, "map", "corridor").groupby("value")
    low, high = corridors[["x", "x2"]].min(), corridors[["x", "x2"]].max()
    for uav in part(frame, "map", "uav").itertuples():
        for axis in ("x", "x2"):
            assert low.loc[uav.value, axis] <= getattr(uav, axis) <= high.loc[uav.value, axis]


def test_gain_is_greatest_at_the_tilt() -> None:
    gain = part(build(tilts=[-30, 25]), "gain", "gain")
    best = gain.loc[gain.groupby("x2")["value"].idxmax()]
    assert best["x"].tolist() == pytest.approx(best["x2"].tolist())
    assert best["value"].tolist() == [8.0, 8.0]


def test_users_on_the_ground_are_seen_below_and_uavs_above() -> None:
    frame = build()
    assert (part(frame, "gain", "ground user")["x"] < 0).all()
    assert (part(frame, "gain", "uav")["x"] > 0).all()
    assert len(part(frame, "gain", "ground user")) == 36
    assert len(part(frame, "gain", "uav")) == 28
