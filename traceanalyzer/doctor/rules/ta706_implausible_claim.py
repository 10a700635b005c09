"""TA706 implausible-claim: a claimed time is below the work's own time.

What it checks
    A time per call given with --claim against the self-time of the operation.

Why it matters
    No timer can honestly show less than the kernels take on the device. The work was not done, not waited
    for, or not divided right.

How it is decided
    The claim lies over 5 % under the least the median of the self-times can be, and equals no other number
    of the operation. PROVEN.

Example
    A patched timer reports 0.15 us per call; the kernels in the trace take 15 us.

What to do
    Check the timer, the outputs and the unit.

When it is wrong
    The trace and the claim are of different runs.

References
    gpu-mode/reference-kernels#162.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.claims import explain
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
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import CLAIM_TOLERANCE


class ImplausibleClaim(Rule):
    """A claimed time is below the work's own time."""

    code = "TA706"
    name = "implausible-claim"
    family = "claims"
    thresholds = (CLAIM_TOLERANCE,)
    messages: ClassVar[dict[str, Message]] = {
        "implausible-claim": Message(
            "the claim of {text} is impossible",
            "{text} per call is claimed, but the kernels of {operation:name} take {self_ns:time} on the device: {part:number} of it. "
            "Nothing that waits for the work can read less.",
        ),
    }
    positive = Examples(
        lambda: (Example("0.15 us claimed for kernels of 15", loop(12, 12, 15), claims=("0.15us",), allows=("TA709",)),)
    )
    negative = Examples(lambda: (Example("a claim that is the self-time", loop(12, 12, 15), claims=("15us",)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.options.claims:
            return []
        found = []
        tolerance = analysis.options.threshold(CLAIM_TOLERANCE)
        for claim in analysis.options.claims:
            result = explain(claim, analysis.operations, tolerance)
            if result is None or result.kind != "impossible":
                continue
            found.append(
                self.say(
                    "implausible-claim",
                    Severity.WARNING,
                    Grade.PROVEN,
                    on_operation(analysis, result.op),
                    {
                        "text": claim.text,
                        "operation": result.op.iterations.name,
                        "self_ns": result.self_ns,
                        "part": claim.ns / result.self_ns,
                    },
                    numbers={
                        "claimed_us": us(claim.ns),
                        "self_time_p50_us": us(result.self_ns),
                        "claim_over_self_time": round(claim.ns / result.self_ns, 6),
                        "threshold_ratio": 1 - tolerance,
                    },
                    evidence=[
                        activity_evidence(analysis, int(result.op.iterations.rows[int(i)][0]))
                        for i in result.op.worked[:3].tolist()
                    ],
                    remedy=["check that the work is done and waited for, the timer is real, and the unit is right"],
                )
            )
        return found
