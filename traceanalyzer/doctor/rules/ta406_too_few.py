"""TA406 too-few: an operation ran too few times for an interval.

What it checks
    The number of calls of each operation.

Why it matters
    Under six values no 95 % interval of the median exists; under thirty it is wide.

How it is decided
    Fewer than 6 calls: no interval; fewer than 30: the half-width is given. A note either way. PROVEN.

Example
    Four calls of a kernel: their median may be anything between the least and the greatest.

What to do
    Record more calls.

When it is wrong
    Expensive kernels; then give all values.

References
    docs/methodology.md, statistics.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
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

ENOUGH_CALLS = Threshold("enough_calls", 30.0, "calls", "thirty calls give a narrow interval for usual scatter")
NARROW_INTERVAL = Threshold(
    "narrow_interval", 0.01, "half-width / median", "an interval within 1 % needs no more calls"
)


class TooFew(Rule):
    """An operation ran too few times for an interval."""

    code = "TA406"
    name = "too-few"
    family = "warm-up"
    thresholds = (ENOUGH_CALLS, NARROW_INTERVAL)
    messages: ClassVar[dict[str, Message]] = {
        "wide-interval": Message(
            "only {n:plural call} of {operation:name}",
            "{operation:name} ran {n:often}: the 95 % interval of its median reaches {half_width:share} away.",
        ),
        "no-interval": Message(
            "only {n:plural call} of {operation:name}",
            "{operation:name} ran {n:often}: its median has no 95 % interval (that takes 6 calls).",
        ),
    }
    positive = Examples(lambda: (Example("four calls", loop(4, 10, 30)),))
    negative = Examples(
        lambda: (
            Example("forty calls", loop(40, 10, 30)),
            Example("twelve calls that do not scatter", loop(12, 10, 30)),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in analysis.operations:
            n = len(op.self_ns)
            if n >= analysis.options.threshold(ENOUGH_CALLS) or not n or op.kernels_per_iteration == 0:
                continue
            interval = stats.median_interval(op.self_ns)
            middle = stats.median(op.self_ns) or 0.0
            wide = max(interval[1] - middle, middle - interval[0]) / middle if interval and middle else None
            if interval is not None and wide is not None and wide < analysis.options.threshold(NARROW_INTERVAL):
                continue
            found.append(
                self.say(
                    "no-interval" if wide is None else "wide-interval",
                    Severity.NOTE,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    {"n": n, "operation": op.iterations.name, "half_width": wide},
                    numbers={
                        "calls": n,
                        "half_width": round(wide, 6) if wide is not None else None,
                        "threshold_calls": analysis.options.threshold(ENOUGH_CALLS),
                    },
                    evidence=[],
                    remedy=["record thirty calls or more"],
                )
            )
        return found
