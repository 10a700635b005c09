"""Figures as the page's scripts read them: columns of integers, times as differences to the row before, names made harmless."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from traceanalyzer.render.blocks import LADDER_TITLES
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.ledger import word
from traceanalyzer.render.measured import TITLES
from traceanalyzer.report.charts.model import DepthSeries, Timeline, TimelineLane
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import OpRow

NAME = 160


def report_figures(report: ReportData) -> dict[str, Any]:
    """Return the data of every chart of a report; charts without data are absent."""
    figures = report.figures
    result: dict[str, Any] = {}
    if figures is not None and figures.timeline is not None:
        result["timeline"] = timeline_data(figures.timeline, figures.depth)
    return result


def has_ladder(op: OpRow) -> bool:
    """Return whether an operation has readings beyond its self-time."""
    return any(
        v is not None for p, v in (*op.readings.items(), *op.readings_measured.items()) if p != "profiler_self_time"
    )


def protocol_titles(op: OpRow) -> dict[str, str]:
    """Return the protocols of the ladder, then those that only a capture measured, with their titles."""
    extra = [p for p in op.readings_measured if p not in LADDER_TITLES]
    return {**LADDER_TITLES, **{p: terminal(TITLES.get(p, p.replace("_", " ")), 60) for p in extra}}


def timeline_data(found: Timeline, depth: list[DepthSeries]) -> dict[str, Any]:
    """Return one timeline and its queue depths."""
    return {
        "begin": found.begin_ns,
        "end": found.end_ns,
        "names": [terminal(n, NAME) for n in found.names],
        "windows": found.windows,
        "lanes": [_lane(lane) for lane in found.lanes],
        "views": [[[v.from_ns, v.to_ns, v.at_ns, v.dur_ns] for v in part] for part in found.views],
        "pauses": [[[v.from_ns, v.to_ns, v.at_ns, v.dur_ns] for v in part] for part in found.pauses],
        "causes": [[word(cls), terminal(name, NAME)] for cls, name in found.causes],
        "noCauses": not found.causes_known,
        "depth": [_depth(d) for d in depth],
    }


def _lane(lane: TimelineLane) -> dict[str, Any]:
    return {
        "kind": lane.kind, "label": terminal(lane.label, 60), "total": lane.total, "busy": packed(lane.busy_permille), "start": packed(_differences(lane.start_ns)),
        "dur": packed(lane.dur_ns), "name": packed(lane.name), "tag": packed(lane.tag), "link": packed(_differences(lane.link)),
        "gapAt": packed(_differences(lane.gap_at)), "gap": packed(lane.gap_ns), "gapCause": packed(lane.gap_cause),
    }  # fmt: skip


def _depth(found: DepthSeries) -> dict[str, Any]:
    return {
        "label": terminal(found.label, 60), "at": packed(_differences(found.at_ns)), "depth": packed(found.depth),
        "starved": packed(_differences(found.starved_ns)), "starvedTotal": found.starved,
    }  # fmt: skip


def _differences(values: list[int]) -> list[int]:
    """Return each value's difference to the one before it; the first stays."""
    return [b - a for a, b in zip([0, *values], values, strict=False)]


def packed(values: list[int]) -> str:
    """Return integers as base64 of variable-length bytes: seven bits each, the lowest first, the sign in the first bit.

    Less than half of what digits and commas take. ``TA.unpack`` reads it.
    """
    if not values:
        return ""
    left = np.array(values, dtype=np.int64)
    left = np.where(left < 0, -2 * left - 1, 2 * left).astype(np.uint64)
    digits = []
    for _ in range(10):
        digits.append((left & np.uint64(127)).astype(np.uint8))
        left >>= np.uint64(7)
        if not left.any():
            break
    table = np.stack(digits, axis=1)
    # of each value the digits up to its last one that is not zero
    last = table.shape[1] - 1 - np.argmax((table != 0)[:, ::-1], axis=1)
    last[~(table != 0).any(axis=1)] = 0
    place = np.arange(table.shape[1])
    table[place < last[:, None]] |= 128
    return base64.b64encode(table[place <= last[:, None]].tobytes()).decode()
