"""TA404 changepoint: the time of an operation changes level during the run.

What it checks
    Whether the self-times of an operation form two levels in time.

Why it matters
    A median over two levels describes neither. Clocks, power limits and inputs move the level.

How it is decided
    The split of log self-times with the least squared error (binary segmentation): medians over 5 % apart
    and over four times the scatter, five calls or more on each side, half of the squared error explained.
    DERIVED.

Example
    Twelve GEMMs of one shape: six of 100 us, new random inputs, six of 107.

What to do
    Report both levels; find out what changed between them.

When it is wrong
    A stream of inputs of different shapes.

References
    NVIDIA/cutlass#2004, flashinfer-ai/flashinfer#2899.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    kernel,
    launch,
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding
from traceanalyzer.doctor.measured import graded
from traceanalyzer.doctor.message import Message, numbered
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import LEVEL_SHIFT

_LEVELS = "{operation:name} takes {before_ns:time} in its first {before:plural call} and {after_ns:time} in the other {after} ({shift:change}). "
_NOBODYS = "One median over both is nobody's number."


class Changepoint(Rule):
    """The time of an operation changes level during the run."""

    code = "TA404"
    name = "changepoint"
    family = "warm-up"
    thresholds = (LEVEL_SHIFT,)
    messages: ClassVar[dict[str, Message]] = {
        "changepoint": Message(
            "{operation:name} has two levels, {before_ns:time} and {after_ns:time}",
            _LEVELS + "Clocks, power limits or inputs may have changed. " + _NOBODYS,
        ),
        "other-rows-between": Message(
            "{operation:name} has two levels, {before_ns:time} and {after_ns:time}",
            _LEVELS
            + "Between them ran {first:name}[[, {second:name}]][[, {third:name}]]: the inputs may have changed. "
            + _NOBODYS,
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "ten calls of 100 us, ten of 115",
                tuple(
                    e
                    for i in range(20)
                    for e in (
                        launch(10 * i, i + 1),
                        kernel(300 + 101 * min(i, 10) + 116 * max(0, i - 10), 100 if i < 10 else 115, i + 1),
                    )
                ),
                allows=("TA406", "TA504", "TA602", "TA601"),
            ),
        )
    )
    negative = Examples(lambda: (Example("one level", loop(30, 10, 100)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        rows = analysis.trace.activities
        for op in analysis.operations:
            if op.iterations.method == "repeating kernels" and op.iterations.certainty == "uncertain":
                continue
            values = op.self_ns
            head, change = op.steady.head, op.steady.change_behind_head
            skip = head.iterations if head is not None else 0
            if change is None:
                continue
            at = int(op.worked[skip + change.at])
            before, after = op.iterations.rows[int(op.worked[skip + change.at - 1])], op.iterations.rows[at]
            mine = np.concatenate([before, after])
            between = np.flatnonzero(
                (rows.start_ns >= rows.end_ns[before].max())
                & (rows.end_ns <= rows.start_ns[after].min())
                & analysis.chosen.rows
            )
            between = between[~np.isin(between, mine)]
            others = [analysis.trace.names[n] for n in rows.name[between[:3]].tolist()]
            found.append(
                self.say(
                    "other-rows-between" if others else "changepoint",
                    graded(analysis, op),
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "before_ns": change.before,
                        "after_ns": change.after,
                        "before": skip + change.at,
                        "after": len(values) - skip - change.at,
                        "shift": change.shift,
                        **numbered(others),
                    },
                    numbers={
                        "before_p50_us": us(change.before),
                        "after_p50_us": us(change.after),
                        "shift": round(change.shift, 6),
                        "threshold_shift": analysis.options.threshold(LEVEL_SHIFT),
                        "calls_before": skip + change.at,
                        "calls_after": len(values) - skip - change.at,
                    },
                    evidence=[
                        activity_evidence(analysis, int(before[0]), "last of the first level"),
                        activity_evidence(analysis, int(after[0]), "first of the second level"),
                    ],
                    remedy=[
                        "report both levels, or the one you can explain",
                        "record clocks and power with the trace; keep the inputs fixed",
                    ],
                )
            )
        return found
