"""TA305 allocator-in-loop: memory is allocated or freed in the iterations.

What it checks
    Whether iterations behind the first call cudaMalloc, cudaFree, cudaHostAlloc or their kin.

Why it matters
    Allocation costs the host more than most kernels, and freeing waits for the device.

How it is decided
    Such calls in half of the iterations behind the first; stream-ordered allocation (the Async names) does
    not count. PROVEN.

Example
    cudaMalloc 280 us and cudaFree 150 us around a kernel of 25 us: events around the loop read 500 us.

What to do
    Allocate before the loop, or warm the caching allocator up first.

When it is wrong
    The allocation may be what is measured.

References
    iree-org/iree#17012, NVIDIA/Fuser#2673.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
    kernel,
    launch,
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
from traceanalyzer.doctor.rules.ta301_sync_in_loop import LOOP_CALLS
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold
from traceanalyzer.trace.launch_names import ApiClass

MEMORY_ITERATIONS = Threshold(
    "memory_iterations", 0.5, "share of iterations", "half of the iterations behind the first: it belongs to the loop"
)


class AllocatorInLoop(Rule):
    """Memory is allocated or freed in the iterations."""

    code = "TA305"
    name = "allocator-in-loop"
    family = "sync"
    thresholds = (MEMORY_ITERATIONS, LOOP_CALLS)
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "cudaMalloc and cudaFree around each launch",
            tuple(
                e
                for i in range(6)
                for e in (
                    call(500 * i, 280, "cudaMalloc", 900 + i),
                    launch(500 * i + 285, i + 1),
                    kernel(500 * i + 292, 25, i + 1),
                    call(500 * i + 300, 150, "cudaFree", 950 + i),
                )
            ),
            allows=("TA201", "TA202", "TA406", "TA504", "TA501"),
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
        Example("an allocation before the loop", (call(0, 280, "cudaMalloc", 900), *loop(12, 12, 10))),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        calls = analysis.trace.calls
        sync_names = np.array([not a.endswith("Async") for a in analysis.trace.apis] or [True], dtype=bool)
        at = np.flatnonzero((calls.api_class == ApiClass.MEMORY) & analysis.chosen.calls)
        at = at[sync_names[calls.api[at]]]
        if not len(at):
            return []
        if not analysis.operations:
            return self.abstain(f"memory calls are there, but no operation was found: {analysis.no_operations}")
        found = []
        limit = analysis.options.threshold(MEMORY_ITERATIONS)
        for op in analysis.operations:
            starts = np.array(sorted(int(calls.start_ns[c[0]]) for c in op.iterations.calls if len(c)))
            if len(starts) < max(2, analysis.options.threshold(LOOP_CALLS)):
                continue
            which = np.searchsorted(starts, calls.start_ns[at], side="right")
            later = at[(which >= 1) & (which < len(starts))]
            share = len(np.unique(which[(which >= 1) & (which < len(starts))])) / (len(starts) - 1)
            if share < limit:
                continue
            spent = int((calls.end_ns[later] - calls.start_ns[later]).sum())
            own = stats.median(op.self_ns)
            apis = ", ".join(dict.fromkeys(analysis.trace.apis[a] for a in calls.api[later].tolist()))
            found.append(
                self.finding(
                    Severity.WARNING,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    f"allocation in the loop of `{short(op.iterations.name)}`",
                    f"{len(later)} calls of {apis} lie in {share:.0%} of the iterations behind the first and take {show_us(spent / (len(starts) - 1))} of host "
                    f"time per call, around kernels of {show_us(own)}: this is why the host is late.",
                    {
                        "memory_calls": len(later),
                        "share_of_iterations": round(share, 6),
                        "threshold_share": limit,
                        "host_us_per_call": us(spent / (len(starts) - 1)),
                        "self_time_p50_us": us(own),
                    },
                    [call_evidence(analysis, int(r)) for r in later[:3].tolist()],
                    ["allocate before the loop", "warm the caching allocator up with the same shapes"],
                )
            )
            break
        return found
