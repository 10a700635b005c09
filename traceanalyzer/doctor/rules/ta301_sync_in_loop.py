"""TA301 sync-in-loop: a synchronise in every iteration empties the queue.

What it checks
    How many synchronise calls lie between successive calls of an operation.

Why it matters
    Each call then starts on an idle device: a wall clock reads dispatch + latency + kernel + synchronise,
    an event pair dispatch + kernel. The ranking of two kernels can turn around.

How it is decided
    Synchronise calls per iteration over 0.8, iterations counted from one call to the next. PROVEN. A
    closing synchronise behind the loop does not count.

Example
    Fill, synchronise, start event, kernel: the pair reads 45 us for a kernel of 4 us.

What to do
    Synchronise once, behind the loop; for the kernel alone read its self-time.

When it is wrong
    A latency benchmark may want it: then say that the number is latency.

References
    flashinfer-ai/flashinfer-bench#195, pytorch/pytorch#75393.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
    loop,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    call_evidence,
    short,
    show_us,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

SYNCS_PER_ITERATION = Threshold(
    "syncs_per_iteration", 0.8, "synchronises per iteration", "four of five iterations: it belongs to the loop"
)
LOOP_CALLS = Threshold("loop_calls", 3, "calls", "fewer than three calls, two intervals, are no loop")


class SyncInLoop(Rule):
    """A synchronise in every iteration empties the queue."""

    code = "TA301"
    name = "sync-in-loop"
    family = "sync"
    thresholds = (SYNCS_PER_ITERATION, LOOP_CALLS)
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "a synchronise behind each call", loop(12, 20, 10, sync=6.0), allows=("TA202", "TA406", "TA504", "TA501")
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
        Example("one synchronise behind the loop", (*loop(12, 12, 10), call(1200, 10, "cudaDeviceSynchronize", 999))),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        calls = analysis.trace.calls
        found = []
        for op in analysis.operations:
            starts = [int(calls.start_ns[c[0]]) for c in op.iterations.calls if len(c)]
            threads = {int(calls.thread[c[0]]) for c in op.iterations.calls if len(c)}
            if len(starts) < max(2, analysis.options.threshold(LOOP_CALLS)):
                continue
            at = np.flatnonzero(analysis.host.syncs & np.isin(calls.thread, list(threads)))
            at = at[(calls.start_ns[at] >= starts[0]) & (calls.start_ns[at] < starts[-1])]
            per = len(at) / (len(starts) - 1)
            if per < analysis.options.threshold(SYNCS_PER_ITERATION):
                continue
            reading = op.readings.get("event_pair_sync")
            wall = op.readings.get("wall_sync_each")
            own = stats.median(op.self_ns)
            ladder = (
                f" A wall clock reads about {show_us(wall)}, an event pair {show_us(reading)}."
                if wall and reading
                else ""
            )
            found.append(
                self.finding(
                    Severity.WARNING,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    f"synchronise in the loop of `{short(op.iterations.name)}`",
                    f"{len(at)} synchronises in {len(starts) - 1} iterations ({per:.1f} each) drain the queue before every call of "
                    f"`{short(op.iterations.name)}`, whose kernels take {show_us(own)}.{ladder}",
                    {
                        "synchronises": len(at),
                        "iterations": len(starts) - 1,
                        "per_iteration": round(per, 3),
                        "threshold_per_iteration": analysis.options.threshold(SYNCS_PER_ITERATION),
                        "self_time_p50_us": us(own),
                        "wall_sync_each_us": us(wall),
                        "event_pair_sync_us": us(reading),
                    },
                    [call_evidence(analysis, int(r)) for r in at[:3].tolist()],
                    [
                        "synchronise once, behind the loop, and divide by the number of calls",
                        "quote self-time for the kernel",
                    ],
                )
            )
        return found
