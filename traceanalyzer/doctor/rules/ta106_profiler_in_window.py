"""TA106 profiler-in-window: the profiler worked inside the measured window.

What it checks
    Overhead records of the profiler (buffer requests, flushes, instrumentation) during the launches.

Why it matters
    A flush in the middle of a launch holds the host for milliseconds, and the device waits.

How it is decided
    Overhead within the launches' window over 1 % of it, or one record over 1 ms. The intervals are left out
    of the steady dispatch. A note: medians do not move. Where a device is idle during the profiler's own work for a
    large part of its span, that is a warning with its cost. PROVEN.

Example
    One buffer request of 2,980 us among launches 10 us apart: the mean dispatch is 436 us, the median 10.

What to do
    Enlarge the buffers; drop the first profiler cycle; quote medians.

When it is wrong
    Overhead that falls into idle time does no harm.

References
    pytorch/kineto#1020.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.causes import Family, causes
from traceanalyzer.doctor.example import kernel, launch, loop, overhead
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.ledger_rule import cost_numbers, cost_params
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    overhead_evidence,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import IDLE_SHARE, Threshold

OVERHEAD_SHARE = Threshold(
    "overhead_share", 0.01, "share of the launches window", "1 % of profiler work moves a mean by as much"
)
OVERHEAD_US = Threshold("overhead_us", 1000.0, "us", "one millisecond in one piece is an event of its own")
REMEDY = ["drop the first profiler cycle and enlarge its buffers", "quote medians"]


def _stopped(length: float) -> list[dict[str, Any]]:
    """Return 40 launches 10 us apart, with a pause of ``length`` us behind the 21st."""
    events: list[dict[str, Any]] = []
    for i in range(40):
        at = 10 * i + (length if i > 20 else 0)
        events += [launch(at, i + 1), kernel(at + 4, 4, i + 1)]
    return events


class ProfilerInWindow(Rule):
    """The profiler worked inside the measured window."""

    code = "TA106"
    name = "profiler-in-window"
    family = "integrity"
    thresholds = (OVERHEAD_SHARE, OVERHEAD_US, IDLE_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "profiler-in-window": Message(
            "the profiler worked inside the window",
            "The profiler's own work takes {spent_ns:time} ({share:share}) of the launches' window, {longest_ns:time} at most in one piece. "
            "Intervals it fills are left out of the steady dispatch; means over the window hold it.",
        ),
        "profiler-holds": Message(
            "the profiler itself holds the device up: {cost_ns:time}, {share:share} of its span, is the profiler's own work, most in {top:cause}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the profiler works: {top:cause} {top_ns:time} in "
            "{top_count:plural idle interval}, {top_longest_ns:time} at most. Without the profiler the run does not lose this time; medians do not hold it.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "the launches stop for a buffer request of 3 ms, and the device with them",
                (*_stopped(3000), overhead("Activity Buffer Request", 203, 3000)),
                allows=("TA201", "TA202", "TA203", "TA205", "TA211", "TA504", "TA501"),
            ),
            Example("a buffer request of 3 ms", (*loop(20, 40, 50), overhead("Activity Buffer Request", 1290, 3000))),
        )
    )
    negative = Examples(lambda: (Example("a short flush", (*loop(60, 40, 50), overhead("Buffer Flush", 1290, 4))),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        over, calls = analysis.trace.overheads, analysis.trace.calls
        at = calls.start_ns[analysis.host.launches & analysis.chosen.calls]
        if len(at) < 2 or not len(over):
            return []
        low, high = int(at.min()), int(at.max())
        names = [analysis.trace.names[i].lower() for i in over.name.tolist()]
        ours = np.array(
            ["lazy" not in n and "module" not in n and "command buffer" not in n for n in names], dtype=bool
        )
        inside = np.flatnonzero(ours & (over.end_ns > low) & (over.start_ns < high))
        if not len(inside):
            return []
        starts, ends = np.maximum(over.start_ns[inside], low), np.minimum(over.end_ns[inside], high)
        spent = intervals.length(*intervals.union(starts, ends))
        longest = int((ends - starts).max())
        share = spent / max(1, high - low)
        limit, long_limit = (
            analysis.options.threshold(OVERHEAD_SHARE),
            analysis.options.threshold(OVERHEAD_US) * 1000,
        )
        if share <= limit and longest <= long_limit:
            return []
        if holding := self._holding(analysis):
            return holding
        worst = inside[np.argsort(starts - ends, kind="stable")][:3]
        return [
            self.say(
                "profiler-in-window",
                Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"spent_ns": spent, "share": share, "longest_ns": longest},
                numbers={
                    "overhead_us": us(spent),
                    "share": round(share, 6),
                    "threshold_share": limit,
                    "longest_us": us(longest),
                    "threshold_longest_us": long_limit / 1000,
                },
                evidence=[overhead_evidence(analysis, int(r)) for r in worst.tolist()],
                remedy=REMEDY,
            )
        ]

    def _holding(self, analysis: Analysis) -> list[Finding]:
        """Return a finding for each device that is idle for much of its span because the profiler works."""
        if analysis.clocks.state is ClockState.DISAGREE:
            return []
        found = []
        for device in causes(analysis):
            mask = device.families[Family.PROFILER]
            if not mask.any() or device.share(mask) < analysis.options.threshold(IDLE_SHARE):
                continue
            params = cost_params(device, mask)
            found.append(
                self.say(
                    "profiler-holds", Severity.WARNING, Grade.PROVEN, device.subject, params,
                    numbers=cost_numbers(analysis, params), evidence=device.evidence(mask, "the profiler's own work"), remedy=REMEDY,
                    cost=device.cost(mask),
                )
            )  # fmt: skip
        return found
