"""TA104 impossible-times: kernels before their launch, copies that overlap kernels of their own stream, unset or absurd stamps.

What it checks
    Device rows that start before the call that launched them, and rows left out because their time cannot be
    true: zero stamps, negative or missing durations, stamps a day away from all others.

Why it matters
    Host and device stamps come from two clocks aligned by estimate. Where they disagree, launch latency,
    queue depth and waits are artefacts. Unset records make gaps of years or kernels of 0 us.

How it is decided
    Early by more than 1 us (plus one step of whole-microsecond stamps). An offset under half a dispatch
    interval is allowed for when queue states are judged (DERIVED); a larger one means that nothing which
    subtracts one clock from the other is judged. A copy or fill that overlaps its neighbour on one stream by more
    than 1 us cannot be: a stream runs in order (two kernels may overlap, by dependent launch). Rows left out are counted by
    reason. PROVEN.

Example
    Launches at 0, 20, 40 us, kernels at -3, 17, 37: an offset of at least 3 us. Each clock alone is sound.

What to do
    Record again with a warm profiler (drop the first cycle); keep the machine's time service from stepping
    the clock during the run.

When it is wrong
    Never about the fact; the cause may be the exporter rather than the clock.

References
    pytorch/kineto#1380, pytorch/kineto#109, pytorch/kineto#646.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import kernel, launch, memcpy
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.recording import record_warm
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, show_us
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import EARLY_US, SKEW_DISPATCH_SHARE, Threshold
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.row_faults import FaultyRow

OVERLAPPING_SHARE = Threshold(
    "overlapping_share", 0.05, "share of copies and fills", "one in twenty is no slip of the clock"
)

_NO_NUMBERS = (FaultyRow.OPERATOR, FaultyRow.ANNOTATION, FaultyRow.DEVICE_ANNOTATION)
"""Rows that label others and are in no number themselves."""

EARLY = "{early:count} of {launches:plural launch} start on the device before they were called, by up to {skew_ns:time}: the clocks differ by at least that. "
EXCLUDED = "Rows left out of every number because their time cannot be true: {reasons:damages}."


def _copies(behind: float) -> tuple[dict[str, Any], ...]:
    """Return 12 kernels of 100 us, each with a copy of 80 us on its stream that begins so long behind the kernel's end."""
    events: list[dict[str, Any]] = []
    for i in range(12):
        start = 10 + 185 * i
        events += [launch(20 * i, 2 * i + 1), kernel(start, 100, 2 * i + 1)]
        events += memcpy(20 * i + 5, start + 100 + behind, 80, 2 * i + 2, 3, "DtoH (Device -> Pinned)")
    return tuple(events)


