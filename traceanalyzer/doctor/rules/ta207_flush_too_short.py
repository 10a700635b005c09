"""TA207 flush-too-short: the cache clear no longer hides the dispatch.

What it checks
    Whether a clear before each call and the call's kernels together outlast the host's period.

Why it matters
    do_bench reads the kernel only as long as the clear covers the dispatch. On fast memory with slow host
    code it does not.

How it is decided
    A clear leads each call and clear + kernels < host period, with launches that meet an empty stream or
    reach it too late. DERIVED.

Example
    A 16 us clear before an 8 us kernel dispatched in 40 us: the pair reads 34 us.

What to do
    Clear a larger buffer, or fill the queue before the loop.

When it is wrong
    A fill that is no clear.

References
    docs/methodology.md, the model; triton-lang/triton#10149.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.example import (
    fill,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation


class FlushTooShort(Rule):
    """The cache clear no longer hides the dispatch."""

    code = "TA207"
    name = "flush-too-short"
    family = "queue"
    messages: ClassVar[dict[str, Message]] = {
        "flush-too-short": Message(
            "the cache clear is too short to hide the dispatch",
            "A clear of {clear_ns:time} and the kernels of {operation:name} ({own_ns:time}) do not outlast the host's period of {period_ns:time}: "
            "an event pair behind the clear still holds host time.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a 16 us clear before an 8 us kernel, 46 us of host time",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        *fill(60 * i, 60 * i + 4, 16, 10 * i + 1),
                        launch(60 * i + 44, 10 * i + 2),
                        kernel(60 * i + 48, 8, 10 * i + 2),
                    )
                ),
                allows=(
                    "TA201",
                    "TA202",
                    "TA505",
                    "TA205",
                    "TA211",
                    "TA302",
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a clear that outlasts the host",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        *fill(50 * i, 94.2 * i + 6, 85, 10 * i + 1),
                        launch(50 * i + 40, 10 * i + 2),
                        kernel(94.2 * i + 91.1, 9, 10 * i + 2),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        for op in measured(analysis):
            cleared = op.clear_ns[op.clear_ns > 0]
            if not len(cleared) or not len(op.dispatch_ns):
                continue
            clear, own, period = (
                stats.median(cleared) or 0.0,
                stats.median(op.busy_ns) or 0.0,
                stats.median(op.dispatch_ns) or 0.0,
            )
            if clear + own >= period or op.queue.state not in (QueueState.CPU_BOUND, QueueState.MIXED):
                continue
            reading = op.readings.get("do_bench")
            found.append(
                self.say(
                    "flush-too-short",
                    Severity.WARNING,
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {"clear_ns": clear, "operation": op.iterations.name, "own_ns": own, "period_ns": period},
                    numbers={
                        "clear_p50_us": us(clear),
                        "busy_p50_us": us(own),
                        "period_us": us(period),
                        "threshold_us": us(period),
                        "do_bench_us": us(reading),
                    },
                    evidence=[
                        activity_evidence(analysis, int(r), "cache clear")
                        for r in np.flatnonzero(op.clear)[:3].tolist()
                    ],
                    remedy=["clear a larger buffer, or fill the queue with a backlog first", "quote self-time"],
                )
            )
        return found
