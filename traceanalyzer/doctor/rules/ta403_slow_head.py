"""TA403 slow-head: the first calls are slower than the later ones.

What it checks
    Whether an operation starts slow and settles: first self-times against the median of the second half.

Why it matters
    Warm-up belongs outside the measurement. What warms up (clocks, caches, code) cannot be told from
    durations alone.

How it is decided
    The first call takes over 1.2 times the later median plus 3 MAD. A warning when the head is 15 % of the
    calls or more, else a note: the median does not move. PROVEN.

Example
    30, 28, 26, 24, 22, 21 us, then 20 us: the mean is 22.6 us, the steady value 20.

What to do
    Drop the head, or warm up longer; quote the steady value.

When it is wrong
    A real cold-start benchmark.

References
    triton-lang/triton#2306, pytorch/helion#3572.
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
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import graded
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    show_us,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import HEAD_RATIO, Threshold

HEAD_SHARE = Threshold("head_share", 0.15, "share of calls", "a head this long pulls on the median too")


_HEAD = (
    "The first {head} of {calls:plural call} of {operation:name} are slow ({first_ns:time} first, HOW); the steady value is {steady_ns:time}, the mean of all "
    "{mean_ns:time}."
)


class SlowHead(Rule):
    """The first calls are slower than the later ones."""

    code = "TA403"
    name = "slow-head"
    family = "warm-up"
    thresholds = (HEAD_SHARE, HEAD_RATIO)
    messages: ClassVar[dict[str, Message]] = {
        "falling": Message(
            "insufficient warm-up of {operation:name}", _HEAD.replace("HOW", "falling steadily, as rising clocks do")
        ),
        "slow-head": Message(
            "insufficient warm-up of {operation:name}",
            _HEAD.replace("HOW", "as a cold cache, loading or rising clocks make it; durations alone cannot say which"),
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a ramp over half of the calls",
                tuple(
                    e
                    for i, k in enumerate((30, 28, 26, 24, 22, 21, 20, 20, 20, 20, 20, 20))
                    for e in (
                        launch(10 * i, i + 1),
                        kernel(200 + i + sum((30, 28, 26, 24, 22, 21, 20, 20, 20, 20, 20, 20)[:i]), k, i + 1),
                    )
                ),
                allows=("TA404", "TA406", "TA504", "TA405", "TA601", "TA602"),
            ),
        )
    )
    negative = Examples(lambda: (Example("steady from the first call", loop(12, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in analysis.operations:
            head = op.steady.head
            if head is None:
                continue
            share = head.iterations / len(op.self_ns)
            falling = op.self_ns[: head.iterations + 1]
            steadily = head.iterations > 2 and bool((np.diff(falling) <= 0).all())
            found.append(
                self.say(
                    "falling" if steadily else "slow-head",
                    graded(analysis, op) if share >= analysis.options.threshold(HEAD_SHARE) else Severity.NOTE,
                    Grade.PROVEN,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "head": head.iterations,
                        "calls": len(op.self_ns),
                        "first_ns": head.first,
                        "steady_ns": head.steady,
                        "mean_ns": float(op.self_ns.mean()),
                    },
                    numbers={
                        "head_calls": head.iterations,
                        "calls": len(op.self_ns),
                        "first_us": us(head.first),
                        "steady_p50_us": us(head.steady),
                        "mean_us": us(float(op.self_ns.mean())),
                        "first_over_steady": round(head.first / head.steady, 3) if head.steady else None,
                        "threshold_ratio": analysis.options.threshold(HEAD_RATIO),
                    },
                    evidence=[
                        activity_evidence(analysis, int(op.iterations.rows[int(i)][0])) for i in op.worked[:3].tolist()
                    ],
                    remedy=[
                        f"drop the first {head.iterations} calls and quote {show_us(head.steady)}",
                        "warm up until the time settles before recording",
                    ],
                )
            )
        return found
