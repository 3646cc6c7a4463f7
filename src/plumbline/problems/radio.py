r"""Transmit power and antenna tilt of nine sectors that serve ground users and UAVs; LOCBO, section V-D and figure 7.

The paper has three sites 200 m apart, three sectors of 120 degrees each on masts of 25 m, 36 users on the ground and 28
UAVs in four corridors. It gives the ranges of power and tilt, the rates (42), the objective (43) and its observations
(44). All other numbers are those of the published code: the exact sites, 2 GHz, the antenna, the noise power, and the
heights of users and places of UAVs. Path losses are those of 3GPP TR 38.901 (urban macro, non-line-of-sight on the
ground, line-of-sight in the air), as in the code. The paper lists shadow fading without its strength. The code has
none, and neither has this problem by default.

Angles are in degrees. Elevations are relative to the antenna: UAVs are above it, users on the ground below, and a
positive tilt points up. Powers are in dBm or mW, gains and losses in dB, distances in metres.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from botorch.test_functions import SyntheticTestFunction
from botorch.test_functions.base import validate_inputs
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Generator, Tensor

from plumbline.core.options import Options
from plumbline.core.seeding import generator
from plumbline.problems.base import Context, Problem, problems
from plumbline.problems.build import problem_of
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.box import Box

SITES = ((0.0, 0.0), (0.0, 200.0), (171.0, 100.0))
"""Positions of the masts; in a hexagonal grid the third would be 2 m further away."""

BORESIGHTS = (90.0, 210.0, 330.0)
"""Azimuths of the sectors of a site, counter-clockwise from the first axis."""

OFFSET = 1.0
"""Distance of a sector's antenna from the axis of its mast, along its boresight."""

MAST, GROUND, AIR = 25.0, 1.5, 150.0
"""Heights of antennas, of users on the ground and of UAVs."""

USERS_PER_SECTOR = 4
RING = (10.0, 120.0)
"""Least and greatest horizontal distance of a user on the ground from the antenna of its sector."""

CORRIDORS = (
    ((-110.0, -100.0), (-100.0, 300.0)),
    ((-100.0, 270.0), (300.0, 310.0)),
    ((270.0, 280.0), (-100.0, 300.0)),
    ((-100.0, 270.0), (-110.0, -100.0)),
)
"""Rectangles of the UAVs' corridors: first axis, second axis."""

UAVS_PER_CORRIDOR = 7

POWER, TILT = (6.0, 46.0), (-90.0, 90.0)
"""Ranges of a sector's power in dBm and of its tilt."""

CARRIER = 2.0
"""Carrier frequency in GHz."""

NOISE = 1e-10
"""Thermal noise in mW, -100 dBm."""

GAIN, FLOOR = 8.0, -30.0
"""Gain of an antenna along its axis, and its least gain."""

VERTICAL_BEAM, HORIZONTAL_BEAM = 10.0, 65.0
"""Half-power beamwidths."""

NODE_SPACING = 0.4
LOG_NODES = NODE_SPACING * torch.arange(-60, 66, dtype=torch.float64)
"""Nodes of the quadrature of `mean_rates`, from -24 to 26."""

CHUNK = 2**16
"""Greatest size of an intermediate tensor: half a megabyte, which stays in a core's cache."""


def milliwatts(dbm: Tensor) -> Tensor:
    """Return powers of any shape in mW."""
    return 10 ** (dbm / 10)


def path_loss_ground(distance: Tensor) -> Tensor:
    """Return the loss in dB over `distance` (m, any shape, in space) to a user on the ground."""
    return 13.54 + 39.08 * distance.log10() + 20 * math.log10(CARRIER)


def path_loss_uav(distance: Tensor) -> Tensor:
    """Return the loss in dB over `distance` (m, any shape, in space) to a UAV."""
    return 28.0 + 22.0 * distance.log10() + 20 * math.log10(CARRIER)


