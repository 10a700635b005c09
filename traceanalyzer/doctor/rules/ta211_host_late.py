"""TA211 host-late: the device waits for the host to launch: the host's own work is longer than the device's.

What it checks
    Idle time of the device while the launching thread runs operators, Python, code outside of operators, or
    is in launch calls.

Why it matters
    The run is limited by the host: faster kernels change nothing, fewer launches or a faster host do.

How it is decided
    Idle intervals that began because the host was late, each nanosecond given to what the launching thread
    did in it. PROVEN. Silent where TA201 says it with the pace of the launches.

Example
    A training step of 4,000 launches: the device is 13 % busy, 72 % of its span goes to operators.

What to do
    Capture the step in a graph, compile it, or fuse operators.

When it is wrong
    A profiler that records stacks and shapes slows the host; the unprofiled run may be less late.

References
    facebookresearch/sam2#768.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.doctor.causes import DeviceCauses, Family
from traceanalyzer.doctor.example import cpu_op, kernel, launch
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import graph_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import IDLE_SHARE, Threshold
from traceanalyzer.trace.tables import Bool

HOST_MENTION = Threshold(
    "host_mention",
    0.05,
    "share of the span",
    "a loop whose first launches find the device idle loses a few per cent by nature",
)


def _bursts(host: float) -> tuple[dict[str, Any], ...]:
    """Return bursts of eight launches, of which the first three wait for an operator of ``host`` us each."""
    events: list[dict[str, Any]] = []
    at, free, corr = 0.0, 0.0, 0
    for _ in range(6):
        for i in range(8):
            corr += 1
            if i < 3:
                events.append(cpu_op("aten::slow", at, host))
                at += host
            start = max(at + 4, free)
            events += [launch(at, corr), kernel(start, 10, corr, f"k{i}")]
            free = start + 10
            at += 3
    return tuple(events)


class HostLate(LedgerRule):
    """The device waits for the host to launch: the host's own work is longer than the device's."""

    code = "TA211"
    name = "host-late"
    family = "queue"
    since = "0.2.0"
    thresholds = (HOST_MENTION, IDLE_SHARE)
    least, warns_from = HOST_MENTION, IDLE_SHARE
    remedies: ClassVar[tuple[Remedy, ...]] = (graph_of, "fuse operators, so that there are fewer launches")
    messages: ClassVar[dict[str, Message]] = {
        "host-late": Message(
            "the host launches too late: the device waits {cost_ns:time}, {share:share} of its span, for it, most in {top:name} ({top_ns:time})",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits for its next launch: {top:name} "
            "{top_ns:time} in {top_count:count} places[[, {second:name} {second_ns:time}]][[, {third:name} {third_ns:time}]]. The device is "
            "busy {busy:share}.",
        )
    }
    positive: ClassVar[tuple[Example, ...]] = (
        Example("operators of 60 us between kernels of 10 us, in bursts", _bursts(60), allows=("TA202", "TA205")),
    )
    negative: ClassVar[tuple[Example, ...]] = (Example("the host is far ahead", _bursts(3)),)

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments of the family dispatch."""
        return device.families[Family.DISPATCH]
