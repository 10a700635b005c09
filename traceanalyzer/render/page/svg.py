"""Charts as rows of marks on one axis, for the template to draw: text is text, and places are shares of the width.

A row has its label and value above its marks, never over them, so a chart reads the same at every width, on paper and without
scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log, log10

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.charts.model import Band, Distribution, Timeline

LOG_FROM = 20.0
TICKS = 5
OVERVIEW_BINS = 500
_NAME = 160


@dataclass(frozen=True)
class ChartMark:
    """One mark of a row. ``shape``: dot, ring, diamond, span (from x to x2) or tick; ``kind`` names its colour; x in percent."""

    shape: str
    kind: str
    x: float
    x2: float = 0.0


@dataclass(frozen=True)
class ChartRow:
    """One row: its texts, its marks, and for a histogram the outline in a box of ``bins`` by 100."""

    label: str
    value: str
    marks: list[ChartMark]
    tone: str = ""
    outline: str = ""
    bins: int = 0
    kind: str = "self"


@dataclass(frozen=True)
class RowChart:
    """Rows on one axis; ``ticks`` are (percent, text, anchor), ``lines`` reach over all rows: (percent, width, kind)."""

    title: str
    rows: list[ChartRow]
    ticks: list[tuple[float, str, str]]
    axis: str
    lines: list[tuple[float, float, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float
    logarithmic: bool

    def at(self, value: float) -> float:
        """Return the place of a value in percent, within the axis."""
        if self.logarithmic:
            share = log(max(value, self.low) / self.low) / log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self, text: Callable[[float], str]) -> list[tuple[float, str, str]]:
        """Return up to :data:`TICKS` round places, far enough apart for their texts on a telephone."""
        found: list[tuple[float, str, str]] = []
        for value in self._log() if self.logarithmic else self._linear():
            x = self.at(value)
            if not found or x - found[-1][0] >= 100 / (TICKS + 1):
                found.append((x, text(value), "start" if x < 8 else "end" if x > 92 else "middle"))
        return found

    def _linear(self) -> list[float]:
        step = _round_up((self.high - self.low) / TICKS)
        return [k * step for k in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]

    def _log(self) -> list[float]:
        if self.high / self.low < 10:
            return self._linear()
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 3 else (1,)
        every = max(1, ceil(len(powers) / TICKS))
        values = [s * 10.0**p for p in powers if p % every == 0 for s in steps]
        return [v for v in values if self.low <= v <= self.high]


def _round_up(value: float) -> float:
    ten = 10.0 ** floor(log10(value))
    return next(s * ten for s in (1, 2, 5, 10) if s * ten >= value * (1 - 1e-9))


def time_axis(values: Sequence[float], *, logarithmic: bool | None = None) -> Axis:
    """Return the axis of these durations in us: logarithmic where they span much."""
    above = [v for v in values if v > 0] or [1.0]
    low, high = min(above), max(above)
    if logarithmic if logarithmic is not None else high / low >= LOG_FROM:
        return Axis(low / 1.3, high * 1.3, True)
    return Axis(0.0, high * 1.04, False)


def short_time(value_us: float) -> str:
    """Return a round duration for an axis: ``20 us``, ``1.5 ms``."""
    return "0" if value_us == 0 else show.duration(value_us)


def distribution_chart(found: Distribution, kinds: dict[str, str]) -> RowChart:
    """Return one population per row: all its values as a histogram, its median as a tick, its quantiles in words."""
    axis = Axis(found.edges_ns[0] / 1000 or 1e-6, found.edges_ns[-1] / 1000, True) if found.logarithmic else Axis(
        found.edges_ns[0] / 1000, found.edges_ns[-1] / 1000, False
    )  # fmt: skip
    rows = [_band_row(b, axis, kinds.get(b.label, "self")) for b in found.bands]
    notes = [f"dashed: {terminal(m.label, 60)} {show.time(m.at_ns / 1000)}" for m in found.marks]
    notes += [
        f"{b.below:,} of {terminal(b.label, 60)} lie below the axis and count in the first bar"
        for b in found.bands
        if b.below
    ]
    return RowChart(
        title=terminal(f"{found.kind}: {found.title}" if found.kind else found.title, _NAME),
        rows=rows,
        ticks=axis.ticks(short_time),
        axis="logarithmic" if found.logarithmic else "",
        lines=[(axis.at(m.at_ns / 1000), 0.0, "reading") for m in found.marks],
        notes=notes,
    )


def _band_row(band: Band, axis: Axis, kind: str) -> ChartRow:
    ordered = band.samples_ns

    def rank(share: float) -> str:
        return show.time(ordered[round(share * (len(ordered) - 1))] / 1000)

    most = max(band.counts) or 1
    steps = []
    for n, count in enumerate(band.counts):
        if count:
            # a bar of one value among thousands must still be seen
            high = max(4, round(100 * count / most))
            steps.append(f"M{n} 100v-{high}h1v{high}")
    spread = f"p5 {rank(0.05)}, p95 {rank(0.95)}, " if len(ordered) >= 20 else ""
    return ChartRow(
        label=terminal(band.label, 60),
        value=f"p50 {show.time(band.p50_ns / 1000)}, n {band.n:,} ({spread}{rank(0)} to {rank(1)})",
        marks=[ChartMark("tick", "fg", axis.at(band.p50_ns / 1000))],
        outline="".join(steps),
        bins=len(band.counts),
        kind=kind,
    )


def overview(timeline: Timeline) -> dict[str, object]:
    """Return the whole trace as two outlines in a box of OVERVIEW_BINS by 100: how busy the host's calls and the device were."""
    span = timeline.end_ns - timeline.begin_ns

    def outline(kind: str) -> str:
        lanes = [lane.busy_permille for lane in timeline.lanes if lane.kind == kind and lane.busy_permille]
        if not lanes:
            return ""
        bins = len(lanes[0])
        size = max(1, ceil(bins / OVERVIEW_BINS))
        parts = []
        for n in range(0, bins, size):
            high = ceil(max(max(lane[n : n + size]) for lane in lanes) / 10)
            if high:
                wide = round(OVERVIEW_BINS * min(size, bins - n) / bins, 2)
                parts.append(f"M{round(OVERVIEW_BINS * n / bins, 2):g} 100v-{high}h{wide:g}v{high}")
        return "".join(parts)

    def at(ns: float) -> float:
        return round(100 * (ns - timeline.begin_ns) / span, 2)

    evidence = [(at(v.at_ns), number + 1) for number, part in enumerate(timeline.views) for v in part[:1]]
    windows = [] if timeline.whole else [(at(a), max(0.1, round(at(b) - at(a), 2))) for a, b in timeline.windows[:200]]
    return {
        "host": outline("calls"), "device": outline("stream"), "bins": OVERVIEW_BINS, "evidence": evidence, "windows": windows,
        "begin": show.duration(timeline.begin_ns / 1000) if timeline.begin_ns else "0", "end": show.duration(timeline.end_ns / 1000),
    }  # fmt: skip
