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
    docs/methodology.md, the model; HolisticTraceAnalysis takes 1024 for the depth.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    kernel,
    launch,
    loop,
    overhead,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold

FULL_DEPTH = Threshold("full_depth", 1000, "rows waiting", "a launch queue holds about 1024 entries")
BLOCKED_RATIO = Threshold(
    "blocked_ratio",
    5,
    "launch call / median launch call",
    "a call five times as long as the median waited for room in the queue",
)


class QueueFull(Rule):
    """The launch queue was full, so launch intervals measure the device."""

    code = "TA204"
    name = "queue-full"
    family = "queue"
    thresholds = (FULL_DEPTH, BLOCKED_RATIO)
    messages: ClassVar[dict[str, Message]] = {
        "queue-full": Message(
            "the launch queue was full",
            "{blocked:plural launch call} blocked behind up to {depth:plural waiting row}[[ and the profiler recorded {records:plural full command buffer}]]: launch "
            "intervals there measure the device, not dispatch. They are left out of the steady dispatch.",
        ),
    }
    positive = Examples(
        lambda: (Example("the profiler says so", (*loop(8, 10, 30), overhead("Command Buffer Full", 1020, 4))),)
    )
    negative = Examples(
        lambda: (
            Example(
                "a slow launch behind a queue that is deep but not full",
                (*loop(40, 10, 35), launch(1400, 99, 60), kernel(2404, 35, 99)),
            ),
        )
    )

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
        full_depth, ratio = analysis.options.threshold(FULL_DEPTH), analysis.options.threshold(BLOCKED_RATIO)
        opens = np.flatnonzero(analysis.waits.opens_call & (analysis.depth >= full_depth))
        blocked = opens[length[analysis.trace.activities.call[opens]] > ratio * typical] if typical else opens[:0]
        if not names and not len(blocked):
            return []
        return [
            self.say(
                "queue-full",
                Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"blocked": len(blocked), "depth": depth, "records": len(names) or None},
                numbers={
                    "blocked_launches": len(blocked),
                    "deepest_queue": depth,
                    "threshold_depth": full_depth,
                    "full_buffer_records": len(names),
                },
                evidence=[
                    activity_evidence(analysis, int(r), f"{int(analysis.depth[r])} rows were waiting")
                    for r in blocked[:3].tolist()
                ],
                remedy=["quote the steady dispatch"],
            )
        ]
