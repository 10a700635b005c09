"""TA204 queue-full: the launch queue was full, so launch intervals measure the device.

What it checks
    Whether launch calls blocked because the stream held all the entries it can.

Why it matters
    A full queue makes each launch wait for the device. The interval between launches then tends to the
    kernel time and is no dispatch.

How it is decided
    A "Command Buffer Full" record of the profiler, or launches over five times the median call with 1000 or
    more rows waiting; any fires. PROVEN. Such intervals are left out of the steady dispatch.

Example
    A training step that launches far ahead: 1,022 rows wait, launch calls take as long as kernels.

What to do
    Quote the steady dispatch; nothing is wrong with device times.

When it is wrong
    Lazy loading and allocation make long launch calls too, but not behind 1000 waiting rows.

References
    timing-model.md B.6; HTA carries 1024 as the depth.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    loop,
    overhead,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
)

FULL_DEPTH = 1000
"""Rows waiting at which a queue of about 1024 entries counts as full."""


class QueueFull(Rule):
    """The launch queue was full, so launch intervals measure the device."""

    code = "TA204"
    name = "queue-full"
    family = "queue"
    thresholds = ()
    positive: ClassVar[tuple[Example, ...]] = (
        Example("the profiler says so", (*loop(8, 10, 30), overhead("Command Buffer Full", 1020, 4))),
    )
    negative: ClassVar[tuple[Example, ...]] = (Example("a deep but not full queue", loop(40, 10, 35)),)

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        names = [
            n
            for n in (analysis.trace.names[i] for i in analysis.trace.overheads.name.tolist())
            if "command buffer full" in n.lower()
        ]
        depth = int(analysis.depth.max(initial=0))
        calls = analysis.trace.calls
        length = calls.end_ns - calls.start_ns
        typical = stats.median(length[analysis.host.launches]) or 0.0
        opens = np.flatnonzero(analysis.waits.opens_call & (analysis.depth >= FULL_DEPTH))
        blocked = opens[length[analysis.trace.activities.call[opens]] > 5 * typical] if typical else opens[:0]
        if not names and not len(blocked):
            return []
        return [
            self.finding(
                Severity.NOTE,
                Grade.PROVEN,
                "trace",
                "the launch queue was full",
                f"{len(blocked)} launch calls blocked behind up to {depth} waiting rows"
                + (f" and the profiler recorded {len(names)} full command buffers" if names else "")
                + ": launch intervals there measure the device, not dispatch. They are left out of the steady dispatch.",
                {
                    "blocked_launches": len(blocked),
                    "deepest_queue": depth,
                    "threshold_depth": FULL_DEPTH,
                    "full_buffer_records": len(names),
                },
                [
                    activity_evidence(analysis, int(r), f"{int(analysis.depth[r])} rows were waiting")
                    for r in blocked[:3].tolist()
                ],
                ["quote the steady dispatch"],
            )
        ]
