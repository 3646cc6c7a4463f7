"""A small plot of one trial, as SVG text: for thousands of them matplotlib would take an hour."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 220, 120
"""Of one panel, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 12, 208, 24, 92
"""The box that a curve fills."""
ACROSS = 3
"""Panels side by side."""


def curves_svg(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """Return a picture of curves, a panel each, with the ends of its axes in numbers.

    Args:
        curves: evaluations and values, finite and one at least, by name.
    """
    panels = [
        f'<g transform="translate({i % ACROSS * WIDTH} {i // ACROSS * HEIGHT})">{_panel(name, *curve)}</g>'
        for i, (name, curve) in enumerate(curves.items())
    ]
    width, height = min(max(len(panels), 1), ACROSS) * WIDTH, max(-(-len(panels) // ACROSS), 1) * HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="10" fill="#444">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(panels)}</svg>\n'
    )


def _panel(name: str, steps: Sequence[float], values: Sequence[float]) -> str:
    """A panel: its name and last value above, the curve, and where axes begin and end."""
    x, y = _along(steps, LEFT, RIGHT), _along(values, BOTTOM, TOP)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f'<text x="{LEFT}" y="14" font-size="11" fill="black">{escape(name)}: {values[-1]:.4g}</text>'
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="#bbb"/>'
        f'<polyline points="{points}" fill="none" stroke="#0173b2" stroke-width="1.5"/>'
        f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="2.5" fill="#0173b2"/>'
        '<g paint-order="stroke" stroke="white" stroke-width="3">'
        f'<text x="{LEFT + 4}" y="{TOP + 8}">{max(values):.4g}</text>'
        f'<text x="{LEFT + 4}" y="{BOTTOM - 3}">{min(values):.4g}</text></g>'
        f'<text x="{LEFT}" y="{BOTTOM + 13}">{steps[0]:g}</text>'
        f'<text x="{RIGHT}" y="{BOTTOM + 13}" text-anchor="end">{steps[-1]:g} evaluations</text>'
    )


def _along(values: Sequence[float], begin: float, end: float) -> list[float]:
    """Return the places of values on an axis from the least to the greatest; one value alone is in the middle."""
    unit = max(map(abs, values)) or 1.0  # differences of the greatest numbers are too great for one
    low, high = min(values) / unit, max(values) / unit
    return [begin + (end - begin) * ((value / unit - low) / (high - low) if high > low else 0.5) for value in values]
