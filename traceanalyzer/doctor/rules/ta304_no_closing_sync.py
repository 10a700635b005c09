"""TA304 no-closing-sync: the timed range ends before its last kernel.

What it checks
    Whether device work launched inside a range that holds the benchmark runs on after the range has ended.

Why it matters
    Launches return at once. A clock that stops without a synchronise measures how fast work is enqueued.

How it is decided
    For a range that is read as a timer (given with --range or --claim, or called timed, timer, bench or
    the like), occurs once, holds nine tenths of the kernel launches and no synchronise: device time behind
    its end over 1 % of its work. PROVEN. Ranges that label the phases of a program are no timers.

Example
    Six launches in 60 us, kernels until 521 us: the clock says 10 us per call, the device takes 87.

What to do
    Synchronise inside the range, before the clock is read.

When it is wrong
    An annotation that nobody reads as a timer.

References
    black-forest-labs/flux#147, pytorch/pytorch#177765.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.analysis.ranges import user_ranges
from traceanalyzer.doctor.example import (
    call,
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import LEAST_CALLS, is_timer_name, timed_range
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import synchronise_of
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    range_evidence,
    us,
)
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import Threshold
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import Int64

TAIL_SHARE = Threshold(
    "tail_share", 0.01, "share of the range's work", "1 % after the end is work that the clock missed"
)
RANGE_LAUNCHES = Threshold("range_launches", 3, "launches", "a range with fewer holds no loop")
RANGE_LAUNCH_SHARE = Threshold(
    "range_launch_share",
    0.9,
    "share of all launches",
    "a range around nine tenths of the launches is the timed one, not a phase",
)


class NoClosingSync(Rule):
    """The timed range ends before its last kernel."""

    code = "TA304"
    name = "no-closing-sync"
    family = "sync"
    thresholds = (TAIL_SHARE, RANGE_LAUNCHES, RANGE_LAUNCH_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "each": Message(
            "the clock of {range:name} reads enqueue time, {range_ns:time}: it stops before its work ends, which takes {work_ns:time}",
            "In {missed:count} of {ranges:count} ranges {range:name} the work launched in the range runs until {tail_ns:time} after it ended, with no synchronise "
            "inside: a clock around it reads {range_ns:time}, enqueue time, for {work_ns:time} of work.",
        ),
        "tail": Message(
            "the range {range:name} ends before its work",
            "{range:name} lasts {range_ns:time} on the host, but the work launched in it runs until {tail_ns:time} after it ended, with no synchronise "
            "inside: its length is enqueue time. From its start to the last kernel's end it is {elapsed_ns:time} ({factor:times}).",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "six launches in 60 us, kernels for 510",
                (
                    host_range("timed", 0, 60),
                    *(e for i in range(6) for e in (launch(10 * i, i + 1), kernel(6 + 86 * i, 85, i + 1))),
                    call(70, 453, "cudaDeviceSynchronize", 900),
                ),
            ),
            Example(
                "a timer around each launch, without a synchronise",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        host_range("timed", 40 * i, 30),
                        launch(40 * i + 5, i + 1),
                        kernel(11 + 300 * i, 299, i + 1),
                    )
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a range that labels a phase",
                (
                    host_range("forward", 0, 60),
                    *(e for i in range(6) for e in (launch(10 * i, i + 1), kernel(6 + 86 * i, 85, i + 1))),
                    call(70, 453, "cudaDeviceSynchronize", 900),
                ),
            ),
            Example(
                "a synchronise inside the range",
                (
                    host_range("timed", 0, 530),
                    *(e for i in range(6) for e in (launch(10 * i, i + 1), kernel(6 + 86 * i, 85, i + 1))),
                    call(70, 453, "cudaDeviceSynchronize", 900),
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        calls, rows, ranges = analysis.trace.calls, analysis.trace.activities, analysis.trace.ranges
        launches = np.flatnonzero(analysis.host.launches & analysis.chosen.calls)
        if not len(launches):
            return self.abstain("there is no launch call")
        found = []
        least, least_share = analysis.options.threshold(RANGE_LAUNCHES), analysis.options.threshold(RANGE_LAUNCH_SHARE)
        limit = analysis.options.threshold(TAIL_SHARE)
        for name, members in user_ranges(analysis.trace).items():
            if not timed_range(analysis, name) or name.startswith(CAPTURE_PREFIX):
                continue
            if len(members) > 1:
                found += self._repeated(analysis, name, members.tolist(), launches) if is_timer_name(name) else []
                continue
            row = int(members[0])
            low, high = int(ranges.start_ns[row]), int(ranges.end_ns[row])
            inside = launches[(calls.start_ns[launches] >= low) & (calls.start_ns[launches] <= high)]
            if len(inside) < least or len(inside) < least_share * len(launches):
                continue
            syncs = analysis.host.syncs & (calls.start_ns >= low) & (calls.end_ns <= high)
            mine = np.isin(rows.call, inside)
            if syncs.any() or not mine.any():
                continue
            last, work = int(rows.end_ns[mine].max()), int(rows.dur_ns[mine].sum())
            tail = last - high
            if tail <= limit * work:
                continue
            found.append(
                self.say(
                    "tail", Severity.WARNING, Grade.PROVEN, Subject(SubjectKind.RANGE, name=name),
                    {"range": name, "range_ns": high - low, "tail_ns": tail, "elapsed_ns": last - low, "factor": (last - low) / max(1, high - low)},
                    numbers={
                        "range_us": us(high - low), "tail_us": us(tail), "elapsed_us": us(last - low),
                        "launches": len(inside), "threshold_tail_share": limit,
                    },
                    evidence=[
                        range_evidence(analysis, row),
                        activity_evidence(analysis, int(np.flatnonzero(mine)[np.argmax(rows.end_ns[mine])]), "ends last"),
                    ],
                    remedy=[f"call {synchronise_of(analysis)} before the clock is read"],
                )
            )  # fmt: skip
        return found

    def _repeated(self, analysis: Analysis, name: str, members: list[int], launches: Int64) -> list[Finding]:
        """Return the finding on a timer that starts and stops around each call without any synchronise in it."""
        calls, rows, ranges = analysis.trace.calls, analysis.trace.activities, analysis.trace.ranges
        limit = analysis.options.threshold(TAIL_SHARE)
        begins = calls.start_ns[launches]
        ordered = launches[np.argsort(begins, kind="stable")]
        begins = calls.start_ns[ordered]
        syncs = np.sort(calls.start_ns[analysis.host.syncs])
        by_call = np.argsort(rows.call, kind="stable")
        of_call = rows.call[by_call]
        tails: list[tuple[int, int, int, int, int]] = []
        judged = 0
        for member in members:
            low, high = int(ranges.start_ns[member]), int(ranges.end_ns[member])
            inside = ordered[np.searchsorted(begins, low) : np.searchsorted(begins, high, side="right")]
            lows, highs = np.searchsorted(of_call, inside), np.searchsorted(of_call, inside, side="right")
            mine = (
                by_call[np.concatenate([np.arange(a, b) for a, b in zip(lows, highs, strict=True)])]
                if len(inside)
                else by_call[:0]
            )
            if not len(mine):
                continue
            judged += 1
            last, work = int(rows.end_ns[mine].max()), int(rows.dur_ns[mine].sum())
            waits = np.searchsorted(syncs, high, side="right") - np.searchsorted(syncs, low)
            # a clock that reads less than the work takes cannot have seen it; a longer range may be no clock
            if not waits and work > high - low and last - high > limit * work:
                tails.append((high - low, last - high, work, member, int(mine[np.argmax(rows.end_ns[mine])])))
        if judged < LEAST_CALLS or 2 * len(tails) < judged:
            return []
        length, tail, typical = (float(np.median([t[k] for t in tails])) for k in range(3))
        return [
            self.say(
                "each", Severity.WARNING, Grade.PROVEN, Subject(SubjectKind.RANGE, name=name),
                {"range": name, "range_ns": length, "tail_ns": tail, "work_ns": typical, "missed": len(tails), "ranges": judged},
                numbers={
                    "ranges": judged, "ranges_missed": len(tails), "range_p50_us": us(length), "tail_p50_us": us(tail), "work_p50_us": us(typical),
                    "threshold_tail_share": limit,
                },
                evidence=[range_evidence(analysis, tails[0][3]), activity_evidence(analysis, tails[0][4], "ends after its range")],
                remedy=[f"call {synchronise_of(analysis)} before the clock is read"],
            )
        ]  # fmt: skip
