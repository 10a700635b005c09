"""TA301 sync-in-loop: a synchronise empties the queue, and the device waits until the host has launched again.

What it checks
    Idle time of the device that began while the host was waiting in a synchronise.

Why it matters
    Each launch behind the wait starts on an idle device: a wall clock reads dispatch + latency + kernel + synchronise,
    an event pair dispatch + kernel. The ranking of two kernels can turn around; a training step loses what the host does
    before it launches again.

How it is decided
    Idle intervals that began with a synchronise open on a thread of the process: what it waited for had just ended. Its cost
    is the host's time from there to its next launch, in the wait itself, operators, code outside of them and launch calls.
    Time for loading data, compiling or allocating has causes of its own. A synchronise that returns while work is queued
    costs nothing and is not reported. PROVEN.

Example
    Fill, synchronise, start event, kernel: the pair reads 45 us for a kernel of 4 us.

What to do
    Synchronise once, after the loop; for the kernel alone read its self-time.

When it is wrong
    A latency benchmark may want it: then say that the number is latency.

References
    flashinfer-ai/flashinfer-bench#195, pytorch/pytorch#75393.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import call, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding, Param
from traceanalyzer.doctor.ledger_rule import (
    EXCEPTIONS,
    LOOK_AT_PAUSES,
    LedgerRule,
    cost_numbers,
    cost_params,
    exception_params,
)
from traceanalyzer.doctor.measured import LEAST_CALLS, measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example, us
from traceanalyzer.trace.tables import Bool


class SyncInLoop(LedgerRule):
    """A synchronise empties the queue."""

    code = "TA301"
    name = "sync-in-loop"
    family = "sync"
    change = "no_synchronise"
    messages: ClassVar[dict[str, Message]] = {
        "measured": Message(
            "a synchronise drains the queue before each call of {op:name}: {cost_ns:time}, {share:share} of the device's span, is idle after it",
            "{waits:count} waits in {api:name} ({per_call} per call) drain the queue before the next call of {op:name}, whose kernels take {self_ns:time}: "
            "{cost_ns:time} ({share:share}) of {span_ns:time} is idle after them.[[ A wall clock reads about {wall_ns:time}, an event pair {pair_ns:time}.]]",
        ),
        "drained": Message(
            "a synchronise drains the queue: {cost_ns:time}, {share:share} of the device's span, is idle after {api:name}"
            + EXCEPTIONS,
            "[[Device {device}: ]]the queue ran dry {waits:often} while the host waited in {api:name}[[ ({operator:name})]]; until it had launched again the "
            "device was idle {cost_ns:time} ({share:share} of {span_ns:time}), most of it in {top:cause} ({top_ns:time})[[, {second:cause} ({second_ns:time})]]"
            + EXCEPTIONS
            + ".",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a synchronise after each call", loop(12, 20, 10, sync=6.0), allows=("TA202", "TA406", "TA504", "TA501")
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "one synchronise after the loop", (*loop(12, 12, 10), call(1200, 10, "cudaDeviceSynchronize", 999))
            ),
            Example(
                "the host waits for the step before, with the next one queued",
                (*loop(40, 12, 30), *(call(1003 + 12 * i, 5, "cudaEventSynchronize", 900 + i) for i in range(1, 30))),
            ),
        )
    )

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments behind bare synchronises."""
        return device.waited(read_back=False)

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device; of one measured operation, with what timers around it read."""
        wait = device.waits_by_call(mask)[0]
        api, operator = wait.api, wait.operator
        waits = device.count(mask)
        params = cost_params(device, mask, self.change) | {"api": api, "operator": operator, "waits": waits}
        params |= exception_params(device, mask)
        numbers: dict[str, Param] = cost_numbers(analysis, params) | {"synchronises": waits}
        code = "drained"
        tested = measured(analysis)
        if len(tested) == 1 and len(tested[0].self_ns) >= LEAST_CALLS:
            op, code = tested[0], "measured"
            own, wall, pair = (
                stats.median(op.self_ns),
                op.readings.get("wall_sync_each"),
                op.readings.get("event_pair_sync"),
            )
            per_call = round(waits / len(op.self_ns), 3)
            params |= {"op": op.iterations.name, "per_call": per_call, "self_ns": own, "wall_ns": wall, "pair_ns": pair}
            numbers |= {
                "per_iteration": per_call,
                "self_time_p50_us": us(own),
                "wall_sync_each_us": us(wall),
                "event_pair_sync_us": us(pair),
            }
        return self.say(
            code, self.severity(analysis, device, mask), Grade.PROVEN, device.subject, params, numbers=numbers,
            evidence=device.evidence(mask, "idle after the wait"), remedy=[*([LOOK_AT_PAUSES] if params["few"] else []), *_remedy(analysis)], cost=device.cost(mask, self.change),
        )  # fmt: skip


def _remedy(analysis: Analysis) -> list[str]:
    if measured(analysis):
        return [
            "synchronise once, after the loop, and divide by the number of calls",
            "quote self-time for the kernel",
        ]
    return [
        "wait once, after the loop, or for an event of the step before",
        "look at what the host does after the wait: it is the cost",
    ]
