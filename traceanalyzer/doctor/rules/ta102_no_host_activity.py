"""TA102 no-host-activity: device rows without a single launch.

What it checks
    Whether any device row is linked to the host call that launched it.

Why it matters
    Dispatch, launch latency, queue state and every reading of a host timer need the host side. Self-time and
    gaps do not: they stay valid.

How it is decided
    Device rows are there and none is linked. PROVEN: it is a count.

Example
    A profile with ``activities=[CUDA]`` whose runtime rows were filtered out; rocprofv3 without ``--hip-trace``.

What to do
    Record with CPU activity too.

When it is wrong
    Graph-only traces hold few launches; one linked launch is enough to keep this rule silent.

References
    pytorch/kineto#446, ROCm/omnitrace#266 (all records share one id).
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.recording import record_host
from traceanalyzer.doctor.rule import Example, Rule
from traceanalyzer.doctor.subject import WHOLE_TRACE

HOST_NUMBERS = "Dispatch, launch latency and queue state are not available; self-time and gaps are."


class NoHostActivity(Rule):
    """Device rows, and none linked to a launch."""

    code = "TA102"
    name = "no-host-activity"
    family = "integrity"
    messages: ClassVar[dict[str, Message]] = {
        "no-launch-calls": Message(
            "no host activity is linked to the device",
            "{rows:plural device row} and none is linked to a launch: the trace holds no launch call. " + HOST_NUMBERS,
        ),
        "no-shared-ids": Message(
            "no host activity is linked to the device",
            "{rows:plural device row} and none is linked to a launch: the trace holds {calls:plural launch call}, but no id joins one to a row"
            "[[ ({notes})]]. " + HOST_NUMBERS,
        ),
    }
    positive = Examples(
        lambda: (
            Example("kernels alone", tuple(kernel(10 * i, 4, i + 1) for i in range(5))),
            Example(
                "every record carries the same id",
                tuple(e for i in range(4) for e in (launch(10 * i, 5), kernel(10 * i + 4, 3, 5))),
                allows=("TA103",),
            ),
        )
    )
    negative = Examples(lambda: (Example("a linked kernel", (launch(0, 1), kernel(6, 5, 1))),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire when device rows are there and none of them is linked."""
        linkage = analysis.coverage
        if not linkage.rows:
            return self.abstain("there is no device row")
        if linkage.linked:
            return []
        calls = linkage.launch_calls
        return [
            self.say(
                "no-shared-ids" if calls else "no-launch-calls",
                Severity.ERROR,
                Grade.PROVEN,
                WHOLE_TRACE,
                {
                    "rows": linkage.rows,
                    "calls": calls,
                    "notes": "; ".join(f"{n} {r}" for r, n in analysis.trace.link_notes.items()),
                },
                numbers={"device_rows": linkage.rows, "linked": 0, "launch_calls": calls},
                remedy=[record_host(analysis.trace)],
            )
        ]  # fmt: skip
