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

from dataclasses import replace
from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses, Family
from traceanalyzer.doctor.example import cpu_op, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy, cost_numbers, cost_params
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import dispatch_of, fewer_launches_of, slow_graph_launch_of
from traceanalyzer.doctor.rule import Example, us
from traceanalyzer.options import IDLE_SHARE, Threshold
from traceanalyzer.trace.tables import Bool

MOSTLY_LATENCY = 0.6
"""From this part of the wait on the latency of the launches is named, not what the host did."""
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


def _ping_pong() -> tuple[dict[str, Any], ...]:
    """Return pairs of kernels of 30 us, the second of which is launched when the first has just ended and starts 7 us after its call."""
    events: list[dict[str, Any]] = []
    for i in range(12):
        at = 120 * i
        events += [launch(at, 10 * i + 1, 2), kernel(at + 5, 30, 10 * i + 1, "first"), launch(at + 34, 10 * i + 2, 2)]
        events += [kernel(at + 44, 78, 10 * i + 2, "second")]
    return tuple(events)


def _slow_calls(length: float) -> tuple[dict[str, Any], ...]:
    """Return 12 rounds of four kernels and a graph launch called behind them, whose call takes so long; its kernel starts when it returns."""
    events: list[dict[str, Any]] = []
    for i in range(12):
        at = (length + 300) * i
        for k in range(4):
            events += [launch(at + 4 * k, 10 * i + k + 1), kernel(at + 5 + 30 * k, 29, 10 * i + k + 1, f"prepare_{k}")]
        events += [
            launch(at + 20, 10 * i + 9, length, "cudaGraphLaunch"),
            kernel(at + 20 + length, 250, 10 * i + 9, "graph_node"),
        ]
    return tuple(events)


class HostLate(LedgerRule):
    """The device waits for the host to launch: the host's own work is longer than the device's."""

    code = "TA211"
    name = "host-late"
    family = "queue"
    change = "launches_free"
    since = "0.2.0"
    thresholds = (HOST_MENTION, IDLE_SHARE)
    least, warns_from = HOST_MENTION, IDLE_SHARE
    remedies: ClassVar[tuple[Remedy, ...]] = (fewer_launches_of, "fuse operators, so that there are fewer launches")
    messages: ClassVar[dict[str, Message]] = {
        "launch-call": Message(
            "launch calls of the host hold the device up: it waits {api_ns:time}, {share:share} of its span, inside {api:name}, {each_ns:time} each time",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits for the host, {api_ns:time} of it inside {api:name} calls, "
            "{api_count:often}, {each_ns:time} each. The device is busy {busy:share}.",
        ),
        "launch-latency": Message(
            "launches reach an idle device: it waits {latency_ns:time}, {latency_share:share} of its span, for their latency[[, {each_ns:time} each time]]",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits for its next launch, {latency_ns:time} of it between the start of "
            "the launch call and the start of the work, {latency_count:often}[[, {each_ns:time} each]]: nothing was queued ahead to hide it. The device is busy "
            "{busy:share}.",
        ),
        "host-late": Message(
            "the host launches too late: the device waits {cost_ns:time}, {share:share} of its span, for it, most in {top:cause} ({top_ns:time})",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits for its next launch: {top:cause} "
            "{top_ns:time} in {top_count:plural place}[[, {second:cause} {second_ns:time}]][[, {third:cause} {third_ns:time}]]. The device is "
            "busy {busy:share}.",
        ),
    }
    positive = Examples(
        lambda: (
            Example("operators of 60 us between kernels of 10 us, in bursts", _bursts(60), allows=("TA202", "TA205")),
            Example(
                "each graph launch takes 300 us",
                _slow_calls(300),
                allows=("TA202", "TA205"),
            ),
            Example(
                "each second launch comes when the device has just become idle", _ping_pong(), allows=("TA202", "TA205")
            ),
        )
    )
    negative = Examples(lambda: (Example("the host is far ahead", _bursts(3)),))

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments of the family dispatch."""
        return device.families[Family.DISPATCH]

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device; where most of the time passes inside one launch call, of that call."""
        latency = mask & (device.ledger.cls == LedgerClass.LAUNCH_LATENCY)
        if device.ns(latency) >= MOSTLY_LATENCY * device.ns(mask):
            return self._latency(analysis, device, mask, latency)
        calls = device.of(LedgerClass.LAUNCH_CALL, LedgerClass.LAUNCH_STALL)
        if 2 * device.ns(calls) < device.ns(mask):
            return replace(super().judged(analysis, device, mask), remedy=dispatch_of(analysis, device, mask))
        params = cost_params(device, mask, self.change)
        item = device.items(calls, 1)[0]
        api = item.what
        params |= {"api": api, "api_ns": item.ns, "api_count": item.count, "each_ns": item.ns / max(1, item.count)}
        graph = "graph" in api.lower()
        return self.say(
            "launch-call", self.severity(analysis, device, mask), self.grade, device.subject, params,
            numbers=cost_numbers(analysis, params) | {"api": api, "inside_api_us": us(item.ns), "per_call_us": us(item.ns / max(1, item.count))},
            evidence=device.evidence(calls, "idle inside the launch call"),
            remedy=[slow_graph_launch_of(analysis)]
            if graph
            else [*self.remedy(analysis), "record without stacks, shapes and memory: they lengthen launch calls"],
            cost=device.cost(mask, self.change),
        )  # fmt: skip

    def _latency(self, analysis: Analysis, device: DeviceCauses, mask: Bool, latency: Bool) -> Finding:
        """Return the finding of a device that waits for the latency of launches, not for the host's work: the host was late by little."""
        params = cost_params(device, mask, self.change)
        count = device.count(latency)
        each = device.ns(latency) / max(1, count)
        params |= {
            "latency_ns": device.ns(latency),
            "latency_share": round(device.share(latency), 6),
            "latency_count": count,
            "each_ns": each if count > 1 else None,
        }
        return self.say(
            "launch-latency", self.severity(analysis, device, mask), self.grade, device.subject, params,
            numbers=cost_numbers(analysis, params) | {"latency_us": us(device.ns(latency)), "per_launch_us": us(each)},
            evidence=device.evidence(latency, "called, and not yet started"),
            remedy=["launch the next work before the last is done, so that it is queued when the device gets there", fewer_launches_of(analysis)],
            cost=device.cost(mask, self.change),
        )  # fmt: skip
