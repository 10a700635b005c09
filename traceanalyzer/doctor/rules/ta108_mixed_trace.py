"""TA108 mixed-trace: several devices or processes are in one file.

What it checks
    How many devices and launching processes the trace holds.

Why it matters
    Numbers of different devices are never averaged here; a reader should know that there are several.

How it is decided
    More than one device with work, or more than one process that launches. A note. PROVEN.

Example
    Traces of two ranks merged into one file.

What to do
    Choose one with --device, or compare them row by row.

When it is wrong
    An idle second device.

References
    facebookresearch/HolisticTraceAnalysis#117.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE


class MixedTrace(Rule):
    """Several devices or processes are in one file."""

    code = "TA108"
    name = "mixed-trace"
    family = "integrity"
    messages: ClassVar[dict[str, Message]] = {
        "mixed-trace": Message(
            "several devices or processes in one trace",
            "The trace holds work of {devices:plural device} ({labels}) launched by {processes:plural process}; each is judged by itself and nothing is averaged over them.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "two devices",
                (
                    launch(0, 1),
                    kernel(6, 5, 1),
                    launch(10, 2),
                    {**kernel(16, 5, 2), "pid": 1, "args": {"device": 1, "stream": 7, "correlation": 2}},
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("one device", (launch(0, 1), kernel(6, 5, 1))),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        processes = {analysis.trace.threads[t.thread].process for t in analysis.threads if t.launches}
        if len(analysis.devices) <= 1 and len(processes) <= 1:
            return []
        labels = ", ".join(analysis.trace.devices[d.device].label for d in analysis.devices[:8])
        return [
            self.say(
                "mixed-trace",
                Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"devices": len(analysis.devices), "labels": labels, "processes": len(processes)},
                numbers={"devices": len(analysis.devices), "processes": len(processes), "threshold": 1},
                evidence=[],
                remedy=["choose one with --device N"],
            )
        ]
