"""TA504 warm-l2: calls may have found their inputs in the cache.

What it checks
    Whether a cache clear, or other work, lies between the calls of an operation that runs one kernel over
    and over.

Why it matters
    The same buffers in every call stay in the L2 cache. The time is then that of warm data, which a real
    run may not see.

How it is decided
    One kernel per call, no fill, copy or other kernel between calls. A HINT: durations cannot prove it, and
    buffers may rotate.

Example
    Eight launches over one set of buffers: 4.2 us first, 3.0 us after.

What to do
    Say that the number is warm-cache, clear the cache between calls, or rotate buffers larger than the
    cache.

When it is wrong
    Kernels bound by arithmetic; programs that find their data warm as well.

References
    triton-lang/triton#10149, karpathy/llm.c#851.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.ledger.classes import is_communication
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    fill,
    kernel,
    launch,
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

LOOP_CALLS = Threshold("loop_calls", 3, "calls", "fewer than three calls, two intervals, are no loop")
WARM_LEFT_OUT = Threshold(
    "warm_left_out",
    0.2,
    "rows outside of the pattern / calls",
    "with more than one in five, something does run between the calls",
)


class WarmCache(Rule):
    """Calls may have found their inputs in the cache."""

    code = "TA504"
    name = "warm-l2"
    family = "cache"
    thresholds = (WARM_LEFT_OUT, LOOP_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "warm-l2": Message(
            "{operation:name} may run on a warm cache",
            "Nothing runs between the {calls:plural call} of {operation:name}: if they use the same buffers, {middle_ns:time} is a warm-cache figure "
            "(the first call took {first_ns:time}). Durations alone cannot prove it.",
        ),
    }
    positive = Examples(lambda: (Example("one kernel over and over", loop(40, 10, 30)),))
    negative = Examples(
        lambda: (
            Example(
                "a clear before each call",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        *fill(100 * i, 100 * i + 6, 60, 10 * i + 1),
                        launch(100 * i + 10, 10 * i + 2),
                        kernel(100 * i + 67, 9, 10 * i + 2),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in measured(analysis):
            if is_communication(op.iterations.name):
                continue  # what a collective reads, another rank wrote
            if (
                op.iterations.windows is not None
                or op.kernels_per_iteration != 1
                or len(op.self_ns) < max(1, analysis.options.threshold(LOOP_CALLS))
                or op.clear.any()
            ):
                continue
            if op.iterations.left_out > analysis.options.threshold(WARM_LEFT_OUT) * len(op.self_ns) or any(
                len(p) != 1 for p in op.iterations.rows
            ):
                continue
            first, middle = float(op.self_ns[0]), stats.median(op.self_ns) or 0.0
            found.append(
                self.say(
                    "warm-l2",
                    Severity.NOTE,
                    Grade.HINT,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "calls": len(op.self_ns),
                        "middle_ns": middle,
                        "first_ns": first,
                    },
                    numbers={
                        "calls": len(op.self_ns),
                        "first_us": us(first),
                        "self_time_p50_us": us(middle),
                        "threshold_clears": 0,
                    },
                    evidence=[],
                    remedy=["say that the number is warm-cache, or clear the L2 cache between calls (do_bench does)"],
                )
            )
        return found
