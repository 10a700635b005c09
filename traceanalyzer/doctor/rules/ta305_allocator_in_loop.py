"""TA305 allocator-in-loop: the device waits while the host allocates or frees memory.

What it checks
    Idle time of the device while the launching thread is in cudaMalloc, cudaFree, cudaHostAlloc or a similar call.

Why it matters
    Allocation costs the host more than most kernels, and freeing waits for the device. A caching allocator that runs out of memory
    frees all it holds and starts over: a storm of such calls.

How it is decided
    Each idle nanosecond belongs to what the host did in it; those inside allocation calls are the cost. Allocations that
    the queue hides cost nothing and are not reported. PROVEN. Where up to four calls of `single_call_us` or more hold half of the cost, the
    advice is that of a start: which library or mapping it was, the trace does not say.

Example
    40 times cudaFree and a cudaMalloc, 28.9 ms in a row: the allocator gave up and tried again.

What to do
    Allocate before the loop, or warm the caching allocator up first.

When it is wrong
    The allocation may be what is measured.

References
    iree-org/iree#17012, NVIDIA/Fuser#2673, pytorch/pytorch#19222.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import call, kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy, cost_numbers, cost_params
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import allocator_of, started_before_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import Threshold
from traceanalyzer.trace.tables import Bool, Int64

STORM_CALLS = Threshold(
    "storm_calls",
    8,
    "calls in one idle interval",
    "more than a step allocates: the allocator clears its cache and starts over",
)

SINGLE_CALL_US = Threshold(
    "single_call_us",
    100_000.0,
    "us",
    "memory for a tensor takes a tenth of it: a longer call starts a library, or maps or frees gigabytes",
)
MOST_SINGLE = 4
"""More calls as long as that are a habit of the run: no few libraries start in them."""


def _storm(frees: int) -> tuple[dict[str, object], ...]:
    """Return a loop on a full queue; in its middle the queue drains and memory is freed so many times in a row."""
    events: list[dict[str, object]] = [*loop(20, 10, 90)]
    at = 1000.0 + 4 + 20 * 90
    for i in range(frees):
        events.append(call(at + 10 + 300 * i, 295, "cudaFree", 900 + i))
    for i in range(20):
        start = at + 15 + 300 * frees + 10 * i
        events += [launch(start, 500 + i), kernel(at + 25 + 300 * frees + 90 * i, 90, 500 + i)]
    return tuple(events)


class AllocatorInLoop(LedgerRule):
    """The device waits for allocation."""

    code = "TA305"
    name = "allocator-in-loop"
    family = "sync"
    change = "no_allocation"
    thresholds = (*LedgerRule.thresholds, STORM_CALLS, SINGLE_CALL_US)
    causes = (LedgerClass.ALLOCATION,)
    remedies: ClassVar[tuple[Remedy, ...]] = (allocator_of, "allocate before the loop")
    messages: ClassVar[dict[str, Message]] = {
        "allocation": Message(
            "allocation holds the device up: it waits {cost_ns:time}, {share:share} of its span, for {top:cause}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the host is in {top:cause} ({top_ns:time})"
            "[[ and {second:cause} ({second_ns:time})]], in {intervals:plural idle interval}: this is why the host is late there.",
        ),
        "storm": Message(
            "an allocation storm holds the device up: it waits {cost_ns:time}, {share:share} of its span, most of it for {top:cause}, up to {most:count} calls in a row",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits while the host is in {top:cause} ({top_ns:time})"
            "[[ and {second:cause} ({second_ns:time})]], up to {most:count} calls in one idle interval: an allocator that runs out of memory frees what it holds and "
            "tries again.",
        ),
        "single-calls": Message(
            "single allocation calls hold the device up: it waits {cost_ns:time}, {share:share} of its span, for them, up to {longest_ns:time} in one call of {top:cause}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device waits while the host is in {top:cause} ({top_ns:time})"
            "[[ and {second:cause} ({second_ns:time})]]; {long:plural call} of {limit_ns:time} or more hold {long_ns:time} of it. Memory for a tensor takes far less: "
            "a library or context that starts takes this long, and so do gigabytes that are mapped or freed.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a cudaFree of 400 ms, in which a library starts",
                (
                    *loop(20, 10, 90),
                    call(3000, 400_000, "cudaFree", 900),
                    *(
                        e
                        for i in range(20)
                        for e in (launch(403_010 + 10 * i, 500 + i), kernel(403_020 + 90 * i, 90, 500 + i))
                    ),
                ),
                allows=("TA211", "TA308"),
            ),
            Example(
                "cudaMalloc and cudaFree around each launch",
                tuple(
                    e
                    for i in range(6)
                    for e in (
                        call(500 * i, 280, "cudaMalloc", 900 + i),
                        launch(500 * i + 285, i + 1),
                        kernel(500 * i + 292, 25, i + 1),
                        call(500 * i + 300, 150, "cudaFree", 950 + i),
                    )
                ),
                allows=("TA201", "TA202", "TA406", "TA504", "TA501", "TA211"),
            ),
            Example("twelve cudaFree in a row", _storm(12), allows=("TA211",)),
        )
    )
    negative = Examples(lambda: (
        Example("an allocation before the loop", (call(0, 280, "cudaMalloc", 900), *loop(12, 12, 10))),
        Example(
            "allocations that a full queue hides",
            (*loop(40, 10, 60), *(call(1003 + 10 * i, 6, "cudaMalloc", 900 + i) for i in range(1, 30))),
        ),
    ))  # fmt: skip

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device."""
        call, length = _calls(device, mask)
        most = int(np.unique(call, return_counts=True)[1].max(initial=0))
        limit = analysis.options.threshold(SINGLE_CALL_US) * 1000
        long = length[length >= limit]
        longest = int(length.max(initial=0))
        params = cost_params(device, mask, self.change) | {"most": most, "longest_ns": longest}
        params |= {"long": len(long), "long_ns": int(long.sum()), "limit_ns": int(limit)}
        single = 2 * int(long.sum()) >= int(length.sum()) and len(long) <= MOST_SINGLE
        storm = most >= analysis.options.threshold(STORM_CALLS)
        return self.say(
            "single-calls" if single else "storm" if storm else "allocation",
            self.severity(analysis, device, mask), Grade.PROVEN, device.subject, params,
            numbers=cost_numbers(analysis, params) | {"most_calls_in_one_interval": most, "longest_call_us": longest / 1000},
            evidence=device.evidence(mask), remedy=[started_before_of(analysis)] if single else self.remedy(analysis),
            cost=device.cost(mask, self.change),
        )  # fmt: skip


def _calls(device: DeviceCauses, mask: Bool) -> tuple[Int64, Int64]:
    """Return, for each allocation call, its idle interval and how long the device waited in it; calls are told apart by the time between them."""
    ledger = device.ledger
    at = np.flatnonzero(mask)
    # two pieces of one interval with the same name that touch are one call
    apart = np.ones(len(at), dtype=bool)
    apart[1:] = (
        (ledger.interval[at[1:]] != ledger.interval[at[:-1]])
        | (ledger.start[at[1:]] > ledger.end[at[:-1]])
        | (ledger.name[at[1:]] != ledger.name[at[:-1]])
    )
    first = np.flatnonzero(apart)
    return ledger.interval[at[first]], np.add.reduceat(ledger.ns[at], first) if len(at) else ledger.ns[:0]
