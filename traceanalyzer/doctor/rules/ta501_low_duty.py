"""TA501 low-duty: the device is idle between kernels, so its clocks may sag.

What it checks
    How much of its time the device works, and how long it pauses between kernels.

Why it matters
    A device that waits lowers its clocks; kernels after a pause of tens of microseconds ran 5 to 15 %
    slower in public reports.

How it is decided
    Busy under 50 % with a median gap over 20 us. A HINT; a CPU-bound finding on the device silences it, because it names the cause.

Example
    A kernel every 200 us behind a data loader.

What to do
    Add a back-to-back run, or lock the clocks and say so.

When it is wrong
    Locked clocks.

References
    ROCm/vllm PR 928.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.example import (
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

LOW_DUTY_BUSY = Threshold("low_duty_busy", 0.5, "share of the span", "half idle is enough for clocks to fall")
LOW_DUTY_GAP_US = Threshold("low_duty_gap_us", 20.0, "us", "pauses of tens of microseconds were seen to cost 5-15 %")
LOW_DUTY_LAUNCHES = Threshold("low_duty_launches", 10, "launches", "a handful of launches is no benchmark")


class LowDuty(Rule):
    """The device is idle between kernels, so its clocks may sag."""

    code = "TA501"
    name = "low-duty"
    family = "clocks"
    thresholds = (LOW_DUTY_BUSY, LOW_DUTY_GAP_US, LOW_DUTY_LAUNCHES)
    messages: ClassVar[dict[str, Message]] = {
        "low-duty": Message(
            "the device idles between kernels",
            "Device {label} works {busy:share} of its time and pauses {gap_ns:time} between rows (median): its clocks may sag in between.",
        ),
    }
    positive = Examples(
        lambda: (
            Example("a synchronise per call on an idle device", loop(20, 100, 10, sync=6.0), allows=("TA301", "TA202")),
        )
    )
    negative = Examples(lambda: (Example("back to back", loop(40, 10, 30)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        busy_limit, gap_limit = (
            analysis.options.threshold(LOW_DUTY_BUSY),
            analysis.options.threshold(LOW_DUTY_GAP_US),
        )
        least = analysis.options.threshold(LOW_DUTY_LAUNCHES)
        for device in analysis.devices:
            idle = device.idle
            if device.queue.counted < least or not idle.span_ns or device.queue.state is QueueState.CPU_BOUND:
                continue
            busy = idle.busy_ns / idle.span_ns
            gap = idle.short_p50_ns
            if busy >= busy_limit or gap is None or gap <= gap_limit * 1000:
                continue
            label = analysis.trace.devices[device.device].label
            found.append(
                self.say(
                    "low-duty",
                    Severity.NOTE,
                    Grade.HINT,
                    on_device(analysis, device.device),
                    {"label": label, "busy": busy, "gap_ns": gap},
                    numbers={
                        "busy_share": round(busy, 6),
                        "threshold_busy": busy_limit,
                        "gap_p50_us": us(gap),
                        "threshold_gap_us": gap_limit,
                    },
                    evidence=[],
                    remedy=["add a back-to-back run, or lock the clocks and say so"],
                )
            )
        return found