class ImpossibleTimes(Rule):
    """Rows whose times cannot be true."""

    code = "TA104"
    name = "impossible-times"
    family = "integrity"
    thresholds = (EARLY_US, SKEW_DISPATCH_SHARE, OVERLAPPING_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "clocks-offset": Message(
            "host and device clocks are offset",
            EARLY + "Queue states are judged with the device clock moved by that much; launch latencies are raw.",
        ),
        "clocks-disagree": Message(
            "host and device clocks disagree",
            EARLY
            + "Launch latency, waits, starvation and event readings subtract one clock from the other and are not judged; self-time, gaps and dispatch "
            "each use one clock and are valid.",
        ),
        "left-out": Message("rows with impossible times were left out", EXCLUDED),
        "device-left-out": Message("device records with impossible times were left out", EXCLUDED),
        "overlap": Message(
            "impossible times: {overlaps:count} copies overlap rows of their own stream, by {typical_ns:time}",
            "{overlaps:often} a copy or fill runs while its neighbour on the same stream does, by up to {worst_ns:time}: a stream runs its rows in order, so "
            "the times of one of the two are wrong, and with them busy and idle time.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "the device clock is 3 us ahead",
                tuple(e for i in range(4) for e in (launch(20 * i + 10, i + 1), kernel(20 * i + 7, 8, i + 1))),
                allows=("TA201", "TA202"),
            ),
            Example(
                "a kernel record was never filled in",
                (launch(1e6, 1), kernel(1e6 + 6, 5, 1), launch(1e6 + 20, 2), kernel(0, 0, 2)),
                allows=("TA103", "TA105"),
            ),
            Example(
                "a copy begins 50 us before the kernel before it on its stream ends",
                _copies(-50),
                allows=("TA604", "TA210", "TA311"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("copies after their kernels", _copies(1)),
            Example("half a microsecond early is the alignment's precision", (launch(10, 1), kernel(9.5, 5, 1))),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on early rows and on rows left out for their times."""
        return self._early(analysis) + self._overlapping(analysis) + self._left_out(analysis)

    def _early(self, analysis: Analysis) -> list[Finding]:
        clocks, found = analysis.clocks, analysis.waits
        if clocks.state not in (ClockState.OFFSET, ClockState.DISAGREE):
            return []
        early_by = np.where(found.opens_call, found.launch_start_ns - analysis.trace.activities.start_ns, 0)
        worst = [row for row in np.argsort(-early_by, kind="stable")[:3].tolist() if early_by[row] > 0]
        offset = clocks.state is ClockState.OFFSET
        return [
            self.say(
                "clocks-offset" if offset else "clocks-disagree",
                Severity.NOTE if offset else Severity.ERROR,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"early": clocks.early, "launches": clocks.launches, "skew_ns": clocks.skew_ns},
                numbers={
                    "early_rows": clocks.early,
                    "launches": clocks.launches,
                    "skew_at_least_us": clocks.skew_ns / 1000,
                    "threshold_us": analysis.options.threshold(EARLY_US),
                },
                evidence=[
                    activity_evidence(analysis, row, f"starts {show_us(int(early_by[row]))} before its launch call")
                    for row in worst
                ],
                remedy=[record_warm(analysis.trace)],
            )
        ]

    def _overlapping(self, analysis: Analysis) -> list[Finding]:
        rows = analysis.trace.activities
        if len(rows) < 2:
            return []
        early_ns = int(analysis.options.threshold(EARLY_US) * 1000) + analysis.trace.meta.step_ns
        overlap = np.minimum(rows.end_ns[:-1], rows.end_ns[1:]) - rows.start_ns[1:]
        is_copy = np.isin(rows.kind, (RowKind.MEMCPY, RowKind.MEMSET))
        mine = (rows.lane[1:] == rows.lane[:-1]) & analysis.chosen.rows[1:] & analysis.chosen.rows[:-1]
        at = np.flatnonzero(mine & (overlap > early_ns) & (is_copy[1:] | is_copy[:-1]))
        copies = int(np.count_nonzero(is_copy & analysis.chosen.rows))
        if not len(at):
            return []
        share = min(1.0, len(at) / max(1, copies))
        longest = at[np.argsort(-overlap[at], kind="stable")[:3]]
        return [
            self.say(
                "overlap", Severity.WARNING if share >= analysis.options.threshold(OVERLAPPING_SHARE) else Severity.NOTE, Grade.PROVEN, WHOLE_TRACE,
                {"overlaps": len(at), "copies": copies, "worst_ns": int(overlap[at].max()), "typical_ns": float(np.median(overlap[at]))},
                numbers={
                    "overlaps": len(at), "copies": copies, "overlap_share": round(share, 6), "longest_overlap_us": int(overlap[at].max()) / 1000,
                    "threshold_us": analysis.options.threshold(EARLY_US), "threshold_overlapping_share": analysis.options.threshold(OVERLAPPING_SHARE),
                },
                evidence=[
                    activity_evidence(analysis, int(r) + 1, f"begins {show_us(int(overlap[r]))} before the row before it on its stream ends")
                    for r in np.sort(longest).tolist()
                ],
                remedy=["do not quote times of these rows; record again, or with another version of the profiler"],
            )
        ]  # fmt: skip

    def _left_out(self, analysis: Analysis) -> list[Finding]:
        excluded = {
            damage.key(): n
            for damage, n in analysis.trace.meta.salvage.excluded.items()
            if n and damage.row is not None and damage.row not in _NO_NUMBERS
        }
        device = analysis.trace.meta.salvage.device_rows_left_out
        if not excluded:
            return []
        listed = " ".join(f"{reason}={n}" for reason, n in sorted(excluded.items()))
        return [
            self.say(
                "device-left-out" if device else "left-out", Severity.WARNING if device else Severity.NOTE, Grade.PROVEN, WHOLE_TRACE, {"reasons": listed},
                numbers={"device_rows_left_out": device, "rows_left_out": sum(excluded.values()), "threshold_rows": 0},
                remedy=["record again; the first records of a session are the likeliest to be damaged (drop the first cycle)"],
            )
        ]  # fmt: skip
