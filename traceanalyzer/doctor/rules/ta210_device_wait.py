"""TA210 device-wait: work that was launched did not start: the device waited for something else.

What it checks
    Idle time of the device behind the return of a launch call, longer than any launch takes to reach it.

Why it matters
    The host was in time. What held the work back is an event, another stream or device, a collective, or a
    graph being uploaded: it does not show as anybody's row.

How it is decided
    Idle intervals from the return of the call to the start of its row beyond the launch latency of the
    trace (20 to 100 us). PROVEN that it waited; what for is a HINT.

Example
    Two ms between the call of a graph launch and its first node.

What to do
    Look at what runs on the other streams and ranks at that moment, and at event waits before the launch.

When it is wrong
    Work from before the recording may still have run: the first row of a stream is never counted.

References
    sgl-project/sglang#5593.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example


def _held_back(wait: float) -> tuple[dict[str, Any], ...]:
    """Return 12 kernels of 500 us, each started ``wait`` us behind its launch call; calls come as the kernel before ends."""
    events: list[dict[str, Any]] = []
    for i in range(12):
        at = (500 + wait) * i
        events += [launch(at, i + 1), kernel(at + 2 + wait, 500, i + 1)]
    return tuple(events)


class DeviceWait(LedgerRule):
    """Work that was launched did not start: the device waited for something else."""

    code = "TA210"
    name = "device-wait"
    family = "queue"
    since = "0.2.0"
    remedies: ClassVar[tuple[Remedy, ...]] = (
        "look at the other streams, devices and ranks at these moments, and at the event waits before the launch",
        "record with synchronisation rows (cuda_sync) to see which event",
    )
    messages: ClassVar[dict[str, Message]] = {
        "device-wait": Message(
            "launched work waits on the device: {cost_ns:time}, {share:share} of its span, passes between the return of {top:name} and its start",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} is idle although the work had been launched, "
            "{intervals:count} times, up to {top_longest_ns:time}, behind {top:name}: it waited for something on the device's side (an "
            "event, another stream or device, a graph's upload).",
        )
    }
    causes = (LedgerClass.DEVICE_WAIT,)
    grade: ClassVar[Grade] = Grade.DERIVED
    positive: ClassVar[tuple[Example, ...]] = (
        Example("each kernel starts 300 us behind its call", _held_back(300), allows=("TA201", "TA202")),
    )
    negative: ClassVar[tuple[Example, ...]] = (Example("a launch takes 4 us", _held_back(4)),)
