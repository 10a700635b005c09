"""TA601 noisy: the time of an operation scatters.

What it checks
    The robust coefficient of variation of an operation's self-times: 1.4826 MAD / median.

Why it matters
    Scatter widens the interval of the median and hides small differences.

How it is decided
    Over 10 %: a note with the half-width and the number of calls that 1 % takes. DERIVED.

Example
    Self-times between 8 and 12 us.

What to do
    Record more calls, fix the clocks, keep the inputs fixed.

When it is wrong
    A real heavy tail of the workload.

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
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

ROBUST_CV = Threshold("robust_cv", 0.1, "1.4826 MAD / median", "10 % scatter takes hundreds of calls for 1 %")
NOISY_CALLS = Threshold("noisy_calls", 10, "calls", "fewer measure no scatter")


class Noisy(Rule):
    """The time of an operation scatters."""

    code = "TA601"
    name = "noisy"
    family = "statistics"
    thresholds = (ROBUST_CV, NOISY_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "noisy": Message(
            "{operation:name} scatters by {cv:share}",
            "Self-times of {operation:name} scatter by {cv:share} around their median; a median good to 1 % takes about {needed:plural call}, this trace holds {calls:count} "
            "(worth {independent:number} independent ones).",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "8 to 12 us",
                tuple(
                    e for i in range(30) for e in (launch(2 * i, i + 1), kernel(100 + 13 * i, 8 + (7 * i) % 5, i + 1))
                ),
                allows=("TA504", "TA406", "TA202", "TA507"),
            ),
        )
    )
    negative = Examples(lambda: (Example("no scatter", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in analysis.operations:
            cv = op.steady.robust_cv
            if (
                cv is None
                or cv <= analysis.options.threshold(ROBUST_CV)
                or len(op.self_ns) < analysis.options.threshold(NOISY_CALLS)
            ):
                continue
            needed = round((1.2533 * 1.96 * cv / 0.01) ** 2)
            rho = op.steady.lag_one
            found.append(
                self.say(
                    "noisy",
                    Severity.NOTE,
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "cv": cv,
                        "needed": needed,
                        "calls": len(op.self_ns),
                        "independent": steadiness.effective_n(len(op.self_ns), rho),
                    },
                    numbers={
                        "robust_cv": round(cv, 6),
                        "threshold_cv": analysis.options.threshold(ROBUST_CV),
                        "calls": len(op.self_ns),
                        "calls_for_1_percent": needed,
                        "lag_one_correlation": round(rho, 6) if rho is not None else None,
                    },
                    evidence=[],
                    remedy=[f"record about {needed} calls", "fix the clocks and the inputs"],
                )
            )
        return found
