"""TA209 device-gaps: the device itself pauses between rows that were queued ahead.

What it checks
    Idle time of the device between rows whose launch had returned before, and between the nodes of one
    graph launch.

Why it matters
    No change on the host makes these gaps smaller: they are the device's own cost per kernel, or waits that
    no row shows. A call then costs kernel plus gap.

How it is decided
    Idle intervals that end with a row whose call had returned before the interval began, no longer than a
    launch takes to reach the device. PROVEN.

Example
    8 us between kernels of 10 us that were queued far ahead: a call costs 18 us.

What to do
    Fewer, larger kernels (fuse them), or programmatic dependent launch; compare with another driver or with
    a graph.

When it is wrong
    Rows that the profiler serialises: some profilers wait between kernels while they record.

References
    ROCm/clr#182.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding, Param, Severity
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import graph_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import Threshold
from traceanalyzer.trace.tables import Bool

GAPS_SHARE = Threshold(
    "gaps_share",
    0.1,
    "share of the span",
    "a device pauses a microsecond between kernels; less than a tenth is short kernels",
)
LONG_GAP_US = Threshold(
    "long_gap_us", 3.0, "us", "a device in order takes one to two between kernels: longer ones are worth a warning"
)


def _queued(gap: float) -> tuple[dict[str, Any], ...]:
    """Return 30 kernels of 10 us, ``gap`` us apart, all launched while the first runs."""
    events: list[dict[str, Any]] = []
    for i in range(30):
        events += [launch(0.3 * i, i + 1, 0.2), kernel(10 + (10 + gap) * i, 10, i + 1)]
    return tuple(events)


class DeviceGaps(LedgerRule):
    """The device itself pauses between rows that were queued ahead."""

    code = "TA209"
    name = "device-gaps"
    family = "queue"
    since = "0.2.0"
    thresholds = (GAPS_SHARE, LONG_GAP_US)
    least = GAPS_SHARE
    remedies: ClassVar[tuple[Remedy, ...]] = ("fuse kernels, so that there are fewer gaps", graph_of)
    messages: ClassVar[dict[str, Message]] = {
        "device-gaps": Message(
            "the device pauses between kernels that were queued ahead: {cost_ns:time}, {share:share} of its span, is its own gaps",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} is idle in {intervals:plural gap} (up to "
            "{top_longest_ns:time}) before work that the host had launched before: none of it is the host's.[[ The typical gap is "
            "{gap_ns:time}; a kernel costs its own time and that.]]",
        )
    }
    causes = (LedgerClass.DEVICE_GAP, LedgerClass.INSIDE_LAUNCH)
    positive = Examples(lambda: (Example("8 us between queued kernels of 10 us", _queued(8)),))
    negative = Examples(lambda: (Example("back to back", _queued(0)),))

    def severity(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Severity:
        """Return a warning where most of the time is in gaps longer than a device's usual one."""
        lengths = _lengths(device, mask)
        long = lengths[lengths >= analysis.options.threshold(LONG_GAP_US) * 1000]
        return Severity.WARNING if 2 * long.sum() >= lengths.sum() else Severity.NOTE

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device; a graph is no advice where most of the gaps lie inside of one."""
        found = super().judged(analysis, device, mask)
        inside = device.ns(mask & (device.ledger.cls == LedgerClass.INSIDE_LAUNCH))
        return replace(found, remedy=found.remedy[:1]) if 2 * inside > device.ns(mask) else found

    def more(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> dict[str, Param]:  # noqa: ARG002 - one signature for all
        """Return the length of the typical gap."""
        return {"gap_ns": float(np.median(_lengths(device, mask)))}


def _lengths(device: DeviceCauses, mask: Bool) -> npt.NDArray[np.float64]:
    """Return the length of each gap."""
    lengths = np.bincount(device.ledger.interval[mask], weights=device.ledger.ns[mask])
    return np.asarray(lengths[lengths > 0], dtype=np.float64)
