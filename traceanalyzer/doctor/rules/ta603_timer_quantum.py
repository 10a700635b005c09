"""TA603 timer-quantum: kernels are so short that the clock's step shows.

What it checks
    The step in which self-times of an operation are counted, against their median.

Why it matters
    Below the clock's resolution a median moves in steps, and small differences vanish.

How it is decided
    The step (greatest common divisor of the times, or whole microseconds) is over 2 % of the median, with
    three distinct values or more. A note. DERIVED.

Example
    Self-times of 1.984, 2.016 and 2.048 us: steps of 32 ns, 1.6 % of the median; in whole microseconds 1, 2
    and 3.

What to do
    Batch several calls, and time the batch.

When it is wrong
    Times that are truly constant.

References
    docs/compare.md, the interval.
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
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold
from traceanalyzer.trace.ordering import distinct

QUANTUM_SHARE = Threshold("quantum_share", 0.02, "step / median", "2 % is a difference people report")
QUANTUM_VALUES = Threshold("quantum_values", 3, "different times", "two times show one step, which may be two modes")


class TimerQuantum(Rule):
    """Kernels are so short that the clock's step shows."""

    code = "TA603"
    name = "timer-quantum"
    family = "statistics"
    thresholds = (QUANTUM_SHARE, QUANTUM_VALUES)
    messages: ClassVar[dict[str, Message]] = {
        "timer-quantum": Message(
            "the clock's step shows in {operation:name}",
            "Self-times of {operation:name} come in steps of {step_ns:time}, {step_share:share} of their median of {median_ns:time}: differences below that cannot be seen.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "whole microseconds",
                tuple(e for i in range(30) for e in (launch(2 * i, i + 1), kernel(100 + 6 * i, 2 + i % 3, i + 1))),
                allows=("TA504", "TA601", "TA202", "TA507", "TA602"),
            ),
        )
    )
    negative = Examples(lambda: (Example("constant times", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        limit = analysis.options.threshold(QUANTUM_SHARE)
        for op in analysis.operations:
            levels = distinct(op.self_ns)
            middle = stats.median(op.self_ns)
            if len(levels) < analysis.options.threshold(QUANTUM_VALUES) or not middle or op.kernels_per_iteration != 1:
                continue
            step = int(np.gcd.reduce(np.diff(levels)))
            if step <= limit * middle or step > middle:
                continue  # no clock steps by more than the time that it resolved
            found.append(
                self.say(
                    "timer-quantum",
                    Severity.NOTE,
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "step_ns": step,
                        "step_share": step / middle,
                        "median_ns": middle,
                    },
                    numbers={
                        "step_us": step / 1000,
                        "step_share": round(step / middle, 6),
                        "threshold_share": limit,
                        "distinct_values": len(levels),
                    },
                    evidence=[],
                    remedy=["batch several calls and time the batch"],
                )
            )
        return found
