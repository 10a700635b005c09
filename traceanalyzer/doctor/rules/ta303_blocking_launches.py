"""TA303 blocking-launches: launch calls last until their kernels end.

What it checks
    Whether each launch call returns only when its kernel has ended.

Why it matters
    CUDA_LAUNCH_BLOCKING=1 (or a debugger) serialises host and device: every interval is then dispatch +
    kernel.

How it is decided
    Nine of ten launch calls end behind their kernel and last at least 0.9 of it, ten launches or more.
    PROVEN as a fact, a HINT as to the cause.

Example
    Launch calls of 60 us around kernels of 55.

What to do
    Unset CUDA_LAUNCH_BLOCKING and record again.

When it is wrong
    Tiny kernels behind long calls.

References
    CUDA documentation, environment variables.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    captured,
    kernel,
    launch,
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    call_evidence,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold
from traceanalyzer.trace.categories import RowKind

BLOCKING_SHARE = Threshold(
    "blocking_share", 0.9, "share of launches", "nine of ten: it is how launches are made here, not an accident"
)
BLOCKING_KERNEL_SHARE = Threshold(
    "blocking_kernel_share", 0.9, "launch call / kernel", "a call that covers its kernel waited for it"
)
BLOCKING_KERNEL_US = Threshold("blocking_kernel_us", 10.0, "us", "shorter kernels end before an ordinary call returns")
BLOCKING_LAUNCHES = Threshold("blocking_launches", 10, "launches", "fewer show no habit")


SWITCHES = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")


def _blocking_switch(analysis: Analysis) -> str:
    """Return the environment switch that makes launches wait, as a capture saw it set; empty without one."""
    sidecar = analysis.trace.meta.sidecar
    found = sidecar.environment if sidecar else {}
    return next((f"{name}={found[name]}" for name in SWITCHES if found.get(name, "0").strip() not in ("", "0")), "")


class BlockingLaunches(Rule):
    """Launch calls last until their kernels end."""

    code = "TA303"
    name = "blocking-launches"
    family = "sync"
    thresholds = (BLOCKING_SHARE, BLOCKING_KERNEL_SHARE, BLOCKING_KERNEL_US, BLOCKING_LAUNCHES)
    messages: ClassVar[dict[str, Message]] = {
        "launches-block": Message(
            "launches block until their kernel ends",
            "{share:share} of {launches:plural launch call} return only after the end of their kernel: it looks like CUDA_LAUNCH_BLOCKING=1. "
            "Host and device take turns, and every interval is their sum.",
        ),
        "switch-set": Message(
            "launches block: {switch} was set",
            "The capture ran with {switch}: every launch call waits until its kernel ends, so that host and device take turns and every interval is their sum.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "launch calls of 60 us around kernels of 52",
                tuple(e for i in range(12) for e in (launch(100 * i, i + 1, 60), kernel(100 * i + 5, 52, i + 1))),
                allows=("TA201", "TA202"),
            ),
            Example(
                "the capture saw the switch set",
                loop(40, 10, 30),
                sidecar=lambda: captured(environment={"CUDA_LAUNCH_BLOCKING": "1"}),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("launch calls that return at once", loop(40, 10, 30)),
            Example(
                "the switch set to 0",
                loop(40, 10, 30),
                sidecar=lambda: captured(environment={"CUDA_LAUNCH_BLOCKING": "0"}),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if (switch := _blocking_switch(analysis)) and analysis.chosen.rows.any():
            return [
                self.say(
                    "switch-set",
                    Severity.WARNING,
                    Grade.PROVEN,
                    WHOLE_TRACE,
                    {"switch": switch},
                    numbers={"switch": switch},
                    evidence=[],
                    remedy=[f"unset {switch.partition('=')[0]} and record again"],
                )
            ]
        rows, calls = analysis.trace.activities, analysis.trace.calls
        at = np.flatnonzero(analysis.waits.opens_call & analysis.chosen.rows & (rows.kind == RowKind.KERNEL))
        if len(at) < analysis.options.threshold(BLOCKING_LAUNCHES):
            return []
        if analysis.clocks.state is ClockState.DISAGREE:
            return self.abstain("host and device clocks disagree")
        call_of = rows.call[at]
        kernel_share, limit = (
            analysis.options.threshold(BLOCKING_KERNEL_SHARE),
            analysis.options.threshold(BLOCKING_SHARE),
        )
        behind = (calls.end_ns[call_of] >= rows.end_ns[at]) & (
            calls.end_ns[call_of] - calls.start_ns[call_of] >= kernel_share * rows.dur_ns[at]
        )
        share = float(np.mean(behind))
        long_enough = float(np.median(rows.dur_ns[at])) > analysis.options.threshold(BLOCKING_KERNEL_US) * 1000
        if share < limit or not long_enough:
            return []
        return [
            self.say(
                "launches-block",
                Severity.WARNING,
                Grade.HINT,
                WHOLE_TRACE,
                {"share": share, "launches": len(at)},
                numbers={"launches": len(at), "blocking_share": round(share, 6), "threshold_share": limit},
                evidence=[call_evidence(analysis, int(c)) for c in call_of[behind][:3].tolist()],
                remedy=["unset CUDA_LAUNCH_BLOCKING and record again"],
            )
        ]
