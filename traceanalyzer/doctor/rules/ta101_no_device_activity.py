"""TA101 no-device-activity: the trace holds no usable device row.

What it checks
    Whether any kernel, copy or fill with a usable time is in the trace.

Why it matters
    Without device rows nothing was measured. Tools that print 0.000 us here read as infinitely fast.

How it is decided
    Count of device rows after reading; 0 fires. PROVEN: it is a count.

Example
    A profile with ``activities=[CPU]``, or a process that could not attach to the device's tracer.

What to do
    Record with ``ProfilerActivity.CUDA`` (or XPU), run the work inside the profiler's window and synchronise
    before it closes.

When it is wrong
    Never about the fact. A trace of host work alone may be what you wanted; it is then not for this tool.

References
    pytorch/kineto#996, NVIDIA/cudnn-frontend#824.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.recording import record_device
from traceanalyzer.doctor.rule import Example, Rule, call_evidence
from traceanalyzer.doctor.subject import WHOLE_TRACE


class NoDeviceActivity(Rule):
    """No kernel, copy or fill row."""

    code = "TA101"
    name = "no-device-activity"
    family = "integrity"
    positive: ClassVar[tuple[Example, ...]] = (
        Example("launches were called and not one device row came back", (launch(0, 1), launch(12, 2), launch(24, 3))),
    )
    negative: ClassVar[tuple[Example, ...]] = (Example("one kernel is there", (launch(0, 1), kernel(6, 5, 1))),)

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on a trace, or a selection, without device rows."""
        rows = analysis.chosen.rows
        if rows.any():
            return []
        calls = analysis.coverage.launch_calls
        sidecar = analysis.trace.meta.sidecar
        if sidecar is not None and sidecar.device.kind == "cpu" and not calls:
            measured = "The end-to-end times it measured stand; they say nothing of a GPU."
            return [
                self.finding(
                    Severity.ERROR, Grade.PROVEN, WHOLE_TRACE, "the work ran on the CPU, so there is no launch queue",
                    "The capture ran on the CPU device: a call is done when it returns, and no device time exists."
                    + (f" {measured}" if sidecar.operations else ""),
                    {"device_rows": 0, "launch_calls": 0},
                    [],
                    ["capture it on the GPU it is meant for"],
                )
            ]  # fmt: skip
        dropped = analysis.trace.meta.salvage.device_rows_left_out
        where = "selection" if len(rows) else "trace"
        message = f"The {where} holds no usable device row (kernel, copy or fill)"
        if calls:
            ids = [int(analysis.trace.calls.corr[row]) for row in analysis.coverage.lost[:5]]
            listed = ", ".join(map(str, ids)) + (", ..." if len(analysis.coverage.lost) > len(ids) else "")
            message += f", yet {calls} kernel or graph launches were called (correlation {listed})"
        if dropped:
            message += f"; {dropped} device rows had unusable times and were left out"
        unknown = analysis.trace.meta.unknown_categories
        if unknown:
            message += f"; rows of unknown categories: {', '.join(sorted(unknown)[:4])}"
        shown = analysis.coverage.lost[:3]
        return [
            self.finding(
                Severity.ERROR, Grade.PROVEN, WHOLE_TRACE, "no device activity",
                message + ". Device times are not available; they are not zero.",
                {"device_rows": 0, "launch_calls": calls, "device_rows_left_out": dropped},
                [call_evidence(analysis, row, "no device row") for row in shown],
                record_device(analysis.trace),
            )
        ]  # fmt: skip
