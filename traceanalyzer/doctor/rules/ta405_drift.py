"""TA405 drift: the time of an operation drifts.

What it checks
    Whether self-times rise or fall through the run without settling.

Why it matters
    Heating and falling clocks make the result depend on the number of calls.

How it is decided
    Theil-Sen slope with Sen's 99.9 % interval on one side of zero and a total change over 3 %, twenty calls
    or more, and no change of level (TA404) or slow head (TA403) that explains it. DERIVED.

Example
    Heavy kernels back to back: 100 us at first, 115 at the end.

What to do
    Warm up until the time settles; report the first and the last level.

When it is wrong
    A slow change of the data.

References
    flashinfer-ai/flashinfer#2899.
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
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding
from traceanalyzer.doctor.measured import graded
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

DRIFT_CHANGE = Threshold(
    "drift_change", 0.03, "relative change", "3 % over the run is more than the interval of most medians"
)
DRIFT_CALLS = Threshold("drift_calls", 20, "calls", "fewer show no trend")


class Drifting(Rule):
    """The time of an operation drifts."""

    code = "TA405"
    name = "drift"
    family = "warm-up"
    thresholds = (DRIFT_CHANGE, DRIFT_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "drift": Message(
            "{operation:name} drifts by {total:change}",
            "Self-times of {operation:name} move by {total:change} through {calls:plural call} (99.9 % interval {low:change} to {high:change}), from "
            "{begin_ns:time} to {end_ns:time}: the result depends on the number of calls.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "half a percent more with each call",
                tuple(
                    e
                    for i in range(30)
                    for e in (launch(10 * i, i + 1), kernel(400 + 101 * i + i * i / 4, 100 + i / 2, i + 1))
                ),
                allows=("TA404", "TA406", "TA504"),
            ),
        )
    )
    negative = Examples(lambda: (Example("one level", loop(30, 10, 100)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in analysis.operations:
            values = op.self_ns
            if (
                len(values) < analysis.options.threshold(DRIFT_CALLS)
                or op.steady.head is not None
                or op.steady.change is not None
            ):
                continue
            trend = op.steady.drift(analysis.options.threshold(DRIFT_CHANGE))
            if (
                trend is None
                or not analysis.options.threshold(DRIFT_CHANGE)
                < abs(trend.total)
                < 1  # a line that falls below nothing is no drift
                or trend.low * trend.high <= 0
            ):
                continue
            ends = [float(np.median(values[:5])), float(np.median(values[-5:]))]
            found.append(
                self.say(
                    "drift",
                    graded(analysis, op),
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "total": trend.total,
                        "calls": len(values),
                        "low": trend.low,
                        "high": trend.high,
                        "begin_ns": ends[0],
                        "end_ns": ends[1],
                    },
                    numbers={
                        "total_change": round(trend.total, 6),
                        "low": round(trend.low, 6),
                        "high": round(trend.high, 6),
                        "threshold_change": analysis.options.threshold(DRIFT_CHANGE),
                        "first5_p50_us": us(ends[0]),
                        "last5_p50_us": us(ends[1]),
                        "calls": len(values),
                    },
                    evidence=[
                        activity_evidence(analysis, int(op.iterations.rows[int(i)][0]))
                        for i in (op.worked[0], op.worked[-1])
                    ],
                    remedy=["warm up until the time settles", "report the first and the last level, not one number"],
                )
            )
        return found