def antenna_gain(tilt: Tensor, elevation: Tensor, azimuth: Tensor) -> Tensor:
    """Return the gain in dB of an antenna in a direction.

    Args:
        tilt: tilt of its axis, positive upwards.
        elevation: elevation of the direction, positive upwards.
        azimuth: azimuth of the direction, from the boresight. All three broadcast.
    """
    vertical = 12 * ((tilt - elevation) / VERTICAL_BEAM) ** 2
    horizontal = 12 * (azimuth / HORIZONTAL_BEAM) ** 2
    return (GAIN - vertical - horizontal).clamp(FLOOR, GAIN)


@dataclass(frozen=True)
class Layout:
    """Positions of antennas, users and UAVs.

    Attributes:
        sectors: `9 x 2`, the antennas; sector `3 i + j` is the j-th of site i.
        boresights: `9`, azimuths of the antennas.
        ground: `36 x 2`, users on the ground; four in sector 0, four in sector 1, ...
        uavs: `28 x 2`.
    """

    sectors: Tensor
    boresights: Tensor
    ground: Tensor
    uavs: Tensor


def polar(radius: Tensor, azimuth: Tensor) -> Tensor:
    """Return `... x 2` points at `radius` and `azimuth`, `...` each."""
    angle = azimuth.deg2rad()
    return radius.unsqueeze(-1) * torch.stack([angle.cos(), angle.sin()], dim=-1)


def make_layout(stream: Generator) -> Layout:
    """Return the network, with users on the ground drawn from `stream`.

    Users are uniform over the ring about their antenna, within the 120 degrees of its sector. UAVs are equidistant on
    the diagonal of their corridor, both ends included. Two UAVs therefore coincide where two corridors touch.
    """
    boresights = torch.tensor(BORESIGHTS * len(SITES), dtype=torch.float64)
    sites = torch.tensor(SITES, dtype=torch.float64).repeat_interleave(len(BORESIGHTS), dim=0)
    sectors = sites + polar(torch.full_like(boresights, OFFSET), boresights)
    chance = torch.rand(len(sectors), USERS_PER_SECTOR, 2, generator=stream, dtype=torch.float64)
    inner, outer = RING
    radius = (inner**2 + (outer**2 - inner**2) * chance[..., 0]).sqrt()  # area is proportional to the squared radius
    azimuth = boresights.unsqueeze(-1) + 120 * (chance[..., 1] - 0.5)
    ground = sectors.unsqueeze(1) + polar(radius, azimuth)
    ends = torch.tensor(CORRIDORS, dtype=torch.float64)  # corridor x axis x end
    along = torch.linspace(0, 1, UAVS_PER_CORRIDOR, dtype=torch.float64).unsqueeze(-1)
    uavs = ends[:, None, :, 0] + along * (ends[..., 1] - ends[..., 0]).unsqueeze(1)
    return Layout(sectors, boresights, ground.reshape(-1, 2), uavs.reshape(-1, 2))


@dataclass(frozen=True)
class Links:
    """Links from every antenna to every user, ground users first: the quantities independent of power and tilt.

    Attributes:
        loss: `users x sectors`, dB.
        elevation: `users x sectors`, of the user above the antenna.
        azimuth: `users x sectors`, of the user from the boresight, in [-180, 180).
        ground: number of users on the ground.
    """

    loss: Tensor
    elevation: Tensor
    azimuth: Tensor
    ground: int


def make_links(layout: Layout) -> Links:
    """Return the links of a network without shadow fading."""
    users = torch.cat([layout.ground, layout.uavs])
    n = len(layout.ground)
    away = users.unsqueeze(1) - layout.sectors
    flat = torch.linalg.vector_norm(away, dim=-1)
    above = torch.full_like(flat, AIR - MAST)
    above[:n] = GROUND - MAST
    distance = torch.hypot(flat, above)
    bearing = torch.atan2(away[..., 1], away[..., 0]).rad2deg()
    return Links(
        loss=torch.cat([path_loss_ground(distance[:n]), path_loss_uav(distance[n:])]),
        elevation=torch.atan2(above, flat).rad2deg(),
        azimuth=(bearing - layout.boresights + 180) % 360 - 180,
        ground=n,
    )


