"""TA311 exposed-copies: copies between host and device run while the device computes nothing.

What it checks
    Time in which the device copies to or from the host, or from another device, and no kernel runs.

Why it matters
    A copy that no compute covers adds to the step, however busy the device looks.

How it is decided
    Union of the copies less every instant at which a kernel runs on the device; copies within the device are its own
    work and do not count, nor does a trace that copies and hardly computes. A note where an operation is measured: its
    copies belong to its calls. PROVEN.

Example
    Each step copies its input for 600 us and computes for 380 us, one after the other.

What to do
    Copy the next input on a stream of its own while the device computes, from page-locked memory.

When it is wrong
    The copies are what is measured.

References
    The CUDA C++ Programming Guide, overlap of data transfer and kernel execution.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch, memcpy
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Severity
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import copy_ahead_of, pinned_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import MENTION_SHARE, Threshold
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool

EXPOSED_COPY_SHARE = Threshold(
    "exposed_copy_share", 0.2, "share of the span", "a fifth of the run: no kernel of the model is worth as much"
)
LEAST_COMPUTE = 0.02
"""A device that computes for less of its span is copied to and from for another purpose than its kernels."""


def _steps(overlapped: bool) -> tuple[dict[str, Any], ...]:
    """Return 20 steps that copy their input for 300 us and compute for 500, one after the other or the next copy meanwhile."""
    events: list[dict[str, Any]] = []
    period = 510 if overlapped else 810
    for i in range(20):
        at = period * i
        copies: tuple[dict[str, Any], ...] = memcpy(at, at + 10, 300, 100 * i + 1, 3, "HtoD (Pinned -> Device)")
        if overlapped:
            copies = tuple(e | {"tid": 20} if e["cat"] == "gpu_memcpy" else e for e in copies)
        begin = at + 5 if overlapped else at + 311
        # ten launches: a call of a few is a kernel under test, whose copies belong to it
        for k in range(10):
            events += [
                launch(at + 5 + k, 100 * i + k + 2, 0.5),
                kernel(begin + 50 * k, 50, 100 * i + k + 2, f"train_{k}"),
            ]
        events += copies
    return tuple(events)


class ExposedCopies(LedgerRule):
    """Copies between host and device run while the device computes nothing."""

    code = "TA311"
    name = "exposed-copies"
    family = "sync"
    since = "0.3.0"
    thresholds = (MENTION_SHARE, EXPOSED_COPY_SHARE)
    warns_from = EXPOSED_COPY_SHARE
    needs_host = False
    remedies: ClassVar[tuple[Remedy, ...]] = (copy_ahead_of, pinned_of)
    messages: ClassVar[dict[str, Message]] = {
        "exposed-copies": Message(
            "copies are exposed: for {cost_ns:time}, {share:share} of the device's span, it only copies, most of it {top:cause}",
            "[[Device {device}: ]]for {cost_ns:time} ({share:share}) of {span_ns:time} the device copies to or from the host or another device and computes nothing: "
            "{top:cause} {top_ns:time} in {top_count:plural stretch} of up to {top_longest_ns:time}[[, {second:cause} {second_ns:time}]].",
        ),
    }
    positive = Examples(
        lambda: (
            Example("each step copies, then computes", _steps(False), allows=("TA201", "TA202", "TA203", "TA210")),
        )
    )
    negative = Examples(lambda: (Example("the next copy runs meanwhile", _steps(True), allows=("TA604",)),))

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments in which the device does nothing but copy from or to elsewhere; none where it hardly computes."""
        ledger = device.ledger
        if device.share(ledger.cls == LedgerClass.COMPUTE) < LEAST_COMPUTE:
            return np.zeros(len(ledger.start), dtype=bool)
        mine = device.of(LedgerClass.COPY)
        names = {n: _leaves_the_device(ledger.names.text(n)) for n in distinct(ledger.name[mine]).tolist()}
        return mine & np.isin(ledger.name, [n for n, leaves in names.items() if leaves])

    def severity(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Severity:
        """Return a note where an operation is measured: its copies belong to its calls."""
        return Severity.NOTE if measured(analysis) else super().severity(analysis, device, mask)

    def remedy(self, analysis: Analysis) -> list[str]:
        """Return what to do; pinning first where memory is pageable."""
        found = super().remedy(analysis)
        pageable = any("pageable" in n.lower() for n in analysis.trace.names)
        return found[::-1] if pageable else found


def _leaves_the_device(name: str) -> bool:
    """Return whether a copy of this name is between the device and the host or another device."""
    plain = name.lower().replace(" ", "").replace("_", "")
    return any(way in plain for way in ("htod", "dtoh", "hosttodevice", "devicetohost", "ptop", "peertopeer"))
