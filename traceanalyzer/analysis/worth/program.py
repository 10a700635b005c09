"""From the rows of a trace to a program of the queue model: what each host event cost, and what it waited for.

Host events are the calls that own device rows, the calls that wait (synchronise, polling, frees that wait), and data-loading
ranges. Host time between two events of a thread is kept as it was, with the parts of it that a change may take away.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.ledger.classes import DATA_LOADER, LedgerClass, api_class, is_compiler
from traceanalyzer.analysis.ledger.host import HostRows, process_of_thread
from traceanalyzer.analysis.ledger.idle import LATENCY_FLOOR_NS
from traceanalyzer.analysis.ledger.lines import short_line
from traceanalyzer.analysis.worth.events import Built, EventKind, Events, Parts, Window
from traceanalyzer.analysis.worth.measured import FREE_WAITS_NS, RecordedRun
from traceanalyzer.analysis.worth.replay import NEVER, ReplayProgram
from traceanalyzer.trace.launch_names import ApiClass, classify_api
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace

USUAL_GAP_NS = 1000
"""The gap between rows that wait in a queue, where the trace shows none."""
HANDED_OVER = 3
"""A thread without rows of its own, while another makes so many calls, waits for the other."""
FETCHED_NS = 100_000
"""A wait for data this long shows that the workers had none ready."""


class Builder:
    """Columns that all windows of a trace share."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        calls = trace.calls
        self.process = process_of_thread(trace)
        self.cls = np.array([int(api_class(a)) for a in trace.apis] or [0], dtype=np.int8)[calls.api]
        self.api = np.array([int(classify_api(a)) for a in trace.apis] or [0], dtype=np.int8)[calls.api]
        self.query = np.array(["Query" in a and "Attrib" not in a for a in trace.apis] or [False], dtype=bool)[
            calls.api
        ]
        self.frees = np.array(["free" in a.lower() for a in trace.apis] or [False], dtype=bool)[calls.api]
        owning = calls.n_activities > 0
        length = calls.end_ns - calls.start_ns
        plain = length[owning & (self.cls != LedgerClass.COPY_CALL)]
        self.plain = int(np.median(plain)) if len(plain) else 2000
        device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
        self.device = device_of_lane[trace.activities.lane] if len(trace.activities) else np.empty(0, np.int64)
        self.latency, self.spacing = self._typical()

    def _typical(self) -> tuple[int, int]:
        """Return the middle latency of launches that met an idle stream, and the middle gap of rows that waited in a queue."""
        rows, calls = self.trace.activities, self.trace.calls
        at = np.flatnonzero(rows.call != NO_ROW)
        at = at[(at > 0) & (rows.lane[at] == rows.lane[np.maximum(at - 1, 0)])]
        before, call = rows.end_ns[at - 1], rows.call[at]
        gap = rows.start_ns[at] - before
        fresh = call != rows.call[at - 1]
        latency = (rows.start_ns[at] - calls.end_ns[call])[fresh & (calls.start_ns[call] >= before)]
        spacing = gap[fresh & (calls.end_ns[call] < before) & (gap >= 0) & (gap <= LATENCY_FLOOR_NS)]
        shortest = (rows.start_ns - calls.end_ns[np.maximum(rows.call, 0)])[rows.call != NO_ROW] if len(calls) else gap
        typical = int(np.median(latency)) if len(latency) else int(min(5000, max(0, shortest.min(initial=5000))))
        return typical, int(np.median(spacing)) if len(spacing) else USUAL_GAP_NS

    # -- events ---------------------------------------------------------------------------------------

    def events(self, first_call: int, last_call: int) -> Events:
        """Return the host events from the start of one call to the start of another, of all threads of their process."""
        calls = self.trace.calls
        process = self.process[calls.thread[first_call]]
        begin, stop = int(calls.start_ns[first_call]), int(calls.start_ns[last_call])
        mine = (self.process[calls.thread] == process) & (calls.start_ns >= begin) & (calls.start_ns <= stop)
        owning = mine & (calls.n_activities > 0)
        syncs = (
            mine
            & ~owning
            & ~self.query
            & (
                (self.cls == LedgerClass.SYNCHRONISE)
                | np.isin(self.api, [ApiClass.SYNC_DEVICE, ApiClass.SYNC_STREAM, ApiClass.SYNC_EVENT])
            )
        )
        frees = (
            mine
            & ~owning
            & self.frees
            & (self.cls == LedgerClass.ALLOCATION)
            & (calls.end_ns - calls.start_ns >= FREE_WAITS_NS)
        )
        kind = np.full(len(calls), EventKind.LAUNCH, dtype=np.int64)
        kind[self.cls == LedgerClass.COPY_CALL] = EventKind.COPY
        kind[syncs], kind[frees] = EventKind.SYNC, EventKind.ALLOCATION
        at = np.flatnonzero(owning | syncs | frees)
        found = [Events(calls.start_ns[at], calls.end_ns[at], calls.thread[at].astype(np.int64), kind[at], at)]
        found.append(self._polls(np.flatnonzero(mine & self.query), at))
        found.append(self._data(process, begin, stop, found[0]))
        every = Events(
            *(np.concatenate([getattr(f, c) for f in found]) for c in ("start", "end", "thread", "kind", "call"))
        )
        return every.take(np.lexsort((every.end, every.start)))

    def _polls(self, queries: Int64, others: Int64) -> Events:
        """Return runs of queries on a thread with no other event between: the host polls."""
        calls = self.trace.calls
        if not len(queries):
            return _none()
        # calls are sorted by thread and start; a run ends where another event or thread lies between
        stretch = np.searchsorted(others, queries)
        thread = calls.thread[queries]
        opens = np.ones(len(queries), dtype=bool)
        opens[1:] = (stretch[1:] != stretch[:-1]) | (thread[1:] != thread[:-1])
        first = np.flatnonzero(opens)
        last = np.append(first[1:], len(queries)) - 1
        run = last > first
        first, last = queries[first[run]], queries[last[run]]
        n = len(first)
        return Events(
            calls.start_ns[first],
            calls.end_ns[last],
            calls.thread[first].astype(np.int64),
            np.full(n, EventKind.POLL),
            first,
        )

    def _data(self, process: int, begin: int, stop: int, calls: Events) -> Events:
        """Return data-loading ranges on threads with events that hold no event themselves."""
        start, end, thread = self._ranges_named(lambda n: n.startswith(DATA_LOADER))
        keep = (
            (self.process[thread] == process) & (start >= begin) & (end <= stop) & (end > start)
            if len(start)
            else np.empty(0, bool)
        )
        start, end, thread = start[keep], end[keep], thread[keep]
        lonely = np.zeros(len(start), dtype=bool)
        for t in distinct(thread).tolist():
            mine = np.flatnonzero(thread == t)
            own = np.sort(calls.start[calls.thread == t])
            empty = np.searchsorted(own, start[mine]) == np.searchsorted(own, end[mine])
            lonely[mine] = empty & (len(own) > 0)
            order = mine[np.argsort(start[mine], kind="stable")]
            inner = order[1:][start[order[1:]] < np.maximum.accumulate(end[order])[:-1]]
            lonely[inner] = False
        start, end, thread = start[lonely], end[lonely], thread[lonely]
        workers, ends, _ = self._ranges_named(lambda n: n.startswith(DATA_LOADER) and "MultiProcessing" in n)
        # a long wait for workers: they cannot be quicker, whatever else the host saves
        fetched = np.isin(start, workers) & np.isin(end, ends) & (end - start >= FETCHED_NS)
        kind = np.where(fetched, EventKind.FETCHED, EventKind.DATA).astype(np.int64)
        return Events(start, end, thread, kind, np.full(len(start), NO_ROW, dtype=np.int64))

    def _ranges_named(self, test) -> tuple[Int64, Int64, Int64]:  # type: ignore[no-untyped-def]
        trace = self.trace
        wanted = np.array([test(n) for n in trace.names] or [False], dtype=bool)
        parts = []
        for table in (trace.host_ops, trace.ranges.take(~trace.ranges.on_device)):
            at = wanted[table.name] if len(table) else np.empty(0, dtype=bool)
            parts.append((table.start_ns[at], table.end_ns[at], table.thread[at].astype(np.int64)))
        start, end, thread = (np.concatenate([p[i] for p in parts]) for i in range(3))
        return start, end, thread

    # -- the program ----------------------------------------------------------------------------------

    def build(self, window: Window, sites: list[str]) -> Built:
        """Return the program of a window."""
        rows, calls = self.trace.activities, self.trace.calls
        first_calls = rows.call[window.first_rows]
        events = self.events(int(first_calls[0]), int(first_calls[-1]))
        order, bounds = self._rows_of(events)
        previous, gap, after = self._chain(events)
        lane_numbers, lane = np.unique(rows.lane[order].astype(np.int64), return_inverse=True)
        lane = lane.reshape(-1)
        threads, thread = np.unique(events.thread, return_inverse=True)
        thread = thread.reshape(-1)
        begin = int(events.start[0])
        free = self._free_before(lane_numbers, order, begin)
        program = ReplayProgram(
            thread=thread.tolist(), start=events.start.tolist(), gap=gap.tolist(), after=after.tolist(), cost=(events.end - events.start).tolist(),
            wait=[0] * len(events.start), target=[-1] * len(events.start), lag=[0] * len(events.start), first_row=bounds.tolist(),
            lane=lane.tolist(), length=(rows.end_ns - rows.start_ns)[order].tolist(), latency=[0] * len(order), from_end=[False] * len(order),
            spacing=[0] * len(order), needs=[-1] * len(order), offset=[0] * len(order), free=free, ended=[0] * len(threads),
        )  # fmt: skip
        measured = RecordedRun(self, program, events, order, lane_numbers)
        measured.fill()
        place = {int(r): i for i, r in enumerate(order.tolist())}
        first_rows = [place[int(r)] for r in window.first_rows]
        unit_starts = calls.start_ns[first_calls]
        unit = np.searchsorted(unit_starts, events.start, side="right") - 1
        opens = np.ones(len(unit), dtype=bool)
        opens[1:] = unit[1:] != unit[:-1]
        parts = self._parts(events, previous, unit, opens, sites)
        call_place = {int(c): i for i, c in enumerate(events.call.tolist()) if c != NO_ROW}
        first_events = [call_place[int(c)] for c in first_calls]
        lane_rows = self._lane_rows(window, order, lane, np.repeat(unit, np.diff(bounds)), len(first_events) - 2)
        unexplained = measured.unexplained.get(window.device, 0)
        return Built(program, parts, events, order, first_rows, first_events, lane_rows, unexplained)

    def _lane_rows(self, window: Window, order: Int64, lane: Int64, unit: Int64, last: int) -> list[tuple[int, int]]:
        """Return the first row of each lane of the device in the first unit and in the last whole one."""
        found = []
        mine = self.device[order] == window.device
        for n in distinct(lane[mine]).tolist():
            opening, closing = (np.flatnonzero((lane == n) & (unit == u)) for u in (0, last))
            if len(opening) and len(closing):
                found.append((int(opening[0]), int(closing[0])))
        return found

    def _rows_of(self, events: Events) -> tuple[Int64, Int64]:
        """Return the device rows of the events, call by call in order of start, and where each event's begin."""
        rows = self.trace.activities
        place = np.full(len(self.trace.calls), -1, dtype=np.int64)
        owning = (events.kind == EventKind.LAUNCH) | (events.kind == EventKind.COPY)
        place[events.call[owning]] = np.flatnonzero(owning)
        of = np.where(rows.call != NO_ROW, place[rows.call], -1)
        at = np.flatnonzero(of >= 0)
        order = at[np.lexsort((rows.end_ns[at], rows.start_ns[at], of[at]))]
        return order, np.searchsorted(of[order], np.arange(len(events.start) + 1))

    def backlog(self, events: Events, order: Int64, bounds: Int64) -> list[int]:
        """Return how many rows of its lane each launch found called before it and not started when it returned."""
        rows, calls = self.trace.activities, self.trace.calls
        result = np.zeros(len(events.start), dtype=np.int64)
        has = np.flatnonzero(bounds[1:] > bounds[:-1])
        lane = rows.lane[order[bounds[has]]]
        linked = rows.call != NO_ROW
        for n in distinct(lane).tolist():
            mine, on = has[lane == n], linked & (rows.lane == n)
            called, started = np.sort(calls.start_ns[rows.call[on]]), np.sort(rows.start_ns[on])
            result[mine] = np.searchsorted(called, events.start[mine]) - np.searchsorted(started, events.end[mine])
        return result.tolist()

    def _free_before(self, lane_numbers: Int64, order: Int64, begin: int) -> list[int]:
        """Return the last end on each lane of rows that were launched before the window."""
        rows, calls = self.trace.activities, self.trace.calls
        called = np.where(rows.call != NO_ROW, calls.start_ns[np.maximum(rows.call, 0)], rows.start_ns)
        before = called < begin
        before[order] = False
        return [int(rows.end_ns[before & (rows.lane == n)].max(initial=NEVER // 2)) for n in lane_numbers.tolist()]

    def _chain(self, events: Events) -> tuple[Int64, Int64, Int64]:
        """Return the end each event's gap begins at, the gap, and the event of another thread it follows (or -1)."""
        n = len(events.start)
        previous = np.full(n, NEVER, dtype=np.int64)
        after = np.full(n, -1, dtype=np.int64)
        reach = np.maximum.accumulate(events.end)
        latest = np.maximum.accumulate(np.where(events.end >= reach, np.arange(n), 0))
        ops = self.trace.host_ops
        for t in distinct(events.thread).tolist():
            mine = np.flatnonzero(events.thread == t)
            previous[mine[1:]] = events.end[mine[:-1]]
            if len(mine) == n:
                continue
            # where others made several calls since, and this thread has no operator row meanwhile, it waited for them
            others_since = np.diff(mine) - 1
            before = latest[np.maximum(mine[1:] - 1, 0)]
            handed = (
                (others_since >= HANDED_OVER)
                & (events.thread[before] != t)
                & (events.end[before] <= events.start[mine[1:]])
            )
            own = ops.thread == t
            if not own.any():
                continue
            low, high = events.end[mine[:-1]], events.end[before]
            worked = intervals.covered_length(low, np.maximum(low, high), ops.start_ns[own], ops.end_ns[own])
            handed &= 5 * worked < high - low
            after[mine[1:][handed]] = before[handed]
            previous[mine[1:][handed]] = events.end[before[handed]]
            lead = int(mine[0])
            if lead and len(mine) > 1 and events.thread[latest[lead - 1]] != t and lead >= HANDED_OVER:
                after[lead] = latest[lead - 1]
                previous[lead] = events.end[latest[lead - 1]]
        gap = np.where(previous == NEVER, NEVER, events.start - previous)
        return previous, gap, after

    def _parts(self, events: Events, previous: Int64, unit: Int64, opens: Bool, sites: list[str]) -> Parts:
        trace, calls = self.trace, self.trace.calls
        low = np.where(previous == NEVER, events.start, np.minimum(previous, events.start))
        high = events.start
        allocation = self.cls == LedgerClass.ALLOCATION
        taken = np.zeros(len(calls), dtype=bool)
        taken[events.call[events.call != NO_ROW]] = True
        loads = (self.cls == LedgerClass.CODE_LOAD) & ~taken
        load_rows = np.array(["oading" in n for n in trace.names] or [False], dtype=bool)
        over = trace.overheads
        over_at = load_rows[over.name] if len(over) else np.empty(0, dtype=bool)
        everyone = (over.start_ns[over_at], over.end_ns[over_at])

        def of_calls(mask: Bool) -> Int64:
            return self._covered(
                low, high, events.thread, calls.start_ns[mask], calls.end_ns[mask], calls.thread[mask].astype(np.int64)
            )

        one_time = of_calls(loads) + intervals.covered_length(low, high, *everyone)
        inside = intervals.covered_length(events.start, events.end, *everyone)
        slow = (events.kind == EventKind.LAUNCH) & (events.end - events.start > max(100_000, 20 * self.plain))
        inside = np.where(slow, np.maximum(inside, events.end - events.start - self.plain), inside)
        found: dict[str, tuple[list[int], list[bool]]] = {}
        for site in sites:
            start, end, thread = self._ranges_named(lambda n, site=site: n == site)
            if not len(start) and len(trace.python):
                found[site] = self._in_line(site, low, high, events)
                continue
            holds = self._covered(events.start, events.end, events.thread, start, end, thread) >= np.maximum(
                1, events.end - events.start
            )
            found[site] = (self._covered(low, high, events.thread, start, end, thread).tolist(), holds.tolist())
        return Parts(
            kind=events.kind.tolist(), unit=unit.tolist(), opens_unit=opens.tolist(), allocation=of_calls(allocation & ~taken).tolist(),
            data=self._covered(low, high, events.thread, *self._ranges_named(lambda n: n.startswith(DATA_LOADER))).tolist(),
            compile=self._covered(low, high, events.thread, *self._ranges_named(is_compiler)).tolist(),
            one_time=np.minimum(one_time, high - low).tolist(), one_time_cost=inside.tolist(), plain=self.plain, sites=found,
        )  # fmt: skip

    @cached_property
    def _host(self) -> HostRows:
        return HostRows(self.trace)

    def _in_line(self, line: str, low: Int64, high: Int64, events: Events) -> tuple[list[int], list[bool]]:
        """Return how much of each gap a line of the user's own code holds (it is the innermost of them), and which events lie in it."""
        gaps = self._line_ns(line, low, np.maximum(low, high), events.thread)
        inside = self._line_ns(line, events.start, events.end, events.thread)
        return gaps.tolist(), (inside >= np.maximum(1, events.end - events.start)).tolist()

    def _line_ns(self, line: str, start: Int64, end: Int64, thread: Int64) -> Int64:
        found = self._host.users_lines(start, end, thread)
        names = self._host.names
        mine = {n for n in distinct(found.row).tolist() if short_line(names.text(n)) == line}
        at = np.isin(found.row, list(mine))
        result = np.zeros(len(start), dtype=np.int64)
        np.add.at(result, found.of[at], (found.end - found.start)[at])
        return result

    def _covered(self, low: Int64, high: Int64, thread: Int64, start: Int64, end: Int64, row_thread: Int64) -> Int64:
        """Return how much of each interval rows of its own thread cover."""
        result = np.zeros(len(low), dtype=np.int64)
        for t in distinct(thread).tolist():
            mine, rows = thread == t, row_thread == t
            if rows.any():
                result[mine] = intervals.covered_length(low[mine], np.maximum(low, high)[mine], start[rows], end[rows])
        return result


def _none() -> Events:
    none = np.empty(0, dtype=np.int64)
    return Events(none, none, none, none, none)