def received_power(power: Tensor, tilt: Tensor, links: Links) -> Tensor:
    """Return the powers that users receive from sectors, averaged over fading, in mW: `... x users x sectors`.

    Args:
        power: `... x sectors`, dBm.
        tilt: `... x sectors`.
        links: links between sectors and users.
    """
    gain = antenna_gain(tilt.unsqueeze(-2), links.elevation, links.azimuth)
    return milliwatts(power.unsqueeze(-2) + gain - links.loss)


def rates(received: Tensor, fading: Tensor, noise: float = NOISE) -> Tensor:
    r"""Return the rates of equation (42) in bit/s/Hz: `... x users`.

    .. math:: R_k = \log_2\Big(1 + \frac{P_{k b_k} |h_{k b_k}|^2}{\sum_{b \ne b_k} P_{kb} |h_{kb}|^2 + \sigma^2}\Big),

    where `b_k` is the sector of greatest average received power of user k.

    Args:
        received: `... x users x sectors`, P in mW.
        fading: `|h|^2`, of a shape that broadcasts with `received`.
        noise: sigma^2 in mW.
    """
    faded = received * fading
    serving = received.argmax(dim=-1, keepdim=True).expand(*faded.shape[:-1], 1)
    signal = faded.gather(-1, serving).squeeze(-1)
    # Summed without the signal: subtracting it from the total would lose weak interference to rounding.
    interference = faded.scatter(-1, serving, 0.0).sum(dim=-1)
    return torch.log1p(signal / (interference + noise)) / math.log(2)


def mean_rates(received: Tensor, noise: float = NOISE) -> Tensor:
    r"""Return the expectation of `rates` under Rayleigh fading of all links, in bit/s/Hz: `... x users`.

    With independent `|h|^2 ~ Exp(1)` it is one integral (Hamdi 2010), in `u = z P_{k b_k}`:

    .. math::
        E \ln\Big(1 + \frac{S}{I + \sigma^2}\Big)
        = \int_0^\infty \frac{e^{-z \sigma^2}}{z} E[e^{-z I}] (1 - E[e^{-z S}]) dz
        = \int_0^\infty e^{-u \sigma^2 / P_{k b_k}} \prod_b \frac{1}{1 + u P_{kb} / P_{k b_k}} du,

    the product over all sectors, the serving one included. In `ln u` the integrand is analytic in a strip, and the
    trapezoidal rule converges exponentially: to 1e-9 where no `P` is more than 1e10 times the noise. Here the
    greatest is below 1e8 times.

    Args:
        received: `... x users x sectors`, P in mW.
        noise: sigma^2 in mW.
    """
    signal = received.amax(dim=-1, keepdim=True)
    share = received / signal
    u = LOG_NODES.exp()
    denominator = torch.ones_like(signal)
    for b in range(received.shape[-1]):
        denominator = denominator * (1 + share[..., b, None] * u)
    integrand = u * torch.exp(-u * (noise / signal)) / denominator
    return NODE_SPACING * integrand.sum(dim=-1) / math.log(2)


BALANCE = 0.7
"""Lambda of equation (43)."""

LAYOUT_SEED = 0
"""Of the places of users, of shadowing and of the fixed fadings: all trials have one network, which figure 7 shows."""


