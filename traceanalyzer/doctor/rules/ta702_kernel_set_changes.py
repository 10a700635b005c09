"""TA702 kernel-set-changes: iterations run different kernels.

What it checks
    Whether the kernels of an operation, by name and in number, are the same in every iteration.

Why it matters
    Times of different work are not samples of one quantity. Autotuning, caching and changing shapes do
    this.

How it is decided
    Iterations of ranges whose multiset of kernel names differs from the commonest in over 10 % of those
    with work. PROVEN. A note: a workload may vary.

Example
    Every fifth iteration runs an extra copy kernel.

What to do
    Compare like with like: group iterations by what they run.

When it is wrong
    Workloads whose shapes vary.

References
    flashinfer's CUPTI mode raises on it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

DIFFERENT_ITERATIONS = Threshold(
    "different_iterations", 0.1, "share of iterations", "one in ten is no exception any more"
)
COMPARED_ITERATIONS = Threshold("compared_iterations", 5, "iterations", "fewer have no commonest set")


class KernelSetChanges(Rule):
    """Iterations run different kernels."""

    code = "TA702"
    name = "kernel-set-changes"
    family = "cheating"
    thresholds = (DIFFERENT_ITERATIONS, COMPARED_ITERATIONS)
    messages: ClassVar[dict[str, Message]] = {
        "kernel-set-changes": Message(
            "iterations of {operation:name} differ in their kernels",
            "{odd:count} of {iterations:plural iteration} of {operation:name} run other kernels than the commonest set: their times are not samples of one quantity.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "every second iteration has an extra kernel",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        host_range("step", 100 * i, 50),
                        launch(100 * i + 2, 10 * i + 1),
                        kernel(100 * i + 8, 80, 10 * i + 1, "a"),
                        *(
                            (launch(100 * i + 6, 10 * i + 2), kernel(100 * i + 89, 10, 10 * i + 2, "b"))
                            if i % 2
                            else ()
                        ),
                    )
                ),
                allows=("TA202", "TA406", "TA404", "TA601", "TA507", "TA304", "TA201", "TA203"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "the same kernel in each",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        host_range("step", 100 * i, 50),
                        launch(100 * i + 2, i + 1),
                        kernel(100 * i + 8, 80, i + 1, "a"),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        rows = analysis.trace.activities
        found = []
        for op in analysis.operations:
            if op.iterations.windows is None or len(op.worked) < analysis.options.threshold(COMPARED_ITERATIONS):
                continue
            sets = [np.sort(rows.name[op.iterations.rows[int(i)]]).tobytes() for i in op.worked]
            common = max(set(sets), key=sets.count)
            odd = [int(i) for i, s in zip(op.worked, sets, strict=True) if s != common]
            share = len(odd) / len(sets)
            if share <= analysis.options.threshold(DIFFERENT_ITERATIONS):
                continue
            found.append(
                self.say(
                    "kernel-set-changes",
                    Severity.NOTE,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    {"operation": op.iterations.name, "odd": len(odd), "iterations": len(sets)},
                    numbers={
                        "iterations": len(sets),
                        "different": len(odd),
                        "share": round(share, 6),
                        "threshold_share": analysis.options.threshold(DIFFERENT_ITERATIONS),
                    },
                    evidence=[
                        activity_evidence(analysis, int(op.iterations.rows[i][0]), "first row of a different iteration")
                        for i in odd[:3]
                    ],
                    remedy=["group iterations by what they run"],
                )
            )
        return found
