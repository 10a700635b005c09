"""TA709 claim-is-another-number: what a claimed time really is.

What it checks
    A time per call given with --claim against every number of the operation: self-time, span, intervals,
    the ladder of readings, totals, single kernels, the clear included.

Why it matters
    Most wrong numbers are right numbers of something else: enqueue time, the dispatcher, the total of N
    calls.

How it is decided
    Within 5 % of a number, or inside its interval; of several, all are named. The self-time confirms the
    claim (a note); another number is a warning; a claim that equals no number is reported as such. DERIVED.

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

from traceanalyzer.analysis.claims import Explained, explain, numbers_of
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import Message, numbered
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    short,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE, on_operation
from traceanalyzer.options import CLAIM_TOLERANCE, Claim

MARK = "mark its calls (record_function, then --range NAME), or let capture record it"

_OWN = "(self-time p50 {self_ns:time}[[, 95 % interval {low_ns:time} to {high_ns:time}]], n {n})"


class ClaimIsAnotherNumber(Rule):
    """What a claimed time really is."""

    code = "TA709"
    name = "claim-is-another-number"
    family = "claims"
    thresholds = (CLAIM_TOLERANCE,)
    messages: ClassVar[dict[str, Message]] = {
        "not-judged": Message(
            "a claim cannot be judged", "The claim {claim} cannot be judged: no operation was found: {reason}."
        ),
        "no-such-operation": Message(
            "a claim cannot be judged",
            "The claim {claim} cannot be judged: no operation is called {operation:name}; there is {first:name}[[, {second:name}]][[, {third:name}]].",
        ),
        "confirmed": Message(
            "the claim of {claim} is confirmed",
            "The claim of {claim} is confirmed: it agrees with the device self-time of {operation:name} " + _OWN + ".",
        ),
        "another-number": Message(
            "the claim of {claim} is {is}",
            "The claim of {claim} per call is not the kernel time of {operation:name} "
            + _OWN
            + ": it equals {is} ({is_ns:time})"
            "[[ and {also} ({also_ns:time})]].",
        ),
        "no-number": Message(
            "the claim of {claim} is no number of this trace",
            "The claim of {claim} per call equals no number of {operation:name} "
            + _OWN
            + "; the nearest is {nearest} ({nearest_ns:time}).",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "the dispatcher claimed for a kernel", loop(12, 40, 10), claims=("40us",), allows=("TA201", "TA202")
            ),
            Example("the self-time claimed", loop(40, 12, 15), claims=("15.1us",)),
        )
    )
    negative = Examples(lambda: (Example("nothing claimed", loop(40, 12, 15)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.options.claims:
            return []
        found: list[Finding] = []
        unjudged: list[tuple[str, str, dict[str, Param]]] = []
        tolerance = analysis.options.threshold(CLAIM_TOLERANCE)
        for claim in analysis.options.claims:
            result = explain(claim, analysis.operations, tolerance)
            if result is None:
                unjudged.append(_unjudged(analysis, claim))
            elif result.kind != "impossible":
                found.append(self._judged(analysis, result, tolerance))
        if len(unjudged) == len(analysis.options.claims):
            return self.abstain("; ".join(why for _, why, _ in unjudged))
        found += [
            self.say(
                code, Severity.NOTE, Grade.PROVEN, WHOLE_TRACE, params, numbers={"claims": len(analysis.options.claims)}, remedy=[MARK]
            )
            for code, _, params in unjudged
        ]  # fmt: skip
        return found

    def _judged(self, analysis: Analysis, result: Explained, tolerance: float) -> Finding:
        claim, matches = result.claim, result.matches
        low, high = result.interval_ns or (None, None)
        near = min(numbers_of(result.op, tolerance), key=lambda m: abs(m[1] - claim.ns))
        also = matches[1] if len(matches) > 1 else (None, None)
        params: dict[str, Param] = {
            "claim": claim.text, "operation": result.op.iterations.name, "self_ns": result.self_ns, "low_ns": low, "high_ns": high, "n": len(result.op.self_ns),
            "is": matches[0][0] if matches else None, "is_ns": matches[0][1] if matches else None, "also": also[0], "also_ns": also[1],
            "nearest": near[0], "nearest_ns": near[1],
        }  # fmt: skip
        confirmed = result.kind == "confirmed"
        return self.say(
            {"confirmed": "confirmed", "another": "another-number"}.get(result.kind, "no-number"),
            Severity.NOTE if confirmed else Severity.WARNING,
            Grade.DERIVED,
            on_operation(analysis, result.op),
            params,
            numbers={
                "claimed_us": us(claim.ns),
                "self_time_p50_us": us(result.self_ns),
                "claim_over_self_time": round(claim.ns / result.self_ns, 6),
                "is": params["is"],
                "threshold_tolerance": tolerance,
            },
            remedy=["quote it with its interval and n" if confirmed else "quote self-time with its interval and n"],
        )


def _unjudged(analysis: Analysis, claim: Claim) -> tuple[str, str, dict[str, Param]]:
    """Return why a claim is not judged: the message's code, the reason for an abstention, and the parameters."""
    names = [o.iterations.name for o in analysis.operations]
    if claim.operation and names:
        listed = ", ".join(f"`{short(n)}`" for n in names[:4])
        why = f"claim {claim.text}: no operation is called {claim.operation!r}; there is {listed}"
        return "no-such-operation", why, {"claim": claim.text, "operation": claim.operation} | numbered(names)
    why = f"claim {claim.text}: no operation was found: {analysis.no_operations}"
    return "not-judged", why, {"claim": claim.text, "reason": analysis.no_operations}