class RadioOptions(Options):
    """Options of `radio`. Defaults are the paper's; the text names values of the published code that differ.

    Attributes:
        n_ch: number of channel realisations that an observation averages.
        balance_on: group whose average rate has weight `BALANCE`; the other group has the rest. In equation (43) it is
            the UAVs, in the published code the ground users, as the parameter's name suggests.
        uav_divisor: divisor of the sum of the UAVs' rates. It is their number in equation (43), and 200 in the
            published code, which reduces their weight to a seventh.
        uav_fading: whether links to UAVs fade, as in the paper; in the published code they do not.
        shadowing: standard deviation of log-normal shadow fading in dB, one draw for each user and site.
        truth_draws: None for the exact expectation (43) as the noise-free value; a number for the mean over so many
            fixed fadings, 100 in the published code.
        proposals: `blocks` if methods change one sector's power and tilt per round, in turn; `box` for all together.
        judge: the objective of the noise-free value: `own`, or the `paper`'s, to measure the cost of a departure.
        shared_fadings: whether the i-th observation has the same fadings in all trials, as in the published code.
    """

    n_ch: PositiveInt = 1
    balance_on: Literal["uavs", "ground"] = "uavs"
    uav_divisor: PositiveFloat = float(UAVS_PER_CORRIDOR * len(CORRIDORS))
    uav_fading: bool = True
    shadowing: NonNegativeFloat = 0.0
    truth_draws: PositiveInt | None = None
    proposals: Literal["blocks", "box"] = "blocks"
    judge: Literal["own", "paper"] = "own"
    shared_fadings: bool = False


