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

import re
from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.advice import Advice
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool


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
        Advice("record with synchronisation rows", " (cuda_sync) to see which event"),
    )
    messages: ClassVar[dict[str, Message]] = {
        "device-wait": Message(
            "launched work waits on the device: {cost_ns:time}, {share:share} of its span, passes between the return of {top:cause} and its start",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} is idle although the work had been launched, "
            "{intervals:often}, up to {top_longest_ns:time}, after {top:cause}: it waited for something on the device's side (an "
            "event, another stream or device, a graph's upload).",
        ),
        "no-reason": Message(
            "launched work starts late: {cost_ns:time}, {share:share} of its span, passes between the return of {top:cause} and its start, "
            "and the trace shows nothing that it could have waited for",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} is idle although the work had been launched, "
            "{intervals:often}, up to {top_longest_ns:time}, after {top:cause}. The trace has one stream and no wait for an event: what held the device "
            "up is not in it (another program on the device, its clocks or power state, or the profiler).",
        ),
    }
    causes = (LedgerClass.DEVICE_WAIT,)
    grade: ClassVar[Grade] = Grade.DERIVED
    positive = Examples(
        lambda: (Example("each kernel starts 300 us after its call", _held_back(300), allows=("TA201", "TA202")),)
    )
    negative = Examples(lambda: (Example("a launch takes 4 us", _held_back(4)),))

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device; it says so where the trace holds nothing that the work could have waited for."""
        found = super().judged(analysis, device, mask)
        if _could_wait(analysis, device.ledger.device):
            return found
        told = self.say(
            "no-reason", found.severity, Grade.HINT, found.subject, found.params,
            numbers=found.numbers, evidence=found.evidence, remedy=[
                Advice("look whether another process uses the device", " (nvidia-smi), and record again without stacks, shapes and memory"),
                Advice("record with synchronisation rows", " (cuda_sync) to see waits for events"),
            ], cost=found.cost,
        )  # fmt: skip
        return told


_WAITS_FOR = re.compile(r"StreamWait|GraphLaunch|EventRecord", re.I)


def _could_wait(analysis: Analysis, device: int) -> bool:
    """Return whether the device has more than one stream, is one of several, or the host records events, waits for them or launches graphs."""
    trace = analysis.trace
    lanes = distinct(trace.activities.lane[analysis.chosen.rows]).tolist()
    streams = sum(trace.lanes[n].device == device for n in lanes)
    called = [trace.apis[n] for n in distinct(trace.calls.api).tolist()] if len(trace.calls) else []
    return streams > 1 or len(lanes) > streams or any(_WAITS_FOR.search(api) for api in called)
