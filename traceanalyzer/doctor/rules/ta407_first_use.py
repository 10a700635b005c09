"""TA407 first-use: the first launch of a kernel took far longer than others.

What it checks
    Idle time of the device inside launch calls that are the first of their kernel and took over 20 times
    the usual, 100 us at least.

Why it matters
    The first launch loads code, sets up libraries or compiles: it is paid once per process. A mean over the
    window holds it, the run does not.

How it is decided
    A launch call longer than 100 us and 20 times the median of its API, which launches the first row of its
    name on the device. PROVEN.

Example
    372 of 805 ms pass in the first launch of one kernel.

What to do
    Run every code path once before recording.

When it is wrong
    A cold-start measurement wants it.

References
    CUDA lazy loading (CUDA_MODULE_LOADING).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Param
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example
from traceanalyzer.trace.tables import Bool


def _first(length: float) -> tuple[dict[str, Any], ...]:
    """Return 20 kernels of 90 us; the launch of a second kind of kernel, once in the middle, takes ``length`` us."""
    events: list[dict[str, Any]] = []
    for i in range(21):
        late = length if i > 10 else 0.0
        at = 100 * i + late
        if i == 10:
            events += [launch(at, 11, length), kernel(at + length + 4, 90, 11, "rare_kernel")]
        else:
            events += [launch(at, i + 1), kernel(at + 6, 90, i + 1)]
    return tuple(events)


class FirstUse(LedgerRule):
    """The first launch of a kernel took far longer than others."""

    code = "TA407"
    name = "first-use"
    family = "warm-up"
    since = "0.2.0"
    remedies: ClassVar[tuple[Remedy, ...]] = (
        "run every code path once before recording",
        "quote the median of later calls",
    )
    messages: ClassVar[dict[str, Message]] = {
        "first-use": Message(
            "slow first launch: {cost_ns:time}, {share:share} of the device's span, passes in first launch calls, most in that of {kernel:name}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} passes inside launch calls ({top:cause}, {intervals:count} in all, "
            "up to {top_longest_ns:time}) that are the first of their kernel in the trace, most in that of {kernel:name}: code is loaded or libraries are set up, once per process.",
        )
    }
    causes = (LedgerClass.FIRST_USE,)
    positive = Examples(
        lambda: (
            Example(
                "the first launch takes 3 ms",
                _first(3000),
                allows=(
                    "TA202",
                    "TA403",
                    "TA201",
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("launches take what they take", _first(2)),))

    def more(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> dict[str, Param]:
        """Return the kernel whose first launch took longest."""
        ledger, at = device.ledger, np.flatnonzero(mask)
        row = int(np.argmax(np.bincount(ledger.row[at], weights=ledger.ns[at])))
        return {"kernel": analysis.trace.names[analysis.trace.activities.name[row]]}
