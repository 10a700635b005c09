"""TA703 empty-iteration: a timed iteration launches nothing.

What it checks
    Whether ranges that mark calls hold a launch, and whether what they launch is a kernel.

Why it matters
    A call that returns a stored or lazy result costs nothing where it is timed. So does one that only fills
    its output.

How it is decided
    A repeated range of which some instances launch and some do not; a range that occurs once, holds
    operators and launches nothing while the trace launches elsewhere; a repeated range that only fills
    memory while another runs kernels. Launch calls decide, so a lost device record does not count. PROVEN.

Example
    Fifteen timed calls, one kernel of 150 us in the first: no call costs the mean of 10 us.

What to do
    Check outputs inside the timed region; let nothing be computed lazily or cached.

When it is wrong
    An annotation that does not mean a call.

References
    gpu-mode/reference-kernels#104, #161; ScalingIntelligence/KernelBench#82.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.analysis.ranges import user_ranges
from traceanalyzer.doctor.example import (
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured, timed_range
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    range_evidence,
    us,
)
from traceanalyzer.doctor.subject import Subject, SubjectKind, on_operation
from traceanalyzer.trace.categories import RowKind


class EmptyIteration(Rule):
    """A timed iteration launches nothing."""

    code = "TA703"
    name = "empty-iteration"
    family = "cheating"
    thresholds = ()
    messages: ClassVar[dict[str, Message]] = {
        "some-empty": Message(
            "calls of {operation:name} do no work",
            "{empty:count} of {calls:plural call} of {operation:name} launch nothing: the average over all of them is not the cost of one (one that works takes "
            "{cost_ns:time}).",
        ),
        "fills-only": Message(
            "no kernels in {operation:name}",
            "{operation:name} runs no kernel, only {fills:plural fill} ({total_ns:time} together), while {other:name} runs kernels: a time or a speed-up of it is not "
            "that of a kernel.",
        ),
        "empty-region": Message(
            "the timed region {name:name} is empty",
            "{name:name} runs {operators:plural operator} and launches nothing, while {launches:plural launch} lie elsewhere: the work was put off, so its time is not "
            "in the region.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "one of six timed calls does the work of all",
                (*(host_range("timed_call", 10 * i, 8) for i in range(6)), launch(2, 1), kernel(12, 150, 1)),
                allows=("TA406",),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "each call launches",
                tuple(
                    e
                    for i in range(6)
                    for e in (
                        host_range("timed_call", 100 * i, 50),
                        launch(100 * i + 2, i + 1),
                        kernel(100 * i + 8, 90, i + 1),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.chosen.rows.any():
            return self.abstain("there is no device row")
        found = []
        rows, ranges, ops = analysis.trace.activities, analysis.trace.ranges, analysis.trace.host_ops
        with_kernels = [o for o in analysis.operations if o.kernels_per_iteration > 0]
        tested = measured(analysis)
        for op in tested:
            if op.iterations.windows is None:
                continue
            counts = [len(c) for c in op.iterations.calls]
            empty = [i for i, c in enumerate(counts) if c == 0]
            if empty and len(empty) < len(counts):
                work = [int(rows.dur_ns[p].sum()) for p in op.iterations.rows if len(p)]
                cost = float(np.median(work)) if work else None
                found.append(
                    self.say(
                        "some-empty",
                        Severity.WARNING,
                        Grade.PROVEN,
                        on_operation(analysis, op),
                        {"operation": op.iterations.name, "empty": len(empty), "calls": len(counts), "cost_ns": cost},
                        numbers={
                            "iterations": len(counts),
                            "empty": len(empty),
                            "threshold_empty": 0,
                            "cost_of_a_working_one_us": us(float(np.median(work))) if work else None,
                        },
                        evidence=[],
                        remedy=[
                            "check that each call computes its result: no cache, no lazy value",
                            "divide by the iterations that worked",
                        ],
                    )
                )
            elif not empty and op.kernels_per_iteration == 0 and with_kernels and len(op.worked):
                kinds = {int(k) for p in op.iterations.rows for k in rows.kind[p].tolist()}
                if kinds != {int(RowKind.MEMSET)}:
                    continue
                fills = sum(len(p) for p in op.iterations.rows)
                total = sum(int(rows.dur_ns[p].sum()) for p in op.iterations.rows)
                found.append(
                    self.say(
                        "fills-only",
                        Severity.WARNING,
                        Grade.PROVEN,
                        on_operation(analysis, op),
                        {
                            "operation": op.iterations.name,
                            "fills": fills,
                            "total_ns": total,
                            "other": with_kernels[0].iterations.name,
                        },
                        numbers={
                            "iterations": len(counts),
                            "fills": fills,
                            "fills_us": us(total),
                            "kernels": 0,
                            "threshold_kernels": 0,
                        },
                        evidence=[
                            activity_evidence(analysis, int(op.iterations.rows[int(i)][0]))
                            for i in op.worked[:3].tolist()
                        ],
                        remedy=["check the outputs against a reference with other inputs"],
                    )
                )
        launches = np.flatnonzero(analysis.host.launches & analysis.chosen.calls)
        for name, members in user_ranges(analysis.trace).items():
            if len(members) != 1 or not len(launches) or not timed_range(analysis, name):
                continue
            row = int(members[0])
            low, high = int(ranges.start_ns[row]), int(ranges.end_ns[row])
            starts = analysis.trace.calls.start_ns[launches]
            inside = (starts >= low) & (starts <= high)
            operators = int(
                np.count_nonzero((ops.start_ns >= low) & (ops.start_ns <= high) & (ops.thread == ranges.thread[row]))
            )
            if inside.any() or not operators:
                continue
            found.append(
                self.say(
                    "empty-region",
                    Severity.WARNING,
                    Grade.PROVEN,
                    Subject(SubjectKind.RANGE, name=name),
                    {"name": name, "operators": operators, "launches": len(launches)},
                    numbers={
                        "operators": operators,
                        "launches_inside": 0,
                        "launches_elsewhere": len(launches),
                        "threshold_launches": 0,
                    },
                    evidence=[range_evidence(analysis, row)],
                    remedy=["make the region compute its result: read the output inside it"],
                )
            )
        return found
