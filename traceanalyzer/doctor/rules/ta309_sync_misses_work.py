"""TA309 sync-misses-work: a synchronise in the timed range returns before the work that the range launched.

What it checks
    Whether a synchronise behind the launches of a timed range waits for them.

Why it matters
    A synchronise waits for one device, stream or event: the current ones. Where the work runs on another, it returns at
    once and the clock reads how long enqueueing took.

How it is decided
    For calls that look like a measurement and are told apart by ranges, or ranges called timers: a synchronise that begins
    behind the launches of a range and ends in it, while rows launched in the range run on by more than 1 % of their own time,
    in half of the ranges or more. PROVEN: call and row are both in the trace.

Example
    A range of 40 us with a synchronise of 5 us on GPU 0; its kernel of 900 us runs on GPU 1.

What to do
    Synchronise the device that runs the work (in PyTorch: torch.cuda.synchronize(device)), before the clock is read.

When it is wrong
    An annotation that nobody reads as a timer.

References
    pytorch/pytorch#181238.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.analysis.ranges import user_ranges
from traceanalyzer.doctor.example import call, host_range, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, SeenRow, Severity
from traceanalyzer.doctor.measured import measured, timed_range
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import synchronise_of
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, call_evidence, us
from traceanalyzer.doctor.rules.ta304_no_closing_sync import TAIL_SHARE
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import Threshold
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import NO_ROW

MISSED_RANGES = Threshold("missed_ranges", 0.5, "share of ranges", "half of the ranges: the typical reading is wrong")


def _timed(wait_device: int) -> tuple[dict[str, object], ...]:
    """Return six timed ranges of 40 us: a launch and a synchronise; the kernels of 900 us run on a device of their own."""
    events: list[dict[str, object]] = []
    for i in range(6):
        at, start = 1000 * i, 1000 * i + 6
        row = kernel(start, 900 if wait_device else 20, i + 1)
        row["args"] = row["args"] | {"device": wait_device}
        events += [host_range("timed", at, 40), launch(at + 1, i + 1), row | {"pid": wait_device}]
        events.append(call(at + 10, 5 if wait_device else 25, "cudaDeviceSynchronize", 900 + i))
    return tuple(events)


class SyncMissesWork(Rule):
    """A synchronise in the timed range does not wait for its work."""

    code = "TA309"
    name = "sync-misses-work"
    family = "sync"
    since = "0.2.0"
    thresholds = (TAIL_SHARE, MISSED_RANGES)
    messages: ClassVar[dict[str, Message]] = {
        "missed": Message(
            "the clock of {range:name} reads enqueue time, {range_ns:time}: its synchronise does not wait for the work, which takes {work_ns:time}",
            "In {missed:count} of {ranges:count} ranges {range:name} the {api} returns before the work launched in the range is done[[, on {where}]]: the range "
            "lasts {range_ns:time}, its work runs until {tail_ns:time} after that. A clock around it reads enqueue time.",
        )
    }
    positive = Examples(
        lambda: (
            Example(
                "the synchronise waits for another device",
                _timed(1),
                allows=(
                    "TA108",
                    "TA209",
                    "TA501",
                    "TA202",
                    "TA211",
                    "TA301",
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("the synchronise waits for the work", _timed(0)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        owning = np.flatnonzero(analysis.host.owns & analysis.chosen.calls)
        if not len(owning):
            return self.abstain("no launch call owns a device row")
        ranges = {op.iterations.name for op in measured(analysis) if op.iterations.windows is not None}
        found = []
        for name, members in user_ranges(analysis.trace).items():
            if name.startswith(CAPTURE_PREFIX) or not (name in ranges or timed_range(analysis, name)):
                continue
            finding = self._judged(analysis, name, members.tolist(), owning)
            if finding is not None:
                found.append(finding)
        return found

    def _judged(self, analysis: Analysis, name: str, members: list[int], owning: np.ndarray) -> Finding | None:
        table, calls, rows = analysis.trace.ranges, analysis.trace.calls, analysis.trace.activities
        limit = analysis.options.threshold(TAIL_SHARE)
        begins = calls.start_ns[owning]
        in_order = owning[np.argsort(begins, kind="stable")]
        begins = calls.start_ns[in_order]
        syncs = np.flatnonzero(analysis.host.syncs)
        by_call = np.argsort(rows.call, kind="stable")
        of_call = rows.call[by_call]
        lengths, tails, works, evidence = [], [], [], []
        judged = 0
        shown: tuple[int, int] | None = None
        for member in members:
            low, high = int(table.start_ns[member]), int(table.end_ns[member])
            mine = in_order[np.searchsorted(begins, low) : np.searchsorted(begins, high, side="right")]
            mine = mine[calls.thread[mine] == table.thread[member]]
            if not len(mine):
                continue
            judged += 1
            behind = syncs[
                (calls.thread[syncs] == table.thread[member])
                & (calls.start_ns[syncs] >= int(calls.end_ns[mine].max()))
                & (calls.end_ns[syncs] <= high)
            ]
            lows, highs = np.searchsorted(of_call, mine), np.searchsorted(of_call, mine, side="right")
            owned = by_call[np.concatenate([np.arange(a, b) for a, b in zip(lows, highs, strict=True)])]
            work, last = int(rows.dur_ns[owned].sum()), int(rows.end_ns[owned].max())
            if not len(behind) or last - high <= limit * work:
                continue
            lengths.append(high - low)
            tails.append(last - high)
            works.append(work)
            if shown is None:
                shown = int(behind[-1]), int(owned[np.argmax(rows.end_ns[owned])])
        if shown is None or len(tails) < analysis.options.threshold(MISSED_RANGES) * judged:
            return None
        sync, row = shown
        device = analysis.trace.devices[analysis.trace.lanes[rows.lane[row]].device]
        several = len(analysis.trace.devices) > 1 or _other_device(analysis, sync, device.number)
        evidence = [call_evidence(analysis, sync, "returns first"), activity_evidence(analysis, row, "still runs")]
        return self._found(
            analysis, name, judged, lengths, tails, works, sync, f"device {device.label}" if several else "", evidence
        )

    def _found(
        self, analysis: Analysis, name: str, judged: int, lengths: list[int], tails: list[int], works: list[int], sync: int, where: str,
        evidence: list[SeenRow],
    ) -> Finding:  # fmt: skip
        length, tail, work = (int(np.median(v)) for v in (lengths, tails, works))
        return self.say(
            "missed", Severity.WARNING, Grade.PROVEN, Subject(SubjectKind.RANGE, name=name),
            {
                "range": name, "missed": len(tails), "ranges": judged, "range_ns": length, "tail_ns": tail, "work_ns": work,
                "api": analysis.trace.apis[analysis.trace.calls.api[sync]], "where": where,
            },
            numbers={
                "ranges": judged, "ranges_missed": len(tails), "range_p50_us": us(length), "tail_p50_us": us(tail), "work_p50_us": us(work),
                "threshold_tail_share": analysis.options.threshold(TAIL_SHARE),
            },
            evidence=evidence,
            remedy=[f"wait for the device that runs the work before the clock is read: {synchronise_of(analysis)}, with that device current"],
        )  # fmt: skip


def _other_device(analysis: Analysis, sync: int, device: int) -> bool:
    """Return whether a record of the device side says that the synchronise was of another device."""
    table, calls = analysis.trace.device_syncs, analysis.trace.calls
    inside = (table.start_ns >= calls.start_ns[sync]) & (table.end_ns <= calls.end_ns[sync])
    named = table.device[inside]
    return bool(len(named)) and bool((named[named != NO_ROW] != device).any())
