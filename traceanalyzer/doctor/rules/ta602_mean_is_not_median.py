"""TA602 mean-is-not-median: mean and median of an operation differ.

What it checks
    The mean of the self-times against their median.

Why it matters
    Where they differ, the column that was printed decides the result.

How it is decided
    Over 5 % apart, ten calls or more, and neither a slow head (TA403) nor a change of level (TA404) that
    explains it. A note. PROVEN.

Example
    One call in ten takes four times as long.

What to do
    Quote the median with its interval, and say how long the tail is.

When it is wrong
    A workload with a real tail.

References
    docs/methodology.md, statistics.
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
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

MEAN_MEDIAN = Threshold("mean_median", 0.05, "relative difference", "5 % decides most comparisons")
MEAN_CALLS = Threshold("mean_calls", 10, "calls", "the tail of fewer is one call's chance")


class MeanIsNotMedian(Rule):
    """Mean and median of an operation differ."""

    code = "TA602"
    name = "mean-is-not-median"
    family = "statistics"
    thresholds = (MEAN_MEDIAN, MEAN_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "mean-is-not-median": Message(
            "mean and median of {operation:name} differ",
            "The mean self-time of {operation:name} is {mean_ns:time}, its median {median_ns:time} ({away:change}); "
            "{tail:share} of the calls take over 1.5 times the median.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "one call in eight takes four times as long",
                tuple(
                    e
                    for i in range(32)
                    for e in (
                        launch(5 * i, i + 1),
                        kernel(300 + 10.5 * i + 30 * ((i + 4) // 8), 40 if i % 8 == 4 else 10, i + 1),
                    )
                ),
                allows=(
                    "TA507",
                    "TA601",
                    "TA202",
                    "TA604",
                    "TA210",
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("no tail", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        limit = analysis.options.threshold(MEAN_MEDIAN)
        for op in analysis.operations:
            values = op.self_ns
            middle = stats.median(values)
            if (
                len(values) < analysis.options.threshold(MEAN_CALLS)
                or not middle
                or op.steady.head is not None
                or op.steady.change is not None
            ):
                continue
            away = float(values.mean()) / middle - 1
            if abs(away) <= limit:
                continue
            tail = float(np.mean(values > 1.5 * middle))
            found.append(
                self.say(
                    "mean-is-not-median",
                    Severity.NOTE,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "mean_ns": float(values.mean()),
                        "median_ns": middle,
                        "away": away,
                        "tail": tail,
                    },
                    numbers={
                        "mean_us": us(float(values.mean())),
                        "p50_us": us(middle),
                        "difference": round(away, 6),
                        "threshold_difference": limit,
                        "tail_share": round(tail, 6),
                    },
                    evidence=[],
                    remedy=["quote the median with its interval"],
                )
            )
        return found
