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
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.recording import skip_first
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, call_evidence
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import LOST_SHARE
from traceanalyzer.trace.tables import NO_ID


class LostRecords(Rule):
    """Launches without rows, rows without launches."""

    code = "TA103"
    name = "lost-records"
    family = "integrity"
    thresholds = (LOST_SHARE,)
    positive: ClassVar[tuple[Example, ...]] = (
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
    negative: ClassVar[tuple[Example, ...]] = (
        Example("a fill of zero bytes puts nothing on the stream", (launch(0, 1), kernel(6, 5, 1), call(20, 1, "cudaMemsetAsync", 2))),
        Example(
            "launches recorded into a graph ran nothing",
            (
                launch(0, 1), kernel(6, 5, 1), call(20, 1, "cudaStreamBeginCapture"), launch(22, 2), launch(26, 3),
                call(30, 1, "cudaStreamEndCapture"),
            ),
        ),
    )  # fmt: skip

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
            head = f", {linkage.lost_head} of them before the first that has one" if linkage.lost_head else ""
            known = [c for row in linkage.lost[:6] if (c := int(analysis.trace.calls.corr[row])) != NO_ID]
            ids = known[:5]
            listed = (
                f" (correlation {', '.join(map(str, ids))}{', ...' if len(linkage.lost) > len(ids) else ''})"
                if ids
                else ""
            )
            # a launch whose row was left out for its times looks like one whose row was never written
            damaged = analysis.trace.meta.salvage.device_rows_left_out
            why = (
                f" {damaged} device rows in the file were left out for their times and may be theirs."
                if damaged
                else ""
            )
            found.append(
                self.finding(
                    Severity.WARNING if share > limit or linkage.lost_head else Severity.NOTE, Grade.PROVEN, WHOLE_TRACE,
                    "launches have no usable device row" if damaged else "the profiler lost device records",
                    f"{len(linkage.lost)} of {linkage.launch_calls} kernel and graph launches have no device row{head}{listed}. "
                    f"Device time divided by the number of iterations is too small; per-kernel times are sound.{why}",
                    {
                        "launches_without_device_row": len(linkage.lost), "at_head": linkage.lost_head,
                        "launch_calls": linkage.launch_calls, "share": round(share, 6), "threshold_share": limit,
                    },
                    [call_evidence(analysis, row, "no device row") for row in linkage.lost[:3]],
                    [
                        skip_first(analysis.trace),
                        "synchronise before the window opens and before it closes",
                    ],
                )
            )  # fmt: skip
        if linkage.unlinked:
            share = linkage.unlinked / linkage.rows
            all_head = linkage.unlinked == linkage.unlinked_head
            import numpy as np

            rows = np.flatnonzero(analysis.chosen.rows & ~analysis.waits.linked)[:3].tolist()
            where = (
                "all before the first linked row: queued before the profiler started"
                if all_head
                else f"{linkage.unlinked_head} of them before the first linked row"
            )
            found.append(
                self.finding(
                    Severity.NOTE if all_head or share <= limit else Severity.WARNING, Grade.PROVEN, WHOLE_TRACE,
                    "device rows have no launch",
                    f"{linkage.unlinked} of {linkage.rows} device rows have no launch in the trace ({where}). "
                    "Their device numbers stand; they have no host numbers, and queue states are graded lower.",
                    {
                        "device_rows_without_launch": linkage.unlinked, "at_head": linkage.unlinked_head,
                        "device_rows": linkage.rows, "share": round(share, 6), "threshold_share": limit,
                    },
                    [activity_evidence(analysis, row, "no launch") for row in rows],
                    ["synchronise before the profiler starts, so that nothing is queued when it does"],
                )
            )  # fmt: skip
        return found
