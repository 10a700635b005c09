"""TA107 heavy-instrumentation: the profiler recorded stacks, shapes or memory, which slows the host.

What it checks
    Whether the trace holds Python frames or says that stacks, shapes or memory were recorded.

Why it matters
    Each adds microseconds to every operator on the host. Dispatch in this trace is then longer than without
    the profiler; device times are not touched.

How it is decided
    Flags of the file and the count of python_function rows; any fires. PROVEN. Queue states that blame the
    host are graded DERIVED because of it.

Example
    with_stack=True, record_shapes=True, profile_memory=True on a 9 us kernel dispatched every 40 us.

What to do
    Record once more with CPU and CUDA activities alone before quoting a dispatch interval.

When it is wrong
    Never about the fact; how much it adds differs between programs.

References
    pytorch/kineto#325, pytorch/kineto#681.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
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


class HeavyInstrumentation(Rule):
    """The profiler recorded stacks, shapes or memory, which slows the host."""

    code = "TA107"
    name = "heavy-instrumentation"
    family = "integrity"
    messages: ClassVar[dict[str, Message]] = {
        "heavy-instrumentation": Message(
            "the profiler slowed the host",
            "The profiler recorded {recorded}, which slows the host: dispatch here is longer than in an unprofiled run; device times are valid.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "Python frames in the trace",
                (launch(0, 1), kernel(6, 5, 1), call(0, 9, "module.py(3): step", category="python_function")),
            ),
        )
    )
    negative = Examples(lambda: (Example("CPU and CUDA activities alone", (launch(0, 1), kernel(6, 5, 1))),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.doubts.host:
            return []
        flags = [f for f, v in analysis.trace.meta.flags.items() if v]
        rows = analysis.trace.meta.python_rows
        return [
            self.say(
                "heavy-instrumentation",
                Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"recorded": ", ".join([*(["Python frames"] if rows and "with_stack" not in flags else []), *flags])},
                numbers={"python_rows": rows, "flags": ", ".join(flags) or "none", "threshold_rows": 0},
                evidence=[],
                remedy=["record again without with_stack, record_shapes and profile_memory before quoting dispatch"],
            )
        ]
