"""Values over recordings as an SVG: the path, a dot per recording where they are few, changes of level as dashed lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.svg import Axis

BINS = 250
"""Places along the path; of more recordings each place keeps its smallest and its largest."""
_DOTS = 60


@dataclass(frozen=True)
class TrendLevel:
    """A stretch between changes: from x to x2 in percent, its median's place y in percent from above, and its text."""

    x: float
    x2: float
    y: float
    text: str


@dataclass(frozen=True)
class TrendChart:
    """A series. ``path`` lies in a box of 1000 by 100, all else is in percent; ``changes`` are (x, text) of changes of level."""

    title: str
    path: str
    band: str
    dots: list[tuple[float, float, str]]
    levels: list[TrendLevel]
    changes: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    first: str
    last: str
    text: str
    notes: list[str] = field(default_factory=list)


def trend_chart(
    title: str,
    values: Sequence[float],
    spread: Sequence[tuple[float, float] | None],
    labels: Sequence[str],
    changes: Sequence[tuple[int, float, float]],
    show: Callable[[float], str],
    notes: Sequence[str] = (),
) -> TrendChart:
    """Return a chart of positive values, oldest first.

    ``spread`` is the quarter and three-quarter point of each, ``labels`` what each recording is called, ``changes`` its changes of level
    as (index, before, after).
    """
    known = [s for s in spread if s is not None]
    low = min([*values, *(s[0] for s in known)])
    high = max([*values, *(s[1] for s in known)])
    room = 0.08 * (high - low) or 0.05 * high
    axis = Axis(max(0.0, low - room), high + room, False)

    def x(i: float) -> float:
        return round(100 * (i + 0.5) / len(values), 2)

    def y(value: float) -> float:
        return round(100 - axis.at(value), 2)

    size = max(1, ceil(len(values) / BINS))
    points: list[tuple[float, float]] = []
    for n in range(0, len(values), size):
        part = values[n : n + size]
        places = [n + part.index(v) for v in (min(part), max(part))] if size > 1 else [n]
        points += [(x(i), y(values[i])) for i in sorted(set(places))]
    borders = [0, *(i for i, _, _ in changes), len(values)]
    medians = [before for _, before, _ in changes] + [after for _, _, after in changes[-1:]]
    levels = [
        TrendLevel(x(a - 0.5), x(b - 0.5), y(m), show(m))
        for a, b, m in zip(borders, borders[1:], medians, strict=False)
    ]
    ticks = [(round(100 - at, 2), text) for at, text, _ in axis.ticks(show)]
    return TrendChart(
        title=terminal(title, 200),
        path="M" + "L".join(f"{round(10 * a, 1):g} {b:g}" for a, b in points),
        band=_band(spread, x, y) if size == 1 else "",
        dots=[
            (x(i), y(v), terminal(f"{label}: {show(v)}", 120))
            for i, (v, label) in enumerate(zip(values, labels, strict=True))
        ]
        if len(values) <= _DOTS
        else [],
        levels=levels,
        changes=[(x(i - 0.5), terminal(f"{show(before)} to {show(after)} at {labels[i]}", 160)) for i, before, after in changes],
        y_ticks=ticks,
        first=terminal(labels[0], 40),
        last=terminal(labels[-1], 40) if len(values) > 1 else "",
        text=f"{len(values):,} recordings, {show(min(values))} to {show(max(values))}, the last {show(values[-1])}"
        if len(values) > 1
        else f"one recording: {show(values[0])}",
        notes=[terminal(n, 300) for n in notes],
    )  # fmt: skip


def _band(
    spread: Sequence[tuple[float, float] | None], x: Callable[[float], float], y: Callable[[float], float]
) -> str:
    """Return the path of the quarters of each recording: one upright stroke each."""
    return "".join(f"M{round(10 * x(i), 1):g} {y(s[0]):g}V{y(s[1]):g}" for i, s in enumerate(spread) if s is not None)
