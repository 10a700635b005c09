"""Figures as the page's scripts read them: columns of integers, times as differences to the row before, names made harmless."""

from __future__ import annotations

from typing import Any

from traceanalyzer.render.blocks import LADDER_TITLES, short_names
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.measured import TITLES
from traceanalyzer.report.charts.model import DepthSeries, Distribution, Lane, Timeline
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import OpRow

NAME = 160


def report_figures(report: ReportData) -> dict[str, Any]:
    """Return the data of every chart of a report; charts without data are absent."""
    figures = report.figures
    result: dict[str, Any] = {}
    if figures is not None:
        if figures.timeline is not None:
            result["timeline"] = _timeline(figures.timeline)
        if figures.depth:
            result["depth"] = [_depth(d) for d in figures.depth]
        if figures.distributions:
            result["distributions"] = [distribution_data(d) for d in figures.distributions]
    short = short_names(report)
    ladders = [ladder_data(op, short.get(op.name, op.name)) for op in report.ops if has_ladder(op)]
    if ladders:
        result["ladders"] = ladders
    return result


def has_ladder(op: OpRow) -> bool:
    """Return whether an operation has readings beyond its self-time."""
    return any(
        v is not None for p, v in (*op.readings.items(), *op.readings_measured.items()) if p != "profiler_self_time"
    )


def ladder_data(op: OpRow, name: str) -> dict[str, Any]:
    """Return the readings of one operation in us, protocol by protocol."""
    return {
        "title": terminal(name, NAME),
        "self": op.self_time_p50_us,
        "rows": [
            [title, op.readings.get(p), op.readings_replayed.get(p), op.readings_measured.get(p)]
            for p, title in protocol_titles(op).items()
        ],
    }  # fmt: skip


def protocol_titles(op: OpRow) -> dict[str, str]:
    """Return the protocols of the ladder, then those that only a capture measured, with their titles."""
    extra = [p for p in op.readings_measured if p not in LADDER_TITLES]
    return {**LADDER_TITLES, **{p: terminal(TITLES.get(p, p.replace("_", " ")), 60) for p in extra}}


def distribution_data(found: Distribution) -> dict[str, Any]:
    """Return one distribution, in ns."""
    return {
        "title": terminal(found.title, NAME), "kind": found.kind, "log": found.logarithmic, "edges": found.edges_ns,
        "bands": [
            {"label": b.label, "n": b.n, "p50": b.p50_ns, "counts": b.counts, "samples": _differences(b.samples_ns), "below": b.below}
            for b in found.bands
        ],
        "marks": [{"label": m.label, "at": m.at_ns} for m in found.marks],
    }  # fmt: skip


def _timeline(found: Timeline) -> dict[str, Any]:
    return {
        "begin": found.begin_ns,
        "end": found.end_ns,
        "names": [terminal(n, NAME) for n in found.names],
        "windows": found.windows,
        "lanes": [_lane(lane) for lane in found.lanes],
        "views": [[[v.from_ns, v.to_ns, v.at_ns, v.dur_ns] for v in part] for part in found.views],
        "pauses": [[[v.from_ns, v.to_ns, v.at_ns, v.dur_ns] for v in part] for part in found.pauses],
    }


def _lane(lane: Lane) -> dict[str, Any]:
    return {
        "kind": lane.kind, "label": terminal(lane.label, 60), "total": lane.total, "busy": lane.busy_permille, "start": _differences(lane.start_ns),
        "dur": lane.dur_ns, "name": lane.name, "tag": lane.tag, "link": lane.link,
    }  # fmt: skip


def _depth(found: DepthSeries) -> dict[str, Any]:
    return {
        "label": terminal(found.label, 60), "at": _differences(found.at_ns), "depth": found.depth, "starved": _differences(found.starved_ns),
        "starvedTotal": found.starved,
    }  # fmt: skip


def _differences(values: list[int]) -> list[int]:
    """Return each value's difference to the one before it; the first stays."""
    return [b - a for a, b in zip([0, *values], values, strict=False)]
