"""TA302 hidden-sync: a copy, or reading a value, makes the host wait and empties the queue.

What it checks
    Idle time of the device inside copy calls, and behind copies that the host waited for: from pageable memory, to the
    host, or an operator that reads a value (`.item()`, `nonzero`, `.cpu()`).

Why it matters
    Such a copy drains the queue as a synchronise does, and often costs more than the kernels around it.

How it is decided
    Idle intervals that began while the host was in a copy call, or in a synchronise of an operator that reads a value or copies: the
    copy had ended before its call returned. Its cost is the host's time from there to its next launch; where that is mostly long
    work of the host between operators, and no replay says that the wait itself holds the run up, the message says so. Idle time inside the
    copy call of the row that ends it (staging of pageable memory) is a finding of its own. A copy whose call had returned before it ran made
    nobody wait. PROVEN.

Example
    A 10 ms call for a copy of 0.4 ms from pageable memory, before a kernel of 50 us.

What to do
    Pin host memory and copy with non_blocking=True; keep results on the device until the loop ends.

When it is wrong
    A needed data-dependent shape is part of the operation.

References
    pytorch/pytorch#135794, cupy/cupy#1999, pytorch/pytorch#111570.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.ledger.membership import of_classes
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.advice import Advice
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import call, cpu_op, kernel, launch, loop, memcpy
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
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import look_at_host_of, pinned_of, read_back_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.trace.tables import Bool

HALF = 0.5
LONG_WORK_NS = 1_000_000
"""Code of the host that takes longer at a time, behind a copy that it waited for, is work and no way to the next launch."""


class HiddenSync(LedgerRule):
    """A copy or a read-back makes the host wait."""

    code = "TA302"
    name = "hidden-sync"
    family = "sync"
    change = "no_host_waits"
    messages: ClassVar[dict[str, Message]] = {
        "read-back": Message(
            "reading values back drains the queue: {cost_ns:time}, {share:share} of the device's span, is idle after {what:name}"
            + EXCEPTIONS,
            "[[Device {device}: ]]{waits:often} the host waited in {api:name}[[ of {operator:name}]] until the queue was empty; the device was idle "
            "{cost_ns:time} ({share:share} of {span_ns:time}) until it had launched again, most of it in {top:cause} ({top_ns:time})"
            + EXCEPTIONS
            + ".",
        ),
        "work-behind": Message(
            "the device waits while the host works after a read-back: {cost_ns:time}, {share:share} of its span, passes after {what:name}, "
            "most in {top:cause} ({top_ns:time})" + EXCEPTIONS,
            "[[Device {device}: ]]{waits:often} the host waited in {api:name}[[ of {operator:name}]] until the queue was empty; until it had launched again the "
            "device was idle {cost_ns:time} ({share:share} of {span_ns:time}), most of it while the host worked: {top:cause} ({top_ns:time}, up to "
            "{top_longest_ns:time} at a time)" + EXCEPTIONS + ".",
        ),
        "input-copy": Message(
            "copies to the device make the host wait: {cost_ns:time}, {share:share} of the device's span, is idle after {what:name}",
            "[[Device {device}: ]]{waits:often} the host waited in {api:name}[[ of {operator:name}]] until its copy was done and the queue was empty; the "
            "device was idle {cost_ns:time} ({share:share} of {span_ns:time}) until it had launched again, most of it in {top:cause} ({top_ns:time}).",
        ),
        "copy-call": Message(
            "copy calls hold the device up: {cost_ns:time}, {share:share} of its span, passes in {api:name}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the host is in copy calls: {api:name}, "
            "{waits:plural idle interval} of up to {top_longest_ns:time}[[, {kinds}]].",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "inputs from pageable memory in each iteration",
                tuple(
                    e
                    for i in range(6)
                    for e in (
                        *memcpy(300 * i + 4, 300 * i + 10, 200, 10 * i + 1, 210),
                        launch(300 * i + 240, 10 * i + 2),
                        kernel(300 * i + 250, 10, 10 * i + 2),
                    )
                ),
                allows=("TA201", "TA202", "TA406", "TA504", "TA501", "TA203", "TA205", "TA211", "TA311"),
            ),
            Example(
                "a value is read in each step",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        launch(300 * i, 10 * i + 1),
                        kernel(300 * i + 5, 100, 10 * i + 1),
                        cpu_op("aten::item", 300 * i + 20, 100),
                        *memcpy(300 * i + 22, 300 * i + 106, 2, 10 * i + 2, 3, "DtoH (Device -> Pageable)"),
                        call(300 * i + 26, 90, "cudaStreamSynchronize", 10 * i + 3),
                    )
                ),
                allows=("TA201", "TA202", "TA205", "TA211", "TA301"),
            ),
            Example(
                "the host works for 3 to 6 ms on each result, of changing work, before it launches again",
                tuple(
                    e
                    for i, (at, kernels) in enumerate(
                        ((0, 3), (4000, 5), (9000, 2), (13_000, 7), (19_500, 4), (23_000, 6))
                    )
                    for e in (
                        *(launch(at + 4 * k, 100 * i + k + 1) for k in range(kernels)),
                        *(kernel(at + 6 + 50 * k, 50, 100 * i + k + 1, f"part_{k}") for k in range(kernels)),
                        *memcpy(
                            at + 32,
                            at + 8 + 50 * kernels,
                            2,
                            100 * i + 90,
                            50 * kernels - 20,
                            "DtoH (Device -> Pageable)",
                        ),
                    )
                ),
                allows=("TA201", "TA202", "TA205", "TA211", "TA301", "TA308", "TA406", "TA507", "TA203"),
            ),
        )
    )
    negative = Examples(lambda: (
        Example("one copy before the loop", (*memcpy(0, 10, 200, 900, 210), *loop(40, 12, 15))),
        Example(
            "a copy whose call returns long before it runs",
            tuple(
                e
                for i in range(12)
                for e in (
                    launch(20 * i, 10 * i + 1),
                    kernel(5 + 106 * i, 100, 10 * i + 1),
                    *memcpy(20 * i + 5, 106 + 106 * i, 4, 10 * i + 2, 3, "DtoH (Device -> Pageable)"),
                )
            ),
        ),
    ))  # fmt: skip

    def parts(self, device: DeviceCauses) -> list[Bool]:
        """Return the segments behind waits for a copy or a value, and those inside copy calls: each has its own cost and its own end."""
        return [device.waited(read_back=True), device.of(LedgerClass.COPY_CALL)]

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device on what the segments are: behind waits, or inside calls."""
        read_back = bool((mask & device.waited(read_back=True)).any())
        # a copy's call that holds the device up ends with the copy calls alone, a wait for a value with all waits
        change = self.change if read_back else "no_copy_calls"
        params, code = cost_params(device, mask, change), "copy-call"
        if read_back:
            wait = device.waits_by_call(mask)[0]
            api, operator = wait.api, wait.operator
            code = "input-copy" if wait.direction == "to device" else "read-back"
            if code == "read-back" and _works_behind(device, mask):
                code = "work-behind"
            params |= {
                "api": api,
                "operator": operator,
                "what": operator or api,
                "waits": device.count(mask),
                "kinds": "",
            }
        else:
            params |= {
                "api": device.items(mask)[0].what, "operator": "", "what": "", "waits": device.count(mask), "kinds": _kinds(analysis, device, mask),
            }  # fmt: skip
        params |= exception_params(device, mask)
        return self.say(
            code, self.severity(analysis, device, mask), Grade.PROVEN, device.subject, params,
            numbers=cost_numbers(analysis, params) | {"waits": params["waits"], "operator": params["operator"]},
            evidence=device.evidence(mask, "idle after the copy" if read_back else "idle inside the copy call"),
            remedy=_remedy(analysis, device, code, params),
            cost=device.cost(mask, change),
        )  # fmt: skip


