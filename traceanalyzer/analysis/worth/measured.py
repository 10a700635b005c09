"""The recorded run gone through once: what each host event and each device row of a program waited for."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Protocol

import numpy as np

from traceanalyzer.analysis.worth.events import EventKind, Events
from traceanalyzer.analysis.worth.replay import NEVER, ProgramWait, ReplayProgram
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

PLAIN_GAP_NS = 2500
"""A device takes up to this between rows that wait in its queue."""
FREE_WAITS_NS = 50_000
SLACK_NS = 1000
"""Host and device clocks agree to this: a wait may seem to return so much before what it waited for."""
BLOCKED_NS = 20_000
BLOCKED_FACTOR = 5
BACKLOG = 100
"""A launch call this much longer than the middle one, with so many rows not started, waited for room in the queue."""
NEAR_NS = 50_000
"""A row that starts so soon after the end of a row of another stream, and late by itself, waited for that row."""
LATE_NS = 10_000
"""A row that starts so soon after its call returned has not waited for anything else."""
LOOK_BACK = 256
"""Rows launched before that are looked at for the one a wait waited for."""


class TypicalTimes(Protocol):
    """What is known of the whole trace: ``plain``, ``latency`` and ``spacing`` are the middle call, latency and gap in nanoseconds."""

    trace: Trace
    api: Any
    plain: int
    latency: int
    spacing: int

    def backlog(self, events: Events, order: Int64, bounds: Int64) -> list[int]: ...  # noqa: D102


class RecordedRun:
    """Walks through the recorded run once and writes down what each event and row waited for."""

    def __init__(
        self, builder: TypicalTimes, program: ReplayProgram, events: Events, order: Int64, lane_numbers: Int64
    ) -> None:
        trace = builder.trace
        self.b, self.p = builder, program
        self.end = events.end.tolist()
        self.kind = events.kind.tolist()
        self.api = [int(builder.api[c]) if c != NO_ROW else 0 for c in events.call.tolist()]
        self.row_start = trace.activities.start_ns[order].tolist()
        self.row_end = trace.activities.end_ns[order].tolist()
        self.device = [trace.lanes[n].device for n in lane_numbers.tolist()]
        self.backlog = builder.backlog(events, order, np.array(program.first_row))
        # rows of a lane that each started after the one before, to find one by time
        self.on_lane: list[tuple[list[int], list[int]]] = [([], []) for _ in self.device]
        for i, (lane, start) in enumerate(zip(program.lane, self.row_start, strict=True)):
            numbers, starts = self.on_lane[lane]
            if not starts or start >= starts[-1]:
                numbers.append(i)
                starts.append(start)
        self.lags: list[int] = []
        self.idle_waits: list[int] = []
        self.unexplained: dict[int, int] = {}

    def fill(self) -> None:
        """Fill the program's waits, latencies and spacings."""
        p = self.p
        free = list(p.free)
        last_lane: dict[int, int] = {}
        for k, kind in enumerate(self.kind):
            low, high = p.first_row[k], p.first_row[k + 1]
            if kind in (EventKind.LAUNCH, EventKind.COPY):
                for i in range(low, high):
                    self._row(k, i, i == low, free)
                    lane = p.lane[i]
                    free[lane] = max(free[lane], self.row_end[i])
                    last_lane[p.thread[k]] = lane
                if kind == EventKind.COPY:
                    self._copy(k, high)
                else:
                    self._launch(k, low)
            elif kind == EventKind.FETCHED:
                p.wait[k], p.target[k] = ProgramWait.INSTANT, self.end[k]
                p.cost[k] = min(p.cost[k], self.b.plain)
            elif kind != EventKind.DATA:
                self._wait(k, low, free, last_lane.get(p.thread[k]))
        lag = sorted(self.lags)[len(self.lags) // 2] if self.lags else None
        for k in self.idle_waits:
            p.lag[k] = min(lag, p.cost[k]) if lag is not None else p.cost[k]

    def _row(self, k: int, i: int, first: bool, free: list[int]) -> None:
        p, b = self.p, self.b
        start, called, returned = self.row_start[i], p.start[k], self.end[k]
        before = free[p.lane[i]]
        from_end = start >= returned
        wanted = start - (returned if from_end else called)
        own = min(returned - called, b.plain)  # what is longer waited for the row itself
        typical = min(wanted, b.latency if from_end else b.latency + own)
        gap = start - before
        p.from_end[i] = from_end
        if not first:  # nodes of one graph arrive together
            p.latency[i] = min(0, wanted)
            p.from_end[i] = False
            previous = i - 1
            if gap <= PLAIN_GAP_NS or p.lane[previous] == p.lane[i] or self.row_end[previous] > start:
                p.spacing[i] = gap
            else:
                p.spacing[i] = min(gap, b.spacing)
                p.needs[i], p.offset[i] = previous, start - self.row_end[previous]
            return
        if called >= before:  # the stream was idle
            p.latency[i], p.spacing[i] = wanted, min(gap, b.spacing)
        elif gap <= max(PLAIN_GAP_NS, 2 * b.spacing):
            p.latency[i], p.spacing[i] = typical, gap
        elif not from_end or wanted <= max(
            2 * b.latency, LATE_NS
        ):  # the call itself, or its way to the device, took that long
            p.latency[i], p.spacing[i] = wanted, b.spacing
        else:
            p.latency[i] = typical
            needs = self._latest_end(i, start, p.lane[i])
            if needs >= 0 and start - self.row_end[needs] <= NEAR_NS:
                p.needs[i], p.offset[i], p.spacing[i] = needs, start - self.row_end[needs], min(gap, b.spacing)
            else:
                p.spacing[i] = gap
                device = self.device[p.lane[i]]
                self.unexplained[device] = self.unexplained.get(device, 0) + gap

    def _latest_end(self, upto: int, limit: int, not_lane: int = -1) -> int:
        """Return the row launched before that ended last by an instant, on another lane than the given; -1 without one."""
        best = -1
        for j in range(max(0, upto - LOOK_BACK), upto):
            if (
                self.row_end[j] <= limit
                and self.p.lane[j] != not_lane
                and (best < 0 or self.row_end[j] >= self.row_end[best])
            ):
                best = j
        return best

    def _copy(self, k: int, high: int) -> None:
        p, last = self.p, high - 1
        if self.end[k] >= self.row_end[last] - SLACK_NS:
            p.wait[k], p.target[k], p.lag[k] = ProgramWait.ROW_END, last, self.end[k] - self.row_end[last]
        elif self.end[k] >= self.row_start[last] and p.cost[k] > BLOCKED_FACTOR * self.b.plain:
            p.wait[k], p.target[k], p.lag[k] = ProgramWait.ROW_START, last, self.end[k] - self.row_start[last]
        else:
            return
        p.cost[k] = min(p.cost[k], self.b.plain)

    def _launch(self, k: int, low: int) -> None:
        p = self.p
        if p.cost[k] <= max(BLOCKED_NS, BLOCKED_FACTOR * self.b.plain) or self.backlog[k] < BACKLOG:
            return
        on_lane, starts = self.on_lane[p.lane[low]]
        at = bisect_right(starts, self.end[k]) - 1
        if at >= 0 and on_lane[at] < low:
            started = on_lane[at]
            p.wait[k], p.target[k], p.lag[k] = ProgramWait.ROW_START, started, self.end[k] - self.row_start[started]
        p.cost[k] = self.b.plain

    def _wait(self, k: int, low: int, free: list[int], lane: int | None) -> None:
        p, begun, end = self.p, self.p.start[k], self.end[k]
        kind, api = self.kind[k], self.api[k]
        target, wait, done = -1, ProgramWait.NONE, NEVER
        if kind == EventKind.SYNC and api == ApiClass.SYNC_STREAM and lane is not None and free[lane] <= end + SLACK_NS:
            wait, target, done = ProgramWait.LANE, lane, free[lane]
        elif (kind == EventKind.ALLOCATION or api == ApiClass.SYNC_DEVICE) and max(free) <= end + SLACK_NS:
            wait, done = ProgramWait.ALL, max(free)
        else:
            row = self._latest_end(low, end + SLACK_NS)
            if row >= 0 and self.row_end[row] > begun:
                wait, target, done = ProgramWait.ROW_END, row, self.row_end[row]
        if wait == ProgramWait.NONE:
            return
        if done > begun:
            if kind == EventKind.ALLOCATION and end - done > FREE_WAITS_NS:
                return
            p.wait[k], p.target[k], p.lag[k] = wait, target, end - done
            p.cost[k] = min(p.cost[k], max(0, end - done))
            self.lags.append(max(0, end - done))
        elif kind == EventKind.SYNC:
            # nothing was left to wait for; with other times there may be
            p.wait[k], p.target[k] = wait, target
            self.idle_waits.append(k)
