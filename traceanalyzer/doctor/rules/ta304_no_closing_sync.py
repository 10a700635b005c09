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
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import timed_range
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

TAIL_SHARE = Threshold(
    "tail_share", 0.01, "share of the range's work", "1 % behind the end is work that the clock missed"
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
        "tail": Message(
            "the range {range:name} ends before its work",
            "{range:name} lasts {range_ns:time} on the host, but the work launched in it runs until {tail_ns:time} after it ended, with no synchronise "
            "inside: its length is enqueue time. From its start to the last kernel's end it is {elapsed_ns:time} ({factor:times}).",
        ),
    }
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "six launches in 60 us, kernels for 510",
            (
                host_range("timed", 0, 60),
                *(e for i in range(6) for e in (launch(10 * i, i + 1), kernel(6 + 86 * i, 85, i + 1))),
                call(70, 453, "cudaDeviceSynchronize", 900),
            ),
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
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
            if len(members) != 1 or not timed_range(analysis, name):
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
