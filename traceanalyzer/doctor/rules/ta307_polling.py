"""TA307 polling: the host asks the device over and over whether it is done, before each launch.

What it checks
    Idle intervals of the device before which the launching thread asked cudaStreamQuery (or a similar call) at
    least twice since its last launch.

Why it matters
    Polling is a wait: the queue is empty when the host sees that the device is done, and each launch starts
    on an idle device.

How it is decided
    Two queries or more between two launches, the last close to the interval; the cost is the host's time in
    it. PROVEN.

Example
    cuStreamQuery twice in each iteration: 47 % of the span is idle.

What to do
    Launch ahead, and wait once, with an event, where the value is needed.

When it is wrong
    A framework's own bookkeeping that asks now and then.

References
    CliMA/Oceananigans.jl#1912.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.advice import Advice
from traceanalyzer.doctor.causes import LEAST_POLLS, DeviceCauses
from traceanalyzer.doctor.example import call, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy, cost_numbers, cost_params
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool


def _polling(polls: bool) -> tuple[dict[str, Any], ...]:
    """Return 15 kernels of 60 us; the host asks every 20 us and launches behind the answer, or launches ahead."""
    events: list[dict[str, Any]] = []
    for i in range(15):
        at = 120 * i if polls else 10 * i
        start = at + 5 if polls else 5 + 60 * i
        events += [launch(at, i + 1), kernel(start, 60, i + 1)]
        if polls:
            events += [call(at + 20 * k, 2, "cuStreamQuery", 1000 + 10 * i + k, "cuda_driver") for k in range(1, 6)]
    return tuple(events)


class Polling(LedgerRule):
    """The host asks the device over and over whether it is done, before each launch."""

    code = "TA307"
    name = "polling"
    family = "sync"
    change = "no_host_waits"
    since = "0.2.0"
    remedies: ClassVar[tuple[Remedy, ...]] = (
        Advice("launch the next work before the last is done", "; wait once, with an event, where a value is needed"),
    )
    messages: ClassVar[dict[str, Message]] = {
        "polling": Message(
            "the host polls the device before it launches again: {cost_ns:time}, {share:share} of the span, is idle after {api:name}",
            "[[Device {device}: ]]in {intervals:plural idle interval} the host asked {api:name} again and again whether the device was done "
            "and launched only then: {cost_ns:time} ({share:share}) of {span_ns:time}. It is a synchronise in another form: the queue is "
            "empty each time.",
        )
    }
    positive = Examples(
        lambda: (
            Example("a query every 20 us until the kernel is done", _polling(True), allows=("TA201", "TA202", "TA211")),
        )
    )
    negative = Examples(lambda: (Example("launches ahead, no questions", _polling(False)),))

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments of polling."""
        return device.polled

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device, with the call that asks."""
        api = _asked(analysis, device, mask)
        params = cost_params(device, mask, self.change) | {"api": api}
        return self.say(
            self.name, self.severity(analysis, device, mask), self.grade, device.subject, params, numbers=cost_numbers(analysis, params),
            evidence=device.evidence(mask), remedy=self.remedy(analysis), cost=device.cost(mask, self.change),
        )  # fmt: skip


def _asked(analysis: Analysis, device: DeviceCauses, mask: Bool) -> str:
    """Return the call that asks most often before the intervals."""
    calls, idle = analysis.trace.calls, device.ledger.idle
    threads = distinct(idle.thread[distinct(device.ledger.interval[mask])])
    names = [analysis.trace.apis[a] for a in calls.api[np.isin(calls.thread, threads)].tolist()]
    asked = Counter(n for n in names if any(word in n.lower() for word in LEAST_POLLS))
    return str(asked.most_common(1)[0][0])
