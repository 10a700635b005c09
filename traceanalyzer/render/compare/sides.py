"""Both sides of a comparison on one axis: where the time of the compared unit went, and the timelines as the page's script reads them."""

from __future__ import annotations

from typing import Any

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.ledger import BUSY, word
from traceanalyzer.render.page.charts import timeline_data
from traceanalyzer.render.page.content import COLOURS
from traceanalyzer.render.page.svg import Axis, overview, short_time
from traceanalyzer.report.charts.model import ComparisonFigures, SideFigures
from traceanalyzer.report.compare.model import ComparisonData
from traceanalyzer.report.compare.unit_model import UnitComparison

_MARGIN = 1.02
_MOST = 8
_OUTSIDE = {"before_first_row": "before the first device row", "after_last_row": "after the last device row"}


def ledger_bars(unit: UnitComparison) -> dict[str, Any] | None:
    """Return two bars of 1000 on one axis of time, base above head, and a legend with both sides' times; None without ledgers."""
    rows = [d for d in unit.ledger_difference if d.base_us > 0 or d.head_us > 0]
    if not rows:
        return None
    busy = [d for b in BUSY for d in rows if d.what == b]
    order = busy + sorted((d for d in rows if d.what not in BUSY), key=lambda d: -max(d.base_us, d.head_us))
    longest = max(sum(d.base_us for d in rows), sum(d.head_us for d in rows))
    bars = []
    for name, side in (("base", "base_us"), ("head", "head_us")):
        parts, x = [], 0.0
        for d in order:
            value = getattr(d, side)
            if value <= 0:
                continue
            width = 1000 * value / longest
            text = f"{_word(d.what)} {show.time(value)}"
            parts.append(
                {"kind": _kind(d.what), "x": round(x, 2), "width": round(width, 2), "text": terminal(text, 200)}
            )
            x += width
        total = show.time(sum(getattr(d, side) for d in rows))
        bars.append({"side": name, "total": total, "parts": parts, "text": "; ".join(p["text"] for p in parts)})
    legend = [
        {
            "kind": _kind(d.what),
            "text": f"{_word(d.what)} {show.time(d.base_us) if d.base_us else '0'} -> {show.time(d.head_us) if d.head_us else '0'}",
        }
        for d in sorted(order, key=lambda d: -max(d.base_us, d.head_us))[:_MOST]
    ]
    ticks = Axis(0.0, longest, False).ticks(short_time)
    return {"bars": bars, "legend": legend, "ticks": ticks, "unit": terminal(unit.name, 120), "value": unit.value}


def _word(what: str) -> str:
    return _OUTSIDE.get(what) or word(what)


def _kind(what: str) -> str:
    return what if what in BUSY else COLOURS.get(what, "other")


def timelines(data: ComparisonData, figures: ComparisonFigures) -> list[dict[str, Any]]:
    """Return what the template needs of both timelines, base first; none where a side has no rows to draw."""
    if figures.sides is None:
        return []
    names = (data.base.name, data.head.name)
    return [
        {"side": side, "name": terminal(name, 200), "overview": overview(found.timeline)}
        for side, name, found in zip(("base", "head"), names, figures.sides, strict=True)
    ]


def timelines_data(figures: ComparisonFigures) -> dict[str, Any] | None:
    """Return both timelines for the script, and the stretch that each opens on: one repeat of the unit, else the whole trace.

    Both stretches have one length, so that the axis is the same.
    """
    if figures.sides is None:
        return None
    spans = [_span(side) for side in figures.sides]
    length = int(max(end - begin for begin, end in spans) * _MARGIN)
    return {
        "sides": [timeline_data(side.timeline, side.depth) for side in figures.sides],
        "zero": [begin for begin, _ in spans],
        "length": length,
        "repeat": all(side.repeat is not None for side in figures.sides),
    }


def _span(side: SideFigures) -> tuple[int, int]:
    return side.repeat or (side.timeline.begin_ns, side.timeline.end_ns)
