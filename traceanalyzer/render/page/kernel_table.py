"""The kernel table of a page: times with their units and the number to sort by, configurations folded below their kernel."""

from __future__ import annotations

from typing import Any

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import KernelRow

VARIANTS, MOST_VARIANTS, OPEN = 20, 300, 8
_NAME, _FULL_NAME = 120, 400
COLUMNS = [
    ("kernel", "name"), ("self p50", ""), ("95% CI", ""), ("n", ""), ("total", ""), ("share", ""), ("dispatch p50", ""), ("event pair reads", ""),
    ("inflation", ""), ("starved", ""), ("self of reading", ""), ("queue", "text"),
]  # fmt: skip
CELLS = COLUMNS[1:10]


def kernel_rows(report: ReportData, top: int) -> list[dict[str, Any]]:
    """Return the rows of the table, largest total first."""
    most = max((k.share for k in report.kernels), default=0.0)
    rows, left = [], MOST_VARIANTS
    for k in report.kernels[:top]:
        rows.append(_kernel(k, most, min(VARIANTS, left)))
        left -= min(len(k.variants), VARIANTS, left)
    return rows


def _kernel(k: KernelRow, most: float, listed: int) -> dict[str, Any]:
    inside = k.in_graph == k.count
    ratio = None if k.inflation is None else max(0.0, min(100.0, round(100 / k.inflation, 1))) if k.inflation else None
    return {
        "label": terminal(k.short_name.strip() or "(no name)", _NAME),
        "full": terminal(k.name, _FULL_NAME) + (f" {terminal(k.config, 200)}" if k.config else ""),
        "cells": _cells(k),
        "share": round(100 * k.share / most, 1) if most else 0.0,
        "bar": ratio,
        "queue": "in graph" if inside else terminal(show.queue(k.queue, k.grade), 40),
        "reason": terminal(k.queue_reason, 300),
        "configurations": len(k.variants),
        "variants": [
            {"label": terminal(v.config or "configuration not recorded", 200), "cells": _cells(v)}
            for v in k.variants[:listed]
        ],
    }  # fmt: skip


def _cells(k: KernelRow) -> list[tuple[str, float | None]]:
    return [
        (show.time(k.p50_us), k.p50_us), (show.time_interval(k.p50_ci95_us), k.p50_ci95_us[0] if k.p50_ci95_us else None), (show.count(k.count), k.count),
        (show.time(k.total_us), k.total_us), (show.percent(k.share), k.share), (show.time(k.dispatch_p50_us), k.dispatch_p50_us),
        (show.time(k.event_reading_us), k.event_reading_us), (show.ratio(k.inflation), k.inflation), (show.count(k.starved), k.starved),
    ]  # fmt: skip


def kernel_notes(report: ReportData, top: int) -> list[str]:
    """Return what a reader of the table must know: what it leaves out, what its rows mix."""
    hidden = report.kernels[top:]
    notes = []
    if hidden:
        share = show.percent(sum(k.share for k in hidden))
        notes.append(f"{show.plural(len(hidden), 'more kernel')} with {share} of kernel time left out of this page")
    if any(k.variants for k in report.kernels[:top]):
        notes.append(
            "configurations: the same name launched in another configuration is another population; its own row mixes them"
        )
    if (
        any(len(k.variants) > VARIANTS for k in report.kernels[:top])
        or sum(len(k.variants) for k in report.kernels[:top]) > MOST_VARIANTS
    ):
        notes.append(f"at most {VARIANTS} configurations of a kernel are listed, {MOST_VARIANTS} in all; all in JSON")
    if any(k.grade for k in report.kernels[:top]):
        notes.append("queue: P proven by rows of this trace, D derived, H hint; n/a not judged")
    return notes
