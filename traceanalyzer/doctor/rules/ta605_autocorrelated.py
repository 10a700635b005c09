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
    doctor-rules.md.
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
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    short,
)


class Autocorrelated(Rule):
    """Successive times of an operation depend on one another."""

    code = "TA605"
    name = "autocorrelated"
    family = "statistics"
    thresholds = ("lag_one",)
    positive: ClassVar[tuple[Example, ...]] = (
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
    negative: ClassVar[tuple[Example, ...]] = (Example("constant times", loop(40, 10, 30)),)

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        limit = analysis.options.threshold("lag_one")
        for op in analysis.operations:
            values = op.self_ns
            if (
                len(values) < 30
                or steadiness.slow_head(values) is not None
                or steadiness.changepoint(values) is not None
            ):
                continue
            rho = steadiness.lag_one(values)
            trend = steadiness.drift(values)
            drifting = trend is not None and abs(trend.total) > 0.03 and trend.low * trend.high > 0
            cv = steadiness.robust_cv(values)
            if rho is None or rho <= limit or drifting or cv is None or cv < 0.01:
                continue
            name = short(op.iterations.name)
            worth = steadiness.effective_n(len(values), rho)
            found.append(
                self.finding(
                    Severity.NOTE,
                    Grade.DERIVED,
                    op.iterations.name,
                    f"times of `{name}` depend on one another",
                    f"Successive self-times of `{name}` correlate by {rho:.2f}: its {len(values)} calls are worth {worth:.0f} independent ones.",
                    {
                        "lag_one": round(rho, 6),
                        "threshold_lag_one": limit,
                        "calls": len(values),
                        "effective_calls": round(worth, 1),
                    },
                    [],
                    ["take the effective n for intervals; interleave A and B when comparing"],
                )
            )
        return found