def _remedy(analysis: Analysis, device: DeviceCauses, code: str, params: dict[str, Param]) -> list[str]:
    """Return how copies do not block: results stay on the device, inputs are pinned, of small copies fewer are made."""
    kinds = str(params["kinds"])
    if code == "work-behind" and params["few"]:
        return [LOOK_AT_PAUSES, look_at_host_of(analysis, device)]
    if code == "work-behind":
        return [
            "launch the next work before the host works on what it read, or do that work on the device",
            look_at_host_of(analysis, device),
            read_back_of(analysis),
        ]
    if code == "read-back" and params["few"]:
        return [LOOK_AT_PAUSES, read_back_of(analysis)]
    if code == "read-back" and not params["operator"] and "synchronize" in str(params["api"]).lower():
        return [
            Advice("launch the next step before waiting for the values of this one", " (asynchronous scheduling)"),
            read_back_of(analysis),
        ]
    if code == "read-back":
        return [read_back_of(analysis), pinned_of(analysis)]
    if code == "input-copy" or "Pageable" in kinds:
        return [pinned_of(analysis), "move inputs to the device before the loop"]
    return ["make fewer, larger copies, or one kernel that copies", "move inputs to the device before the loop"]


def _works_behind(device: DeviceCauses, behind: Bool) -> bool:
    """Return whether the time behind the waits is the host's own long work, which stays where nobody waits, unless a replay tells otherwise."""
    own = behind & of_classes(device.ledger.cls, (LedgerClass.BETWEEN_OPS, LedgerClass.PYTHON))
    worth = device.worth("no_host_waits")
    if worth is not None and worth.share >= HALF * device.share(behind):
        return False
    return device.ns(own) >= HALF * device.ns(behind) and device.mostly_long(own, LONG_WORK_NS)


def _kinds(analysis: Analysis, device: DeviceCauses, mask: Bool) -> str:
    """Return the kind of copy that most of the intervals end with."""
    trace, rows = analysis.trace, device.ledger.row[mask]
    if not len(rows):
        return ""
    names, counts = np.unique(trace.activities.name[rows], return_counts=True)
    return trace.names[int(names[np.argmax(counts)])]
