"""TA203 borderline: the profiler may have made the queue CPU-bound.

What it checks
    Whether kernel and dispatch are so close that the profiler's cost decides.

Why it matters
    The profiler adds to every dispatch. A kernel of nearly that length may keep the queue fed without it.

How it is decided
    Kernel over dispatch between 0.7 and 1.3 for an operation, with launches that meet an empty stream.
    Information only; a CPU-bound finding silences it. HINT.

Example
    A 15 us kernel dispatched every 17 us under the profiler.

What to do
    Record the protocol ladder: wall time without the profiler decides.

When it is wrong
    Many healthy kernels sit here.

References
    docs/methodology.md, what a trace proves.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.captured import unprofiled_dispatch_ns
from traceanalyzer.doctor.example import (
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
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

BORDERLINE_LOW = Threshold(
    "borderline_low", 0.7, "kernel / dispatch", "below, the queue is CPU-bound with or without the profiler"
)
BORDERLINE_HIGH = Threshold(
    "borderline_high", 1.3, "kernel / dispatch", "above, the device leads with or without the profiler"
)


class Borderline(Rule):
    """The profiler may have made the queue CPU-bound."""

    code = "TA203"
    name = "borderline"
    family = "queue"
    thresholds = (BORDERLINE_LOW, BORDERLINE_HIGH)
    messages: ClassVar[dict[str, Message]] = {
        "borderline": Message(
            "{operation:name} is borderline",
            "{operation:name} takes {kernel_ns:time} for {dispatch_ns:time} of dispatch ({ratio:number}) and only part of its launches meet an empty stream: "
            "the profiler, which slows the host, may decide which of the two leads.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "every third launch is late",
                tuple(
                    e
                    for i in range(30)
                    for e in (
                        launch(60 * (i // 3) + 16 * (i % 3), i + 1),
                        kernel(60 * (i // 3) + 4 + 18 * (i % 3), 18, i + 1),
                    )
                ),
                allows=(
                    "TA202",
                    "TA211",
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("dispatch far below the kernel", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        low, high = analysis.options.threshold(BORDERLINE_LOW), analysis.options.threshold(BORDERLINE_HIGH)
        for op in measured(analysis):
            if op.symbols is None or op.queue.state is not QueueState.MIXED or not op.symbols.total_dispatch:
                continue
            ratio = op.symbols.total_kernel / op.symbols.total_dispatch
            if not low <= ratio <= high:
                continue
            unprofiled = unprofiled_dispatch_ns(analysis, op.iterations.name)
            if unprofiled and not low <= op.symbols.total_kernel / unprofiled <= high:
                continue  # the capture measured the host without the profiler: nothing is left to doubt
            found.append(
                self.say(
                    "borderline",
                    Severity.NOTE,
                    Grade.HINT,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "kernel_ns": op.symbols.total_kernel,
                        "dispatch_ns": op.symbols.total_dispatch,
                        "ratio": ratio,
                    },
                    numbers={"kernel_over_dispatch": round(ratio, 6), "threshold_low": low, "threshold_high": high},
                    evidence=[],
                    remedy=["time the loop once without the profiler: wall clock, synchronise once"],
                )
            )
        return found
