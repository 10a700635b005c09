"""TA710 wrong-result: the measured function does not compute what its reference computes.

What it checks
    The comparison with the reference that the capture made in the same run. Only a capture knows it: the facts come
    from the sidecar, not from the trace.

Why it matters
    A kernel that leaves out work, or reads the wrong element, is fast. A wrong kernel cannot win a table.

How it is decided
    Proven where the capture's comparison failed: an element outside the tolerance, another shape, a NaN that the
    reference does not have, or a result that was right in the first call and wrong in the last.

Example
    A maximum error of 1 where 0.05 is allowed.

What to do
    Mend the kernel, or, where the error is one of rounding, state the tolerance it needs and why.

When it is wrong
    A tolerance that the data type cannot hold; a reference that is itself wrong.

References
    The chapter "Benchmarking without fooling yourself" of roulbac/msda-triton; KernelBench.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.captured import NO_SIDECAR
from traceanalyzer.doctor.example import captured, loop, result
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example, Rule, short
from traceanalyzer.doctor.subject import Subject, SubjectKind


class WrongResult(Rule):
    """The measured function does not compute what its reference computes."""

    code = "TA710"
    name = "wrong-result"
    family = "comparison"
    messages: ClassVar[dict[str, Message]] = {
        "wrong-result": Message(
            "the result of {name:name} is wrong",
            "{name:name} does not compute what {reference} computes: {reason}. Its times are those of another function.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "an error of 1 where 0.05 is allowed",
                loop(40, 10, 30),
                sidecar=lambda: captured(correctness=result(False, "12 of 64 elements are outside", 1.0, 0.05)),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "within its tolerance",
                loop(40, 10, 30),
                sidecar=lambda: captured(correctness=result(True, "", 0.001, 0.05)),
            ),
            Example("nothing was compared", loop(40, 10, 30), sidecar=captured),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        sidecar = analysis.trace.meta.sidecar
        if sidecar is None:
            return self.abstain(NO_SIDECAR)
        found: list[Finding] = []
        for operation in sidecar.operations:
            c = operation.correctness
            if c.passed is not False:
                continue
            found.append(
                self.say(
                    "wrong-result",
                    Severity.WARNING,
                    Grade.PROVEN,
                    Subject(SubjectKind.OPERATION, name=operation.name),
                    {
                        "name": operation.name,
                        "reference": short(c.reference) or "its reference",
                        "reason": c.reason[:400],
                    },
                    numbers={
                        "max_abs_error": c.max_abs_error,
                        "max_rel_error": c.max_rel_error,
                        "rtol": c.rtol,
                        "atol": c.atol,
                    },
                    evidence=[],
                    remedy=["mend it, or state the tolerance it needs and why"],
                )
            )
        return found
