"""TA105 cut-window: the record ends while work is in flight.

What it checks
    Whether the device was still working when the profiler stopped, with no synchronise behind the last
    launch.

Why it matters
    The last iterations are then incomplete, and launches at the end look lost.

How it is decided
    Launches without a device row come after the last launch that has one, and no synchronise follows them. A
    note. PROVEN.

Example
    A profiler closed right behind an asynchronous loop.

What to do
    Synchronise before the profiler stops.

When it is wrong
    Schedules that cut the window on purpose.

References
    docs/methodology.md, what a trace proves.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
    launch,
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.recording import close_window
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    call_evidence,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE


class CutWindow(Rule):
    """The record ends while work is in flight."""

    code = "TA105"
    name = "cut-window"
    family = "integrity"
    messages: ClassVar[dict[str, Message]] = {
        "cut-window": Message(
            "the record ends while work is in flight",
            "The last {behind:plural launch} have no device row and no synchronise follows them: the profiler stopped while the device worked.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "launches after the last kernel record",
                (*loop(12, 40, 45), launch(3000, 900), launch(3040, 901)),
                allows=("TA103",),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a synchronise closes the window", (*loop(12, 40, 45), call(2000, 50, "cudaDeviceSynchronize", 900))
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        rows, calls = analysis.trace.activities, analysis.trace.calls
        lost = analysis.coverage.lost
        if not analysis.coverage.linked or not lost:
            return []
        owning = np.flatnonzero(analysis.host.owns)
        last_owned = int(calls.start_ns[owning].max()) if len(owning) else 0
        behind = [row for row in lost if int(calls.start_ns[row]) > last_owned]
        synced = analysis.host.syncs & (calls.start_ns > last_owned)
        if not behind or synced.any():
            return []
        end = int(rows.end_ns[analysis.chosen.rows].max())
        return [
            self.say(
                "cut-window",
                Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"behind": len(behind)},
                numbers={
                    "launches_without_row_at_end": len(behind),
                    "last_row_ends_us": us(end - analysis.trace.meta.origin_ns),
                    "threshold_launches": 0,
                },
                evidence=[call_evidence(analysis, row, "no device row") for row in behind[-3:]],
                remedy=[close_window(analysis.trace)],
            )
        ]
