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
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.recording import record_device
from traceanalyzer.doctor.rule import Example, Rule, call_evidence
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.trace.remarks import Remark, RemarkCode

LEFT_OUT = (
    "[[; {left_out:plural device row} had unusable times and were left out]][[; rows of unknown categories: {unknown}]]. "
    "Device times are not available; they are not zero.[[ The profiler reported: {reported}]]"
)


def _tells(remark: Remark) -> bool:
    """Return whether the profiler's own diagnostic is about device records."""
    text = str(remark.params.get("text", ""))
    return remark.code is RemarkCode.DIAGNOSTIC and ("CUPTI" in text or "CUDA events" in text)


class NoDeviceActivity(Rule):
    """No kernel, copy or fill row."""

    code = "TA101"
    name = "no-device-activity"
    family = "integrity"
    messages: ClassVar[dict[str, Message]] = {
        "on-cpu": Message(
            "the work ran on the CPU, so there is no launch queue",
            "The capture ran on the CPU device, where no device time exists."
            "[[ The end-to-end times of its {measured:plural operation} are valid; they say nothing of a GPU.]]",
        ),
        "no-device-activity": Message(
            "no device activity: the {where} holds no device row and no call",
            "The {where} holds no usable device row (kernel, copy or fill)" + LEFT_OUT,
        ),
        "launches-without-rows": Message(
            "no device activity, although {calls:plural launch} were called",
            "The {where} holds no usable device row (kernel, copy or fill), yet {calls:plural kernel or graph launch} were called"
            "[[ (correlation {correlations})]]" + LEFT_OUT,
        ),
        "calls-only": Message(
            "no device activity: the {where} holds {calls:plural runtime call}, no launch and no device row",
            "The {where} holds {calls:plural runtime call}, no launch and no device row: the recording stopped before the device records were written, or the "
            "program used no kernel" + LEFT_OUT,
        ),
        "ranges-only": Message(
            "no device activity: only host ranges or operators were recorded ({ranges:count}), no runtime call",
            "The {where} holds {ranges:plural host range} or operators, no runtime call and no device row: the device was not traced"
            + LEFT_OUT,
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "launches were called and not one device row came back", (launch(0, 1), launch(12, 2), launch(24, 3))
            ),
        )
    )
    negative = Examples(lambda: (Example("one kernel is there", (launch(0, 1), kernel(6, 5, 1))),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on a trace, or a selection, without device rows."""
        rows = analysis.chosen.rows
        if rows.any():
            return []
        calls = analysis.coverage.launch_calls
        sidecar = analysis.trace.meta.sidecar
        if sidecar is not None and sidecar.device.kind == "cpu" and not calls:
            return [
                self.say(
                    "on-cpu",
                    Severity.ERROR,
                    Grade.PROVEN,
                    WHOLE_TRACE,
                    {"measured": len(sidecar.operations) or None},
                    numbers={"device_rows": 0, "launch_calls": 0},
                    remedy=["capture it on the GPU it is meant for"],
                )
            ]
        trace = analysis.trace
        dropped = trace.meta.salvage.device_rows_left_out
        ids = [int(trace.calls.corr[row]) for row in analysis.coverage.lost[:5]]
        api_calls, ranges = len(trace.calls), len(trace.ranges) + len(trace.host_ops)
        code, counted = "no-device-activity", calls
        if calls:
            code = "launches-without-rows"
        elif not len(rows) and api_calls:
            code, counted = "calls-only", api_calls
        elif not len(rows) and ranges:
            code = "ranges-only"
        params: dict[str, Param] = {
            "where": "selection" if len(rows) else "trace",
            "calls": counted,
            "ranges": ranges,
            "correlations": ", ".join(map(str, ids)) + (", ..." if len(analysis.coverage.lost) > len(ids) else ""),
            "left_out": dropped or None,
            "unknown": ", ".join(sorted(trace.meta.unknown_categories)[:4]),
            "reported": next((str(r.params["text"]) for r in trace.meta.remarks if _tells(r)), None),
        }
        shown = analysis.coverage.lost[:3]
        return [
            self.say(
                code,
                Severity.ERROR,
                Grade.PROVEN,
                WHOLE_TRACE,
                params,
                numbers={"device_rows": 0, "launch_calls": calls, "device_rows_left_out": dropped},
                evidence=[call_evidence(analysis, row, "no device row") for row in shown],
                remedy=record_device(trace),
            )
        ]  # fmt: skip