class Radio(SyntheticTestFunction):
    r"""The average capacity of a cellular network with UAVs, in bit/s/Hz; to be maximised.

    Equation (43), the expectation over fading of a weighted mean of rates,

    .. math:: f(x) = E_h \Big[ \frac{\lambda}{|U|} \sum_{k \in U} R_k(h) + \frac{1 - \lambda}{|G|} \sum_{k \in G}
        R_k(h) \Big],

    of `x = [p_1, ..., p_9, theta_1, ..., theta_9]`, powers in dBm and tilts in degrees. An observation is the mean over
    `n_ch` fadings of its own in place of the expectation: `observe`. The greatest value is unknown.

    Attributes:
        layout: positions of antennas, users and UAVs.
        links: losses and angles between antennas and users.
        judge: the problem whose noise-free value is reported, or None for its own.
        space: power and tilt of one sector at a time, or of all together. In the first round of blocks the other
            sectors have full power and zero tilt, as in the published code.
    """

    dim = 2 * len(SITES) * len(BORESIGHTS)
    continuous_inds = list(range(dim))  # noqa: RUF012 - BoTorch's class attributes
    _bounds = [POWER] * (dim // 2) + [TILT] * (dim // 2)
    _is_minimization_by_default = False

    def __init__(self, options: RadioOptions) -> None:
        super().__init__()
        self.options = options
        # Separate streams, so that no option changes the draws of another one.
        layout, shadow, fading = (generator("radio", LAYOUT_SEED, "problem", i) for i in range(3))
        self.layout = make_layout(layout)
        links = make_links(self.layout)
        sectors = len(self.layout.sectors)
        draws = torch.randn(len(links.loss), len(SITES), generator=shadow, dtype=torch.float64)
        shadowing = options.shadowing * draws.repeat_interleave(len(BORESIGHTS), dim=-1)
        self.links = Links(links.loss + shadowing, links.elevation, links.azimuth, links.ground)
        start = torch.tensor([POWER[1]] * sectors + [0.0] * sectors, dtype=torch.float64)
        pairs = tuple((b, b + sectors) for b in range(sectors))
        self.space = Blocks(self.bounds, pairs, start) if options.proposals == "blocks" else Box(self.bounds)
        paper = RadioOptions(shadowing=options.shadowing)
        self.judge = Radio(paper) if options.judge == "paper" else None
        self._fixed = None if options.truth_draws is None else self.draw_fading(options.truth_draws, fading)

    def draw_fading(self, n: int, stream: Generator) -> Tensor:
        """Return `|h|^2` of `n` channel realisations, `n x users x sectors`; a smaller `n` gives the first of them."""
        chance = torch.rand(n, *self.links.loss.shape, generator=stream, dtype=torch.float64)
        fading = -torch.log1p(-chance)
        if not self.options.uav_fading:
            fading[:, self.links.ground :] = 1.0
        return fading

    def received(self, X: Tensor) -> Tensor:
        """Return received powers at `X` (`... x 18`), averaged over fading, in mW: `... x users x sectors`."""
        power, tilt = X.chunk(2, dim=-1)
        return received_power(power, tilt, self.links)

    def capacity(self, rates: Tensor) -> Tensor:
        """Return the weighted mean of `rates` (`... x users`) of equation (43): `...`."""
        ground, uavs = rates[..., : self.links.ground], rates[..., self.links.ground :]
        on_uavs = self.options.balance_on == "uavs"
        weight = BALANCE if on_uavs else 1 - BALANCE
        return weight * uavs.sum(dim=-1) / self.options.uav_divisor + (1 - weight) * ground.mean(dim=-1)

    def observe(self, X: Tensor, streams: Sequence[Generator]) -> Tensor:
        """Return equation (44) at each row of `X` (`n x 18`), with fadings from its own stream: `n x 1`."""
        size = max(1, CHUNK // (self.options.n_ch * self.links.loss.numel()))
        means = []
        for first in range(0, len(X), size):
            chunk = streams[first : first + size]
            fading = torch.stack([self.draw_fading(self.options.n_ch, stream) for stream in chunk])
            means.append(self._capacities(X[first : first + size], fading).mean(dim=-1))
        return torch.cat(means).unsqueeze(-1)

    def forward(self, X: Tensor, noise: bool = True) -> Tensor:
        """Return the average capacity at `X` (`batch x 18`), an observation from torch's global stream if `noise`."""
        if not noise:
            return self.evaluate_true(X)
        validate_inputs(X, self.dim, self.bounds, self.discrete_inds, self.categorical_inds)
        rows = X.reshape(-1, self.dim).double()
        return self.observe(rows, [torch.default_generator] * len(rows)).reshape(X.shape[:-1]).to(X)

    @property
    def optimizers(self) -> Tensor:
        """Raise NotImplementedError: the best configuration is unknown."""
        raise NotImplementedError("The best configuration of the network is not known.")

    def _evaluate_true(self, X: Tensor) -> Tensor:
        if self.judge is not None:
            return self.judge.evaluate_true(X)
        links = self.links.loss
        each = len(links) * len(LOG_NODES) if self._fixed is None else len(self._fixed) * links.numel()
        chunks = X.reshape(-1, self.dim).double().split(max(1, CHUNK // each))
        return torch.cat([self._truth(rows) for rows in chunks]).reshape(X.shape[:-1]).to(X)

    def _truth(self, X: Tensor) -> Tensor:
        """Return the noise-free value at `X` (`n x 18`) in one batch: `n`."""
        if self._fixed is not None:
            return self._capacities(X, self._fixed).mean(dim=-1)
        received = self.received(X)
        if self.options.uav_fading:
            return self.capacity(mean_rates(received))
        ground, uavs = received[:, : self.links.ground], received[:, self.links.ground :]
        return self.capacity(torch.cat([mean_rates(ground), rates(uavs, torch.ones_like(uavs))], dim=-1))

    def _capacities(self, X: Tensor, fading: Tensor) -> Tensor:
        """Return the capacity at `X` (`n x 18`) under `(n x) c x users x sectors` fadings: `n x c`."""
        return self.capacity(rates(self.received(X).unsqueeze(1), fading))


@problems.register("radio", RadioOptions, "18-d, power and tilt of nine sectors that serve ground users and UAVs")
def radio(options: RadioOptions, _: Context) -> Problem:
    """Return the radio problem."""
    function = Radio(options)
    return problem_of(function, space=function.space, observe=function.observe, shared_chance=options.shared_fadings)
