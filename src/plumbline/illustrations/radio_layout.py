"""The cellular network of the radio problem and its antenna gain: LOCBO, figure 7."""

import pandas as pd
import torch
from pydantic import Field
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.illustrations.base import grid, illustrations, rows, table
from plumbline.problems.radio import CORRIDORS, RING, TILT, UAVS_PER_CORRIDOR, Radio, RadioOptions, antenna_gain

POINTS = 721
"""Points of the curves of gain."""


class LayoutOptions(Options):
    """Options of the illustration.

    Attributes:
        tilts: tilts of the antenna, in degrees.
    """

    tilts: tuple[float, ...] = Field(default=(-30.0, 0.0, 40.0), min_length=1)


def corners(corridor: tuple[tuple[float, float], tuple[float, float]]) -> Tensor:
    """Return the corners of a rectangle in order around it: `4 x 2`."""
    (left, right), (bottom, top) = corridor
    return torch.tensor([[left, bottom], [right, bottom], [right, top], [left, top]], dtype=torch.float64)


def seen_from_nearest(problem: Radio) -> tuple[Tensor, Tensor]:
    """Return the elevations of ground users (`36`) and UAVs (`28`), each as seen from the nearest antenna."""
    layout, elevation = problem.layout, problem.links.elevation
    users = torch.cat([layout.ground, layout.uavs])
    nearest = torch.cdist(users, layout.sectors).argmin(dim=-1, keepdim=True)
    seen = elevation.gather(-1, nearest).squeeze(-1)
    return seen[: problem.links.ground], seen[problem.links.ground :]


@illustrations.register("radio-layout", LayoutOptions)
def radio_layout(options: LayoutOptions, _: Generator) -> pd.DataFrame:
    """A map of antennas, users and corridors, and the gain of an antenna over elevation.

    It does not use the generator, since the network is that of all trials.
    """
    problem = Radio(RadioOptions())
    layout = problem.layout
    ground, uavs = seen_from_nearest(problem)
    elevation = grid(POINTS, *TILT)
    ahead = torch.zeros_like(elevation)
    gains = [(tilt, antenna_gain(torch.full_like(elevation, tilt), elevation, ahead)) for tilt in options.tilts]
    per_sector = len(layout.ground) // len(layout.sectors)
    return table(
        [
            rows("map", "antenna", x=layout.sectors[:, 0], x2=layout.sectors[:, 1], value=layout.boresights),
            rows("map", "ring", low=RING[0], high=RING[1]),
            rows(
                "map",
                "ground user",
                x=layout.ground[:, 0],
                x2=layout.ground[:, 1],
                value=[k // per_sector for k in range(len(layout.ground))],
            ),
            rows(
                "map",
                "uav",
                x=layout.uavs[:, 0],
                x2=layout.uavs[:, 1],
                value=[k // UAVS_PER_CORRIDOR for k in range(len(layout.uavs))],
            ),
            *(
                rows("map", "corridor", x=corners(corridor)[:, 0], x2=corners(corridor)[:, 1], value=float(i))
                for i, corridor in enumerate(CORRIDORS)
            ),
            *(rows("gain", "gain", x=elevation, x2=tilt, value=gain) for tilt, gain in gains),
            rows("gain", "ground user", x=ground),
            rows("gain", "uav", x=uavs),
        ]
    )
