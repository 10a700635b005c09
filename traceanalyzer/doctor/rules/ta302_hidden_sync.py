"""TA302 hidden-sync: a copy in every iteration blocks the host.

What it checks
    Whether iterations hold a copy that makes the host wait: from pageable memory, or to the host with a
    synchronise behind it.

Why it matters
    Such a copy drains the queue as a synchronise does, and often outweighs the kernel. item(), cpu() and
    inputs on ordinary host memory do this.

How it is decided
    Copies named Pageable whose call lasts as long as the copy, or device-to-host copies directly followed
    by a synchronise, in 80 % of the iterations. PROVEN.

Example
    A 200 us pageable copy and a stream synchronise around a kernel of 10 us: events around the loop read
    300 us.

What to do
    Move inputs to the device before the loop, or pin them; keep results on the device until it ends.

When it is wrong
    A needed data-dependent shape is part of the operation.

References
    pytorch/pytorch#135794, cupy/cupy#1999.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    kernel,
    launch,
    loop,
    memcpy,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    show_us,
    us,
)
from traceanalyzer.doctor.rules.ta301_sync_in_loop import LOOP_CALLS
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import NO_ROW

COPY_ITERATIONS = Threshold(
    "copy_iterations", 0.8, "share of iterations", "four of five iterations: it belongs to the loop"
)
COPY_WAIT_SHARE = Threshold(
    "copy_wait_share", 0.8, "call / copy", "a call that lasts four fifths of its copy waited for it"
)
COPY_LEAST_US = Threshold("copy_least_us", 5.0, "us", "a shorter copy costs no more than its call")


class HiddenSync(Rule):
    """A copy in every iteration blocks the host."""

    code = "TA302"
    name = "hidden-sync"
    family = "sync"
    thresholds = (COPY_ITERATIONS, COPY_WAIT_SHARE, COPY_LEAST_US, LOOP_CALLS)
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "inputs from pageable memory in each iteration",
            tuple(
                e
                for i in range(6)
                for e in (
                    *memcpy(300 * i + 4, 300 * i + 10, 200, 10 * i + 1, 210),
                    launch(300 * i + 240, 10 * i + 2),
                    kernel(300 * i + 250, 10, 10 * i + 2),
                )
            ),
            allows=("TA201", "TA202", "TA406", "TA504", "TA501", "TA203"),
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
        Example("one copy before the loop", (*memcpy(0, 10, 200, 900, 210), *loop(12, 12, 10))),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        rows, calls = analysis.trace.activities, analysis.trace.calls
        names = [n.lower() for n in analysis.trace.names]
        pageable = np.array(["pageable" in n for n in names], dtype=bool)
        to_host = np.array(["dtoh" in n for n in names], dtype=bool)
        copies = np.flatnonzero(analysis.chosen.rows & (rows.kind == RowKind.MEMCPY) & (rows.call != NO_ROW))
        if not len(copies) or not analysis.operations:
            return []
        call_of = rows.call[copies]
        wait_share, least_ns = (
            analysis.options.threshold(COPY_WAIT_SHARE),
            analysis.options.threshold(COPY_LEAST_US) * 1000,
        )
        waits = (calls.end_ns[call_of] - calls.start_ns[call_of]) >= wait_share * rows.dur_ns[copies]
        following = np.minimum(call_of + 1, len(calls) - 1)
        synced = analysis.host.syncs[following] & (calls.thread[following] == calls.thread[call_of])
        blocking = copies[
            (pageable[rows.name[copies]] & waits & (rows.dur_ns[copies] > least_ns))
            | (to_host[rows.name[copies]] & synced)
        ]
        if not len(blocking):
            return []
        found = []
        for op in analysis.operations:
            starts = np.array(sorted(int(calls.start_ns[c[0]]) for c in op.iterations.calls if len(c)))
            if len(starts) < max(2, analysis.options.threshold(LOOP_CALLS)):
                continue
            at = calls.start_ns[rows.call[blocking]]
            hit = np.unique(np.searchsorted(starts, at, side="right"))
            share = len(hit[(hit >= 0) & (hit <= len(starts))]) / len(starts)
            if share < analysis.options.threshold(COPY_ITERATIONS):
                continue
            own, copied = int(op.self_ns.sum()), int(rows.dur_ns[blocking].sum())
            found.append(
                self.finding(
                    Severity.WARNING,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    "a blocking copy in the loop",
                    f"{len(blocking)} copies that block the host lie in {share:.0%} of the {len(starts)} iterations; they take {show_us(copied)} against "
                    f"{show_us(own)} of kernels. Timers around the loop measure the copies.",
                    {
                        "blocking_copies": len(blocking),
                        "iterations": len(starts),
                        "share": round(min(1.0, share), 6),
                        "threshold_share": analysis.options.threshold(COPY_ITERATIONS),
                        "copies_us": us(copied),
                        "kernels_us": us(own),
                    },
                    [activity_evidence(analysis, int(r), "the call waits for it") for r in blocking[:3].tolist()],
                    [
                        "move inputs to the device, or to pinned memory, before the loop",
                        "read results back behind the loop",
                    ],
                )
            )
            break
        return found
