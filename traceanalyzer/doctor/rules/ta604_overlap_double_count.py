"""TA604 overlap-double-count: kernels overlap, so their sum is not elapsed time.

What it checks
    The sum of self-times of a device against the union of its rows.

Why it matters
    Where rows overlap, on several streams or by dependent launch, the sum counts the same moment twice.

How it is decided
    More than 2 % of the sum of self-times lies where another row runs too. PROVEN.

Example
    Six kernels of 10 us that start every 9 us: the sum is 60 us, the device was busy 55.

What to do
    Quote busy time (the union) for elapsed time, or the start-to-start interval for the cost per call.

When it is wrong
    Intended concurrency: the finding is correct, and nothing needs fixing.

References
    NVIDIA/cccl#9134.
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
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    us,
)
from traceanalyzer.doctor.subject import on_device
from traceanalyzer.options import Threshold

OVERLAP_SHARE = Threshold("overlap_share", 0.02, "share of the sum", "2 % is where the two numbers part in print")


class OverlapDoubleCount(Rule):
    """Kernels overlap, so their sum is not elapsed time."""

    code = "TA604"
    name = "overlap-double-count"
    family = "statistics"
    thresholds = (OVERLAP_SHARE,)
    messages: ClassVar[dict[str, Message]] = {
        "overlap-double-count": Message(
            "kernels overlap",
            "Self-times on device {label} sum to {self_time_ns:time}, the device was busy {busy_ns:time} ({over:share} less): rows overlap, so a sum of self-times is not elapsed time.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "kernels on two streams", (launch(0, 1), kernel(10, 20, 1), launch(1, 2), kernel(15, 20, 2, stream=8))
            ),
        )
    )
    negative = Examples(lambda: (Example("kernels one after the other", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        for device in analysis.devices:
            idle = device.idle
            over = 1 - idle.busy_ns / idle.self_time_ns if idle.self_time_ns else 0.0
            if over <= analysis.options.threshold(OVERLAP_SHARE):
                continue
            label = analysis.trace.devices[device.device].label
            found.append(
                self.say(
                    "overlap-double-count",
                    Severity.NOTE,
                    Grade.PROVEN,
                    on_device(analysis, device.device),
                    {"label": label, "self_time_ns": idle.self_time_ns, "busy_ns": idle.busy_ns, "over": over},
                    numbers={
                        "self_time_us": us(idle.self_time_ns),
                        "busy_us": us(idle.busy_ns),
                        "overlap_share": round(over, 6),
                        "threshold_overlap_share": analysis.options.threshold(OVERLAP_SHARE),
                    },
                    evidence=[],
                    remedy=["quote busy time, or the start-to-start interval per call"],
                )
            )
        return found
