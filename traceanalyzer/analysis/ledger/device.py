"""The ledger of one device: its span cut into segments, each with a class, a name and the reason it ran dry."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import field
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from traceanalyzer.analysis.ledger.busy import busy_pieces
from traceanalyzer.analysis.ledger.classes import DrainedBy, LedgerClass
from traceanalyzer.analysis.ledger.head_tail import NO_STRETCH, HostStretch, RecordedTimes, margins
from traceanalyzer.analysis.ledger.host import NO_NAME, HostNames, HostRows
from traceanalyzer.analysis.ledger.idle import (
    IdleIntervals,
    idle_intervals,
    latency_limit_ns,
    unrecorded_launches,
)
from traceanalyzer.analysis.ledger.membership import of_classes
from traceanalyzer.analysis.ledger.sweep import cut
from traceanalyzer.analysis.ledger.worth import LedgerTimeline, Worth, WorthUnit
from traceanalyzer.analysis.recurrence import Recurrence, recurrence
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int8, Int64, Trace

_NOT_THE_HOSTS = (LedgerClass.DEVICE_GAP, LedgerClass.INSIDE_LAUNCH, LedgerClass.DEVICE_WAIT, LedgerClass.UNLINKED)
"""Idle classes for which no line of the host is the cause."""
STALL_FLOOR_NS = 100_000
STALL_FACTOR = 20
"""A launch call over both is not what a launch costs: its first use, or a stall."""


def _no_timeline(_: str) -> str:
    return _nothing_repeats().reason


def _no_lines(_: DeviceLedger) -> tuple[Int64, Int64, Int64]:
    none = np.empty(0, dtype=np.int64)
    return none, none, none


def _nothing_repeats() -> Worth:
    return Worth("no operation repeats on this device")


@record(frozen=True)
class DeviceLedger:
    """Every nanosecond of a device's span; the segments are disjoint, in order of time, and cover it exactly.

    Attributes:
        device: row of ``trace.devices``.
        window: "span", or the name of an operation.
        start_ns, end_ns: the span.
        start, end: of each segment, in nanoseconds.
        cls: its class (codes of LedgerClass).
        name, within: numbers of ``names``: what the class was busy with, and the innermost range of the user.
        drained: why the device had run dry (codes of DrainedBy), BUSY for busy segments.
        row: device row that ends the idle interval; of a busy segment a row that holds it.
        interval: number of the idle interval, -1 for busy segments.
        idle: the idle intervals.
        limit_ns: the longest time from call to start that still counts as launch latency.
        names: gives the text of a name's number.
        unit: what the units of the run are, None where nothing repeats.
        unit_starts_ns: first instant of each unit (call of the operation with most device rows), empty where nothing repeats.
        replay, find_lines: find ``worth`` and ``lines`` when they are first asked for.
        made: what was computed from the segments when it was first asked for.
        replay_with: gives the timeline of the replayed units with a change, or why it cannot.
        before_first, after_last: the host's recorded time outside of the span.
    """

    device: int
    window: str
    start_ns: int
    end_ns: int
    start: Int64
    end: Int64
    cls: Int8
    name: Int64
    within: Int64
    drained: Int8
    row: Int64
    interval: Int64
    idle: IdleIntervals
    limit_ns: int
    names: HostNames
    before_first: HostStretch = NO_STRETCH
    after_last: HostStretch = NO_STRETCH
    unit: WorthUnit | None = None
    unit_starts_ns: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    replay: Callable[[], Worth] = _nothing_repeats
    replay_with: Callable[[str], LedgerTimeline | str] = _no_timeline
    find_lines: Callable[[DeviceLedger], tuple[Int64, Int64, Int64]] = _no_lines
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def span_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns

    @cached_property
    def worth(self) -> Worth:
        """What each change would be worth to the units of the run; replayed when it is first asked for."""
        return self.replay()

    @property
    def lines(self) -> tuple[Int64, Int64, Int64]:
        """Return (segment, number of a frame's name, nanoseconds): in which line of the user's own code the host was meanwhile.

        Of segments in which the device was idle because of the host, on the thread that made the call which ends them; empty without Python stacks.
        """
        if "lines" not in self.made:
            self.made["lines"] = self.find_lines(self)
        found: tuple[Int64, Int64, Int64] = self.made["lines"]
        return found

    @cached_property
    def ns(self) -> Int64:
        """Length of each segment."""
        return self.end - self.start

    def classes_ns(self) -> dict[LedgerClass, int]:
        """Return nanoseconds per class, largest first; classes without time are left out."""
        return _totals(self.cls, self.ns, LedgerClass)

    def drained_ns(self) -> dict[DrainedBy, int]:
        """Return nanoseconds of idle time per reason, largest first; reasons without time are left out."""
        idle = self.drained != DrainedBy.BUSY
        return _totals(self.drained[idle], self.ns[idle], DrainedBy)

    def cost_ns(self, mask: Bool) -> int:
        """Return the length of the chosen segments together."""
        return int(self.ns[mask].sum())

    def select(
        self, *, classes: Collection[LedgerClass] | None = None, name: str | None = None, within: str | None = None,
        drained: Collection[DrainedBy] | None = None,
    ) -> Bool:  # fmt: skip
        """Return which segments have one of the classes, a name and a range that hold a regular expression, and a reason."""
        chosen = np.ones(len(self.start), dtype=bool)
        if classes is not None:
            chosen &= of_classes(self.cls, classes)
        for pattern, numbers in ((name, self.name), (within, self.within)):
            if pattern is not None:
                known = distinct(numbers)
                holds = [bool(re.search(pattern, self.names.text(n)[:4096])) for n in known.tolist()]
                chosen &= np.isin(numbers, known[np.array(holds, dtype=bool)])
        if drained is not None:
            chosen &= np.isin(self.drained, [int(d) for d in drained])
        return chosen

    def when(self, chosen: Bool | Int64) -> Recurrence:
        """Return when in the window, over the units of the run, the chosen segments arise."""
        return recurrence(self.start[chosen], self.ns[chosen], self.start_ns, self.end_ns, self.unit_starts_ns)


K = TypeVar("K", bound=IntEnum)


def _totals(codes: Int8, ns: Int64, kind: type[K]) -> dict[K, int]:
    sums = {kind(int(c)): int(ns[codes == c].sum()) for c in distinct(codes)}
    return {k: v for k, v in sorted(sums.items(), key=lambda item: (-item[1], item[0])) if v}


class _Segments:
    """Parts of idle intervals as they are found."""

    def __init__(self) -> None:
        self.parts: list[tuple[Int64, Int64, Int64, Int8, Int64, Int64]] = []

    def add(self, start: Int64, end: Int64, of: Int64, cls: Int8 | int, name: Int64 | int, within: Int64 | int) -> None:
        n = len(start)
        self.parts.append((
            start, end, of, np.broadcast_to(np.asarray(cls, dtype=np.int8), n), np.broadcast_to(np.asarray(name, dtype=np.int64), n),
            np.broadcast_to(np.asarray(within, dtype=np.int64), n),
        ))  # fmt: skip

    def columns(self) -> tuple[Int64, Int64, Int64, Int8, Int64, Int64]:
        start, end, of, cls, name, within = (np.concatenate([p[i] for p in self.parts]) for i in range(6))
        return start, end, of, cls, name, within


class LedgerMaker:
    """Makes the ledgers of a trace; what all devices share is computed once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._host = HostRows(trace)
        calls = trace.calls
        self._unrecorded = unrecorded_launches(trace, self._host)
        self._process = self._host.process_of_thread
        self._recorded = RecordedTimes(trace, self._process)
        self._stalls = _stalled(trace, self._host.class_of_api) if len(calls) else np.empty(0, dtype=bool)
        self.names = self._host.names

    def span(self, device: int, at: Int64) -> DeviceLedger:
        """Return the ledger of a device over the span of the given rows of it."""
        return self.spans([(device, at)])[0]

    def spans(self, devices: list[tuple[int, Int64]]) -> list[DeviceLedger]:
        """Return the ledger of each device over the span of the given rows of it."""
        trace, rows = self._trace, self._trace.activities
        every, recorded = [], []
        for _, at in devices:
            ordered = at[np.lexsort((rows.end_ns[at], rows.start_ns[at]))]
            linked = rows.call[ordered][rows.call[ordered] != NO_ROW]
            every.append(ordered)
            recorded.append(self._recorded.of(distinct(self._process[trace.calls.thread[linked]])))
        outside = margins(trace, self._host, every, recorded)
        return [
            self._span(device, ordered, *ends)
            for (device, _), ordered, ends in zip(devices, every, outside, strict=True)
        ]

    def _span(self, device: int, ordered: Int64, before: HostStretch, after: HostStretch) -> DeviceLedger:
        trace, rows = self._trace, self._trace.activities
        idle = idle_intervals(trace, self._host, ordered)
        limit = latency_limit_ns(idle)
        busy_start, busy_end, busy_cls, busy_row = busy_pieces(trace, ordered)
        found = self._segments(idle, limit)
        start, end, of, cls, name, within = found
        busy = len(busy_start)
        none = np.full(busy, -1, dtype=np.int64)
        start, end = np.concatenate([busy_start, start]), np.concatenate([busy_end, end])
        order = np.argsort(start, kind="stable")
        drained = np.concatenate([np.full(busy, DrainedBy.BUSY, dtype=np.int8), idle.drained[of]])
        busy_name = np.where(busy_cls == LedgerClass.COMPUTE, NO_NAME, rows.name[busy_row] + self.names.rows)
        return DeviceLedger(
            device=device,
            window="span",
            start_ns=int(rows.start_ns[ordered[0]]),
            end_ns=int(rows.end_ns[ordered].max()),
            start=start[order],
            end=end[order],
            cls=np.concatenate([busy_cls, cls])[order],
            name=np.concatenate([busy_name, name])[order],
            within=np.concatenate([np.full(busy, NO_NAME, dtype=np.int64), within])[order],
            drained=drained[order],
            row=np.concatenate([busy_row, idle.row[of]])[order],
            interval=np.concatenate([none, of])[order],
            idle=idle,
            limit_ns=limit,
            names=self.names,
            before_first=before,
            after_last=after,
            find_lines=self._lines if len(trace.python) else _no_lines,
        )

    def _lines(self, ledger: DeviceLedger) -> tuple[Int64, Int64, Int64]:
        idle = np.flatnonzero((ledger.interval >= 0) & ~of_classes(ledger.cls, _NOT_THE_HOSTS))
        thread = ledger.idle.thread[ledger.interval[idle]]
        found = self._host.users_lines(ledger.start[idle], ledger.end[idle], thread)
        return idle[found.of], found.row, found.end - found.start

    def _segments(self, idle: IdleIntervals, limit: int) -> tuple[Int64, Int64, Int64, Int8, Int64, Int64]:
        trace, names = self._trace, self.names
        rows, calls = trace.activities, trace.calls
        parts = _Segments()
        everything = np.arange(len(idle))
        linked = idle.call != NO_ROW
        of = everything[~linked]
        parts.add(idle.start[of], idle.end[of], of, LedgerClass.UNLINKED, NO_NAME, NO_NAME)
        api_name = np.full(len(idle), NO_NAME, dtype=np.int64)
        if len(calls):
            api_name[linked] = calls.api[idle.call[linked]] + names.apis
        inside = linked & (rows.call[idle.before] == idle.call) if len(idle) else linked
        of = everything[inside]
        parts.add(idle.start[of], idle.end[of], of, LedgerClass.INSIDE_LAUNCH, api_name[of], NO_NAME)
        of = everything[linked & ~inside]
        a, stop, cs, ce = idle.start[of], idle.end[of].copy(), idle.call_start[of], idle.call_end[of]
        self._cut_unrecorded(parts, idle, of, stop)

        early = np.minimum(stop, cs)
        asked = early > a
        labels = self._host.labels(a[asked], early[asked], idle.thread[of[asked]], idle.before_thread[of[asked]])
        parts.add(labels.start, labels.end, of[asked][labels.of], labels.cls, labels.name, labels.within)

        low, high = np.maximum(a, cs), np.minimum(stop, ce)
        during = np.flatnonzero(high > low)
        if len(during):
            self._cut_calls(parts, idle, of[during], low[during], high[during], api_name)

        low = np.maximum(a, ce)
        after = np.flatnonzero(stop > low)
        if len(after):
            which = of[after]
            long = stop[after] - low[after] > limit
            cls = np.where(ce[after] <= a[after], LedgerClass.DEVICE_GAP, LedgerClass.LAUNCH_LATENCY)
            first = self._first_of_lane(idle.row[which])
            cls = np.where(long, np.where(first, LedgerClass.BEFORE_WINDOW, LedgerClass.DEVICE_WAIT), cls)
            parts.add(low[after], stop[after], which, cls.astype(np.int8), api_name[which], NO_NAME)
        return parts.columns()

    def _cut_unrecorded(self, parts: _Segments, idle: IdleIntervals, of: Int64, stop: Int64) -> None:
        """Give the end of each interval in which a launch without device rows begins to UNRECORDED; shorten ``stop``."""
        start, end, call = self._unrecorded
        calls = self._trace.calls
        if not len(start) or not len(of):
            return
        process = self._process[idle.thread[of]]
        of_call = self._process[calls.thread[call]]
        for p in distinct(of_call).tolist():
            mine = np.flatnonzero(of_call == p)
            here = np.flatnonzero(process == p)
            first = np.searchsorted(start[mine], idle.start[of[here]], side="left")
            there = first < len(mine)
            here, first = here[there], mine[first[there]]
            hit = (start[first] < idle.end[of[here]]) & (end[first] < idle.end[of[here]])
            here, first = here[hit], first[hit]
            stop[here] = end[first]
            name = calls.api[call[first]].astype(np.int64) + self.names.apis
            parts.add(end[first], idle.end[of[here]], of[here], LedgerClass.UNRECORDED, name, NO_NAME)

    def _cut_calls(
        self, parts: _Segments, idle: IdleIntervals, of: Int64, low: Int64, high: Int64, api_name: Int64
    ) -> None:
        """Label the time inside the launch calls, less the profiler's own rows in it."""
        calls, host = self._trace.calls, self._host
        held, rest = cut(low, high, host.overheads)
        parts.add(held.start, held.end, of[held.of], host.overhead_class(held.row), held.row, NO_NAME)
        which = of[rest.of]
        call = idle.call[which]
        copies = host.class_of_api[calls.api[call]] == LedgerClass.COPY_CALL
        slow = np.where(self._first_of_name[idle.row[which]], LedgerClass.FIRST_USE, LedgerClass.LAUNCH_STALL)
        cls = np.where(copies, LedgerClass.COPY_CALL, np.where(self._stalls[call], slow, LedgerClass.LAUNCH_CALL))
        parts.add(rest.start, rest.end, which, cls.astype(np.int8), api_name[which], NO_NAME)

    def _first_of_lane(self, row: Int64) -> Bool:
        lane = self._trace.activities.lane
        return np.asarray((row == 0) | (lane[row] != lane[np.maximum(row - 1, 0)]))

    @cached_property
    def _first_of_name(self) -> Bool:
        """Which rows are the first of their name on their device."""
        rows = self._trace.activities
        device = np.array([lane.device for lane in self._trace.lanes], dtype=np.int64)
        key = device[rows.lane] * len(self._trace.names) + rows.name
        order = np.lexsort((rows.start_ns, key))
        first = np.zeros(len(rows), dtype=bool)
        first[order] = np.concatenate([[True], key[order[1:]] != key[order[:-1]]])
        return first


def _stalled(trace: Trace, class_of_api: Int8) -> Bool:
    """Return which launch calls took far longer than the middle call of their API (the upper middle of an even number)."""
    calls = trace.calls
    length = calls.end_ns - calls.start_ns
    limit = np.full(len(trace.apis), STALL_FLOOR_NS, dtype=np.int64)
    counted = calls.corr >= 0
    for api in distinct(calls.api).tolist():
        if class_of_api[api] == LedgerClass.COPY_CALL:
            continue
        mine = length[counted & (calls.api == api)]
        if len(mine):
            limit[api] = max(STALL_FLOOR_NS, STALL_FACTOR * int(np.partition(mine, len(mine) // 2)[len(mine) // 2]))
    return np.asarray(length > limit[calls.api])
