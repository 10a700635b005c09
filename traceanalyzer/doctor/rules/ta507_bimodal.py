"""TA507 bimodal: the time of an operation has two modes.

What it checks
    Whether self-times fall into two separate groups, mixed in time.

Why it matters
    The median then jumps from one group to the other between runs.

How it is decided
    Two means on log times over 5 % apart, each holding a tenth, with an empty valley between; not when a
    change of level (TA404) explains it. DERIVED.

Example
    A kernel that takes 20 us on even calls and 26 on odd ones.

What to do
    Print both modes; look at what differs: grid, stream, what ran before.

When it is wrong
    Few samples, coarse clocks.

References
    Hartigan 1985; pyperf check.
"""

from __future__ import annotations

from typing import ClassVar

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
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import MODE_GAP


class Bimodal(Rule):
    """The time of an operation has two modes."""

    code = "TA507"
    name = "bimodal"
    family = "cache"
    thresholds = (MODE_GAP,)
    messages: ClassVar[dict[str, Message]] = {
        "bimodal": Message(
            "{operation:name} has two modes",
            "{low_share:share} of the calls of {operation:name} take about {low_ns:time}, {high_share:share} about {high_ns:time} ({gap:change}): the median may be either.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "20 and 26 us in turn",
                tuple(
                    e
                    for i in range(40)
                    for e in (launch(5 * i, i + 1), kernel(300 + 24 * i + (i % 2) * 0.5, 20 if i % 2 else 23, i + 1))
                ),
                allows=("TA504", "TA601"),
            ),
        )
    )
    negative = Examples(lambda: (Example("one mode", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        for op in analysis.operations:
            if op.steady.change is not None:
                continue
            modes = op.steady.modes
            if modes is None:
                continue
            low, high, share = modes
            found.append(
                self.say(
                    "bimodal",
                    graded(analysis, op),
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "low_share": 1 - share,
                        "low_ns": low,
                        "high_share": share,
                        "high_ns": high,
                        "gap": high / low - 1,
                    },
                    numbers={
                        "low_p50_us": us(low),
                        "high_p50_us": us(high),
                        "share_high": round(share, 6),
                        "gap": round(high / low - 1, 6),
                        "threshold_gap": analysis.options.threshold(MODE_GAP),
                    },
                    evidence=[],
                    remedy=["print both modes and what differs between them: configuration, stream, what ran before"],
                )
            )
        return found
