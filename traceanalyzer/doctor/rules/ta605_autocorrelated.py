"""TA605 autocorrelated: successive times of an operation depend on one another.

What it checks
    The lag-1 correlation of the self-times.

Why it matters
    Dependent samples are worth fewer than they are: intervals computed as if they were independent are too
    narrow.

How it is decided
    Lag-1 correlation over 0.3 with thirty calls or more, where no slow head, change of level or drift
    explains it; the effective n is n (1 - rho) / (1 + rho). A note. DERIVED.

Example
    Times that wander slowly with the temperature.

What to do
    Use the effective n for intervals; interleave A and B when comparing.

When it is wrong
    Drift, which is reported first.

References
    docs/methodology.md, statistics.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis import steadiness
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
from traceanalyzer.doctor.rules.ta405_drift import DRIFT_CHANGE
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

LAG_ONE = Threshold("lag_one", 0.3, "lag-1 correlation", "0.3 halves the effective number of calls")
LAG_CALLS = Threshold("lag_calls", 30, "calls", "fewer measure no correlation of this size")
LAG_CV = Threshold(
    "lag_cv", 0.01, "1.4826 MAD / median", "under 1 % scatter the interval is narrow whatever the correlation"
)


class Autocorrelated(Rule):
    """Successive times of an operation depend on one another."""

    code = "TA605"
    name = "autocorrelated"
    family = "statistics"
    thresholds = (LAG_ONE, LAG_CALLS, LAG_CV, DRIFT_CHANGE)
    messages: ClassVar[dict[str, Message]] = {
        "autocorrelated": Message(
            "times of {operation:name} depend on one another",
            "Successive self-times of {operation:name} correlate by {rho:number}: its {calls:plural call} are worth {independent:number} independent ones.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a slow wave",
                tuple(
                    e
                    for i in range(60)
                    for e in (launch(5 * i, i + 1), kernel(300 + 32 * i, 20 + (i // 5) % 4 * 2 - (i // 10) % 2, i + 1))
                ),
                allows=("TA504", "TA601", "TA507", "TA202", "TA404", "TA602", "TA603", "TA405"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("constant times", loop(40, 10, 30)),
            Example(
                "a drift explains it (TA405)",
                tuple(
                    e
                    for i in range(30)
                    for e in (launch(10 * i, i + 1), kernel(400 + 101 * i + i * i / 4, 100 + i / 2, i + 1))
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        limit = analysis.options.threshold(LAG_ONE)
        for op in analysis.operations:
            values = op.self_ns
            if (
                len(values) < analysis.options.threshold(LAG_CALLS)
                or op.steady.head is not None
                or op.steady.change is not None
            ):
                continue
            rho = op.steady.lag_one
            trend = op.steady.drift(analysis.options.threshold(DRIFT_CHANGE))
            drifting = (
                trend is not None
                and abs(trend.total) > analysis.options.threshold(DRIFT_CHANGE)
                and trend.low * trend.high > 0
            )
            cv = op.steady.robust_cv
            if rho is None or rho <= limit or drifting or cv is None or cv < analysis.options.threshold(LAG_CV):
                continue
            worth = steadiness.effective_n(len(values), rho)
            found.append(
                self.say(
                    "autocorrelated",
                    Severity.NOTE,
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {"operation": op.iterations.name, "rho": rho, "calls": len(values), "independent": worth},
                    numbers={
                        "lag_one": round(rho, 6),
                        "threshold_lag_one": limit,
                        "calls": len(values),
                        "effective_calls": round(worth, 1),
                    },
                    evidence=[],
                    remedy=["take the effective n for intervals; interleave A and B when comparing"],
                )
            )
        return found
