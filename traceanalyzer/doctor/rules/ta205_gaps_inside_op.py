"""TA205 gaps-inside-op: the device idles inside an operation of several kernels.

What it checks
    How much of an operation, from its first kernel to its last, the device is idle.

Why it matters
    The span of an operation, which events and GPU-side annotations show, then contains host time. Its
    kernel time is the sum of its kernels.

How it is decided
    Idle share of the median span over 10 %, for operations of two kernels or more. PROVEN. A note where the
    device is CPU-bound anyway (TA201).

Example
    Cast 2 us, GEMM 20 us, epilogue 3 us, launched 7 us apart: 25 us of kernels in a span of 35 us.

What to do
    Report kernel time per call; fuse the kernels, or capture the operation in a graph, to close the gaps.

When it is wrong
    A gap may wait for a copy or another stream by design.

References
    triton-lang/triton#7752.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.causes import DeviceCauses, causes
from traceanalyzer.doctor.example import (
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import graph_of
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold

GAP_SHARE = Threshold("gap_share", 0.1, "idle share of the span", "a tenth of the span is more than noise")


class GapsInsideOp(Rule):
    """The device idles inside an operation of several kernels."""

    code = "TA205"
    name = "gaps-inside-op"
    family = "queue"
    thresholds = (GAP_SHARE,)
    messages: ClassVar[dict[str, Message]] = {
        "gaps": Message(
            "{op:name} idles inside a call",
            "A call of {op:name} spans {span_ns:time} on the device, of which {idle_ns:time} ({share:share}) is idle: its kernels take {self_ns:time} together. "
            "A span or an event pair would count the gaps.",
        )
    }
    positive = Examples(
        lambda: (
            Example(
                "three kernels 7 us apart",
                tuple(
                    e
                    for i in range(6)
                    for j, (k, n) in enumerate(((2, "cast"), (20, "gemm"), (3, "epilogue")))
                    for e in (
                        launch(100 * i + 7 * j, 10 * i + j + 1),
                        kernel(100 * i + (10, 17, 42)[j], k, 10 * i + j + 1, n),
                    )
                ),
                allows=(
                    "TA201",
                    "TA202",
                    "TA406",
                    "TA504",
                    "TA501",
                    "TA203",
                    "TA209",
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "two kernels back to back",
                tuple(
                    e
                    for i in range(6)
                    for j in range(2)
                    for e in (
                        launch(40 * i + 5 * j, 10 * i + j + 1),
                        kernel(60 + 61 * i + 30.5 * j, 30, 10 * i + j + 1, f"k{j}"),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.operations:
            return self.abstain(f"no operation was found: {analysis.no_operations}")
        found = []
        limit = analysis.options.threshold(GAP_SHARE)
        bound = any(d.queue.state is QueueState.CPU_BOUND for d in analysis.devices)
        devices = {d.ledger.device: d for d in causes(analysis)}
        for op in measured(analysis):
            if op.kernels_per_iteration < 2 or not len(op.span_ns):
                continue
            device = devices.get(_device(analysis, op))
            if device is None:
                continue
            # what another call runs meanwhile is no idle time of this one
            span, idle_ns = float(np.median(op.span_ns)), float(np.median(_idle_inside(analysis, op, device)))
            idle = idle_ns / span if span else 0.0
            if idle <= limit:
                continue
            params: dict[str, Param] = {
                "op": op.iterations.name, "span_ns": span, "idle_ns": idle_ns, "share": round(idle, 6), "self_ns": stats.median(op.self_ns),
            }  # fmt: skip
            found.append(
                self.say(
                    "gaps", Severity.NOTE if bound else Severity.WARNING, Grade.PROVEN, on_operation(analysis, op), params,
                    numbers={
                        "span_p50_us": us(span), "idle_p50_us": us(idle_ns), "idle_share": round(idle, 6), "threshold_idle_share": limit,
                        "kernels_per_call": op.kernels_per_iteration, "self_time_p50_us": us(stats.median(op.self_ns)),
                    },
                    evidence=[
                        activity_evidence(analysis, int(r)) for r in op.iterations.rows[int(op.worked[len(op.worked) // 2])][:3].tolist()
                    ],
                    remedy=["report kernel time per call", "fuse the kernels of the call", graph_of(analysis)],
                )
            )  # fmt: skip
        return found


def _device(analysis: Analysis, op: OpFacts) -> int:
    rows, lanes = analysis.trace.activities, analysis.trace.lanes
    return int(lanes[rows.lane[op.iterations.rows[int(op.worked[0])][0]]].device)


def _idle_inside(analysis: Analysis, op: OpFacts, device: DeviceCauses) -> npt.NDArray[np.int64]:
    """Return the time in which nothing at all runs on the device, between first start and last end of each call."""
    rows = analysis.trace.activities
    parts = [p[~op.clear[p]] if (~op.clear[p]).any() else p for p in (op.iterations.rows[int(i)] for i in op.worked)]
    starts = np.array([int(rows.start_ns[p].min()) for p in parts])
    ends = np.array([int(rows.end_ns[p].max()) for p in parts])
    return device.time_before(ends, device.is_idle) - device.time_before(starts, device.is_idle)
