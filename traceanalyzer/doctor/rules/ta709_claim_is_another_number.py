"""TA709 claim-is-another-number: what a claimed time really is.

What it checks
    A time per call given with --claim against every number of the operation: self-time, span, intervals,
    the ladder of readings, totals, single kernels, the clear included.

Why it matters
    Most wrong numbers are right numbers of something else: enqueue time, the dispatcher, the total of N
    calls.

How it is decided
    Within 5 % of a number, or inside its interval; of several, all are named. The self-time confirms the
    claim (a note); another number is a warning; none at all is said so. DERIVED.

Example
    "40 us per call" for a 10 us kernel dispatched every 40 us: the claim is the dispatcher.

What to do
    Quote self-time, and say by which protocol a number was read.

When it is wrong
    Two readings that coincide: both are named.

References
    docs/methodology.md, the model.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.claims import explain, numbers_of
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    loop,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    short,
    show_us,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE, on_operation
from traceanalyzer.options import CLAIM_TOLERANCE

MARK = "mark its calls (record_function, then --range NAME), or let capture record it"


class ClaimIsAnotherNumber(Rule):
    """What a claimed time really is."""

    code = "TA709"
    name = "claim-is-another-number"
    family = "claims"
    thresholds = (CLAIM_TOLERANCE,)
    positive: ClassVar[tuple[Example, ...]] = (
        Example("the dispatcher claimed for a kernel", loop(12, 40, 10), claims=("40us",), allows=("TA201", "TA202")),
        Example("the self-time claimed", loop(40, 12, 15), claims=("15.1us",)),
    )
    negative: ClassVar[tuple[Example, ...]] = (Example("nothing claimed", loop(40, 12, 15)),)

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.options.claims:
            return []
        found: list[Finding] = []
        unjudged = []
        tolerance = analysis.options.threshold(CLAIM_TOLERANCE)
        for claim in analysis.options.claims:
            result = explain(claim, analysis.operations, tolerance)
            if result is None:
                names = ", ".join(f"`{short(o.iterations.name)}`" for o in analysis.operations[:4])
                why = (
                    f"no operation is called {claim.operation!r}; there is {names}"
                    if claim.operation and analysis.operations
                    else f"no operation was found: {analysis.no_operations}"
                )
                unjudged.append(f"claim {claim.text}: {why}")
                continue
            if result.kind == "impossible":
                continue
            name = short(result.op.iterations.name)
            said = " and ".join(f"{label} ({show_us(value)})" for label, value in result.matches[:3])
            span = (
                f", 95 % interval {show_us(result.interval_ns[0])} to {show_us(result.interval_ns[1])}"
                if result.interval_ns
                else ""
            )
            own = f"self-time p50 {show_us(result.self_ns)}{span}, n {len(result.op.self_ns)}"
            if result.kind == "confirmed":
                severity, headline = Severity.NOTE, f"the claim of {claim.text} is confirmed"
                message = (
                    f"The claim of {claim.text} is confirmed: it agrees with the device self-time of `{name}` ({own})."
                )
            elif result.kind == "another":
                severity, headline = Severity.WARNING, f"the claim of {claim.text} is {result.matches[0][0]}"
                message = (
                    f"The claim of {claim.text} per call is not the kernel time of `{name}` ({own}): it equals {said}."
                )
            else:
                near = min(numbers_of(result.op, tolerance), key=lambda m: abs(m[1] - claim.ns))
                severity, headline = Severity.WARNING, f"the claim of {claim.text} is no number of this trace"
                message = f"The claim of {claim.text} per call equals no number of `{name}` ({own}); the nearest is {near[0]} ({show_us(near[1])})."
            found.append(
                self.finding(
                    severity,
                    Grade.DERIVED,
                    on_operation(analysis, result.op),
                    headline,
                    message,
                    {
                        "claimed_us": us(claim.ns),
                        "self_time_p50_us": us(result.self_ns),
                        "claim_over_self_time": round(claim.ns / result.self_ns, 6),
                        "is": result.matches[0][0] if result.matches else None,
                        "threshold_tolerance": tolerance,
                    },
                    [],
                    [
                        "quote self-time with its interval and n"
                        if result.kind != "confirmed"
                        else "quote it with its interval and n"
                    ],
                )
            )
        if len(unjudged) == len(analysis.options.claims):
            return self.abstain("; ".join(unjudged))
        found += [
            self.finding(Severity.NOTE, Grade.PROVEN, WHOLE_TRACE, "a claim cannot be judged", f"The {why}.", {"claims": len(analysis.options.claims)}, [], [MARK])
            for why in unjudged
        ]  # fmt: skip
        return found
