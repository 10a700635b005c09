"""TA103 lost-records: launches without a device row, or device rows without a launch.

What it checks
    Kernel and graph launch calls that own no device row, and device rows whose launch is not in the trace.

Why it matters
    The profiler drops records under load and at the start of a session. Dividing device time by the number
    of iterations then gives a time that is too good.

How it is decided
    A launch is *lost* when it launches a kernel or graph by name, owns no device row and was not recorded
    into a graph (stream capture). Copies and fills of zero bytes own no row and do not count. Any lost launch
    fires. Device rows without a launch warn above 1 % unless they all come before the first linked row:
    that is work queued before the profiler started, a note. PROVEN: both are counts.

Example
    Six annotated iterations, kernels for the last four only: 120 us / 6 is 20 us, the kernel takes 30.

What to do
    Drop the first profiler cycle (``schedule(wait=1, warmup=1, active=...)``), shorten the window, enlarge
    the profiler's buffers, and synchronise before and after the window.

When it is wrong
    Launches after the device record ended (no synchronise before the profiler stopped) look lost; so do
    launches of an empty grid.

References
    pytorch/pytorch#192021, meta-pytorch/tritonbench#459.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import call, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.recording import skip_first
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, call_evidence
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import LOST_SHARE
from traceanalyzer.trace.tables import NO_ID

LOST_TEXT = (
    "{lost:count} of {launch_calls:plural kernel or graph launch} have no device row[[, {head:count} of them before the first that has one]]"
    "[[ (correlation {correlations})]]. Device time divided by the number of iterations is too small; per-kernel times are right."
    "[[ {left_out:plural device row} in the file were left out for their times and may be theirs.]]"
)
UNLINKED_TEXT = ". Their device numbers are valid; they have no host numbers, and queue states are graded lower."


class LostRecords(Rule):
    """Launches without rows, rows without launches."""

    code = "TA103"
    name = "lost-records"
    family = "integrity"
    thresholds = (LOST_SHARE,)
    messages: ClassVar[dict[str, Message]] = {
        "lost-rows": Message("the profiler lost device records", LOST_TEXT),
        "unusable-rows": Message("launches have no usable device row", LOST_TEXT),
        "queued-before": Message(
            "device rows have no launch",
            "{unlinked:count} of {rows:plural device row} have no launch in the trace (all before the first linked row: queued before the profiler started)"
            + UNLINKED_TEXT,
        ),
        "unlinked-rows": Message(
            "device rows have no launch",
            "{unlinked:count} of {rows:plural device row} have no launch in the trace ({head:count} of them before the first linked row)"
            + UNLINKED_TEXT,
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "the first two kernel records are missing",
                tuple(launch(100 * i, i + 1) for i in range(6))
                + tuple(kernel(100 * i + 8, 30, i + 1) for i in range(2, 6)),
                allows=("TA201", "TA202"),
            ),
            Example(
                "rows in the middle have no launch",
                (launch(0, 1), kernel(6, 5, 1), kernel(20, 5, 99), launch(30, 2), kernel(36, 5, 2)),
                allows=(
                    "TA202",
                    "TA211",
                ),
            ),
        )
    )
    negative = Examples(lambda: (
        Example("a fill of zero bytes puts nothing on the stream", (launch(0, 1), kernel(6, 5, 1), call(20, 1, "cudaMemsetAsync", 2))),
        Example(
            "launches recorded into a graph ran nothing",
            (
                launch(0, 1), kernel(6, 5, 1), call(20, 1, "cudaStreamBeginCapture"), launch(22, 2), launch(26, 3),
                call(30, 1, "cudaStreamEndCapture"),
            ),
        ),
    ))  # fmt: skip

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on lost launches and on device rows without a launch."""
        linkage = analysis.coverage
        if not linkage.rows:
            return self.abstain("there is no device row")
        if not linkage.linked:
            return self.abstain("no device row is linked, so none can be told from a lost one")
        found = []
        limit = analysis.options.threshold(LOST_SHARE)
        if linkage.lost:
            share = len(linkage.lost) / linkage.launch_calls
            ids = [c for row in linkage.lost[:6] if (c := int(analysis.trace.calls.corr[row])) != NO_ID][:5]
            listed = ", ".join(map(str, ids)) + (", ..." if ids and len(linkage.lost) > len(ids) else "")
            # a launch whose row was left out for its times looks like one whose row was never written
            damaged = analysis.trace.meta.salvage.device_rows_left_out
            params: dict[str, Param] = {
                "lost": len(linkage.lost), "launch_calls": linkage.launch_calls, "head": linkage.lost_head or None, "correlations": listed,
                "left_out": damaged or None,
            }  # fmt: skip
            found.append(
                self.say(
                    "unusable-rows" if damaged else "lost-rows",
                    Severity.WARNING if share > limit or linkage.lost_head else Severity.NOTE,
                    Grade.PROVEN,
                    WHOLE_TRACE,
                    params,
                    numbers={
                        "launches_without_device_row": len(linkage.lost),
                        "at_head": linkage.lost_head,
                        "launch_calls": linkage.launch_calls,
                        "share": round(share, 6),
                        "threshold_share": limit,
                    },
                    evidence=[call_evidence(analysis, row, "no device row") for row in linkage.lost[:3]],
                    remedy=[skip_first(analysis.trace), "synchronise before the window opens and before it closes"],
                )
            )
        if linkage.unlinked:
            share = linkage.unlinked / linkage.rows
            all_head = linkage.unlinked == linkage.unlinked_head
            import numpy as np

            rows = np.flatnonzero(analysis.chosen.rows & ~analysis.waits.linked)[:3].tolist()
            found.append(
                self.say(
                    "queued-before" if all_head else "unlinked-rows",
                    Severity.NOTE if all_head or share <= limit else Severity.WARNING,
                    Grade.PROVEN,
                    WHOLE_TRACE,
                    {"unlinked": linkage.unlinked, "rows": linkage.rows, "head": linkage.unlinked_head},
                    numbers={
                        "device_rows_without_launch": linkage.unlinked,
                        "at_head": linkage.unlinked_head,
                        "device_rows": linkage.rows,
                        "share": round(share, 6),
                        "threshold_share": limit,
                    },
                    evidence=[activity_evidence(analysis, row, "no launch") for row in rows],
                    remedy=["synchronise before the profiler starts, so that nothing is queued when it does"],
                )
            )
        return found
