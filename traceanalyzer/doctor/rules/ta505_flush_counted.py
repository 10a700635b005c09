"""TA505 flush-counted: a cache clear is inside the measured window.

What it checks
    Whether a fill leads each call, and whether a GPU-side annotation counts it.

Why it matters
    Harnesses that sum what overlaps a projected annotation count the clear as the kernel.

How it is decided
    A fill of 4 us or more before the work in nine of ten calls is a clear; it counts in no self-time here.
    A warning when device rows that overlap a projected range were launched outside of it and make it over 5
    % longer; else a note. PROVEN.

Example
    Fill 58 us, kernel 4.5 us: the GPU-side window sums 62.5 us for a region that launched 4.5.

What to do
    Attribute work by where it was launched; quote the self-time of the kernel.

When it is wrong
    An operation that truly zeroes its output.

References
    tile-ai/TileOPs#1725.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import intervals, stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    device_range,
    fill,
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message, numbered
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

CLEAR_SHARE = Threshold("clear_share", 0.05, "share of self-time", "5 % of foreign time misleads")


class FlushCounted(Rule):
    """A cache clear is inside the measured window."""

    code = "TA505"
    name = "flush-counted"
    family = "cache"
    thresholds = (CLEAR_SHARE,)
    messages: ClassVar[dict[str, Message]] = {
        "work-from-outside": Message(
            "the GPU-side window of {operation:name} holds work launched elsewhere",
            "What overlaps the projected range {operation:name} sums to {window_ns:time} per call, but only {inside_ns:time} of it was launched in the range "
            "({excess:factor} too much): {first:name}[[, {second:name}]][[, {third:name}]] came from outside, as a cache clear does.",
        ),
        "clear-leads": Message(
            "a cache clear leads each call of {operation:name}",
            "A fill of {clear_ns:time} leads {clears:plural call}; it is shown apart and counts in no self-time of {operation:name} ({self_ns:time}).",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a fill launched before the range, inside its projection",
                tuple(
                    e
                    for i in range(5)
                    for e in (
                        *fill(200 * i, 200 * i + 10, 58, 10 * i + 1),
                        host_range("bench_region", 200 * i + 10, 10),
                        launch(200 * i + 12, 10 * i + 2),
                        kernel(200 * i + 70, 4.5, 10 * i + 2),
                        device_range("bench_region", 200 * i + 9.999, 64.502),
                    )
                ),
                allows=(
                    "TA201",
                    "TA202",
                    "TA406",
                    "TA501",
                    "TA203",
                    "TA211",
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a projection that holds its own work alone",
                tuple(
                    e
                    for i in range(5)
                    for e in (
                        host_range("bench_region", 200 * i + 10, 10),
                        launch(200 * i + 12, i + 1),
                        kernel(200 * i + 20, 4.5, i + 1),
                        device_range("bench_region", 200 * i + 19.999, 4.502),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        rows, ranges = analysis.trace.activities, analysis.trace.ranges
        found = []
        for op in measured(analysis):
            cleared = op.clear_ns[op.clear_ns > 0]
            own = float(op.self_ns.sum())
            if len(cleared) and float(cleared.sum()) > analysis.options.threshold(CLEAR_SHARE) * own:
                found.append(
                    self.say(
                        "clear-leads",
                        Severity.NOTE,
                        Grade.PROVEN,
                        on_operation(analysis, op),
                        {
                            "operation": op.iterations.name,
                            "clear_ns": stats.median(cleared),
                            "clears": len(cleared),
                            "self_ns": stats.median(op.self_ns),
                        },
                        numbers={
                            "clears": len(cleared),
                            "clear_p50_us": us(stats.median(cleared)),
                            "self_time_p50_us": us(stats.median(op.self_ns)),
                            "threshold_share": analysis.options.threshold(CLEAR_SHARE),
                        },
                        evidence=[
                            activity_evidence(analysis, int(r), "cache clear")
                            for r in np.flatnonzero(op.clear)[:3].tolist()
                        ],
                        remedy=["quote the self-time without the clear"],
                    )
                )
            if op.iterations.windows is None:
                continue
            names = {analysis.trace.names[i] for i in ranges.name[ranges.on_device].tolist()}
            projected = np.flatnonzero(
                ranges.on_device
                & np.array(
                    [analysis.trace.names[i].startswith(op.iterations.name) for i in ranges.name.tolist()], dtype=bool
                )
            )
            if not len(projected) or not names:
                continue
            mine = np.zeros(len(rows), dtype=bool)
            for part in op.iterations.rows:
                mine[part] = True
            inside = intervals.overlaps_any(
                rows.start_ns, rows.end_ns, ranges.start_ns[projected] + 1, ranges.end_ns[projected] - 1
            )
            foreign = np.flatnonzero(inside & ~mine & analysis.chosen.rows)
            extra, own_all = int(rows.dur_ns[foreign].sum()), int(rows.dur_ns[mine].sum())
            if not own_all or extra <= analysis.options.threshold(CLEAR_SHARE) * own_all:
                continue
            n = max(1, len(op.worked))
            others = [analysis.trace.names[i] for i in rows.name[foreign[:50]].tolist()]
            found.append(
                self.say(
                    "work-from-outside",
                    Severity.WARNING,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "window_ns": (own_all + extra) / n,
                        "inside_ns": own_all / n,
                        "excess": (own_all + extra) / own_all,
                        **numbered(others),
                    },
                    numbers={
                        "window_us_per_call": us((own_all + extra) / n),
                        "launched_inside_us_per_call": us(own_all / n),
                        "foreign_rows": len(foreign),
                        "threshold_share": analysis.options.threshold(CLEAR_SHARE),
                    },
                    evidence=[
                        activity_evidence(analysis, int(r), "launched outside the range") for r in foreign[:3].tolist()
                    ],
                    remedy=["attribute work by where its launch call lies", "quote the self-time of the target kernel"],
                )
            )
        return found
