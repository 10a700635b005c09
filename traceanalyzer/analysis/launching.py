"""The host side: which calls launch, what lies between two launches of a thread, and how long that took."""

from __future__ import annotations

import re

import numpy as np

from traceanalyzer.analysis import intervals, stats
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import LAUNCHES, SYNCS, ApiClass
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int32, Int64, Trace

BLOCKED_FACTOR = 5
"""A launch call five times the median call is blocked: the queue was full (docs/methodology.md)."""

LEAST_POLLS = 3
"""So many queries between two launches of a thread are a wait; one or two are the allocator's."""

_QUERY = re.compile(r"(?:Stream|Event)Query", re.I)

REASONS = (
    "after a synchronise",
    "launch call over 5x the median",
    "module load",
    "profiler overhead",
    "iteration start",
)
"""Why an interval is left out of the steady dispatch, in order of precedence."""


@record(frozen=True)
class Launching:
    """Per host call (rows of ``trace.calls``); absent values are ``NO_ROW`` or the dtype's minimum.

    Attributes:
        owns: the call owns at least one device row.
        by_name: the call launches a kernel or a graph, by its API name.
        launches: the call puts work on a stream: it owns a row, or launches a kernel or graph by name.
        syncs: the call waits for the device.
        captured: the call was recorded into a graph and ran nothing.
        previous: row of the thread's previous call that launches.
        sync_start_ns, sync_end_ns: start of the first and end of the last synchronise between the previous
            launch and this one; meaningful where ``after_sync``.
        after_sync: a synchronise lies between the previous launch of the thread and this one.
        before: row of the previous call that launches on the same device, of any thread of the process: the
            dispatch of work that several threads launch together is told in order of time.
        waits: the call waits for the device: in a synchronise, a copy to the host that blocked, or a poll.
        wait_start_ns, wait_end_ns: from when to when, meaningful where ``waits``; polls from the first of a stretch.
    """

    owns: Bool
    by_name: Bool
    launches: Bool
    syncs: Bool
    captured: Bool
    previous: Int64
    sync_start_ns: Int64
    sync_end_ns: Int64
    after_sync: Bool
    before: Int64
    waits: Bool
    wait_start_ns: Int64
    wait_end_ns: Int64

    def waited_ns(self, trace: Trace, thread: Int32 | Int64, start: Int64, end: Int64) -> Int64:
        """Return how long each thread waited for the device in an interval of its own (equally long arrays)."""
        result = np.zeros(len(thread), dtype=np.int64)
        rows = np.flatnonzero(self.waits)
        owner = trace.calls.thread[rows]
        for number in distinct(owner[np.isin(owner, thread)]).tolist():
            mine, at = rows[owner == number], thread == number
            result[at] = intervals.covered_length(
                start[at], np.maximum(start[at], end[at]), self.wait_start_ns[mine], self.wait_end_ns[mine]
            )
        return result


@record(frozen=True)
class ThreadDispatch:
    """Intervals between launches of one thread, in nanoseconds."""

    thread: int
    launches: int
    dispatch_ns: Int64
    calls: Int64
    steady_ns: Int64
    left_out: dict[str, int]
    kernel_launches: int
    kernel_dispatch_ns: Int64


def launching(trace: Trace) -> Launching:
    """Return what each host call is to the launches around it."""
    calls = trace.calls
    n = len(calls)
    owns = calls.n_activities > 0
    by_name = np.isin(calls.api_class, [ApiClass.KERNEL_LAUNCH, ApiClass.GRAPH_LAUNCH])
    # a fill or copy of zero bytes is called and puts nothing on the stream: it is no launch
    launches = owns | by_name
    syncs = np.isin(calls.api_class, list(SYNCS))
    previous = np.full(n, NO_ROW, dtype=np.int64)
    sync_start = np.zeros(n, dtype=np.int64)
    sync_end = np.zeros(n, dtype=np.int64)
    after_sync = np.zeros(n, dtype=bool)
    at = np.flatnonzero(launches)
    if len(at):
        same = np.concatenate([[False], calls.thread[at[1:]] == calls.thread[at[:-1]]])
        previous[at[1:]] = np.where(same[1:], at[:-1], NO_ROW)
        # calls are sorted by thread and start: the first synchronise behind the previous launch
        sync_at = np.flatnonzero(syncs)
        first_of_thread = np.searchsorted(calls.thread, calls.thread[at], side="left")
        low = np.where(same, np.concatenate([[0], at[:-1]]), first_of_thread)
        first = np.searchsorted(sync_at, low)
        last = np.searchsorted(sync_at, at)
        has = last > first
        after_sync[at] = has
        if has.any():
            sync_start[at[has]] = calls.start_ns[sync_at[first[has]]]
            sync_end[at[has]] = calls.end_ns[sync_at[last[has] - 1]]
    before = _before(trace, launches, owns)
    waits, wait_start, wait_end = _waits(trace, launches, syncs)
    return Launching(
        owns,
        by_name,
        launches,
        syncs,
        _captured(trace, np.isin(calls.api_class, list(LAUNCHES)) & ~owns),
        previous,
        sync_start,
        sync_end,
        after_sync,
        before,
        waits,
        wait_start,
        wait_end,
    )


def _process_of_call(trace: Trace) -> Int64:
    seen: dict[str, int] = {}
    process = np.array([seen.setdefault(t.process, len(seen)) for t in trace.threads], dtype=np.int64)
    return process[trace.calls.thread] if len(trace.calls) else np.empty(0, dtype=np.int64)


def _before(trace: Trace, launches: Bool, owns: Bool) -> Int64:
    """Return the launch before each launch in time, among those of its process and, where it owns rows, its device."""
    calls, rows = trace.calls, trace.activities
    before = np.full(len(calls), NO_ROW, dtype=np.int64)
    at = np.flatnonzero(launches)
    if not len(at):
        return before
    device = np.zeros(len(calls), dtype=np.int64)
    linked = np.flatnonzero(rows.call != NO_ROW)
    device[rows.call[linked]] = np.array([lane.device for lane in trace.lanes], dtype=np.int64)[rows.lane[linked]]
    process = _process_of_call(trace)
    # a launch whose record is lost is one of its thread: it counts with the launch before it on that thread
    last_owner = np.maximum.accumulate(np.where(owns[at], np.arange(len(at)), 0))
    device[at] = device[at[last_owner]]
    order = at[np.lexsort((at, calls.start_ns[at], device[at], process[at]))]
    same = (process[order[1:]] == process[order[:-1]]) & (device[order[1:]] == device[order[:-1]])
    before[order[1:]] = np.where(same, order[:-1], NO_ROW)
    return before


def _waits(trace: Trace, launches: Bool, syncs: Bool) -> tuple[Bool, Int64, Int64]:
    """Return which calls wait for the device, from when and until when."""
    calls, rows = trace.calls, trace.activities
    waits, start, end = syncs.copy(), calls.start_ns.copy(), calls.end_ns.copy()
    # a copy to the host whose call returns when the copy has ended
    to_host = np.array(["DtoH" in n for n in trace.names], dtype=bool)
    at = np.flatnonzero((rows.call != NO_ROW) & (rows.kind == RowKind.MEMCPY))
    at = at[to_host[rows.name[at]]] if len(at) else at
    at = at[calls.end_ns[rows.call[at]] >= rows.end_ns[at]]
    waits[rows.call[at]] = True
    end[rows.call[at]] = np.maximum(start[rows.call[at]], rows.end_ns[at])
    # several queries between two launches of a thread are a poll: it lasts from the first to the last
    query = np.array([_QUERY.search(n) is not None for n in trace.apis], dtype=bool)
    asked = np.flatnonzero(query[calls.api]) if len(calls) else np.empty(0, dtype=np.int64)
    if len(asked):
        stretch = (np.cumsum(launches) + calls.thread * (len(calls) + 1))[asked]
        first = np.flatnonzero(np.diff(stretch, prepend=stretch[0] - 1) != 0)
        last = np.concatenate([first[1:], [len(asked)]]) - 1
        polled = last - first + 1 >= LEAST_POLLS
        waits[asked[first[polled]]] = True
        end[asked[first[polled]]] = calls.end_ns[asked[last[polled]]]
    return waits, start, end


def _captured(trace: Trace, candidates: Bool) -> Bool:
    """Return which launches without device rows lie between the begin and the end of a stream capture, on any thread."""
    calls = trace.calls
    begins = np.flatnonzero(calls.api_class == ApiClass.CAPTURE_BEGIN)
    if not len(begins):
        return np.zeros(len(calls), dtype=bool)
    ends = np.flatnonzero(calls.api_class == ApiClass.CAPTURE_END)
    # calls are sorted by thread and start: the next end behind a begin is its own, if it is of the same thread
    behind = np.searchsorted(ends, begins)
    closing = ends[np.minimum(behind, len(ends) - 1)] if len(ends) else begins
    own = (behind < len(ends)) & (calls.thread[closing] == calls.thread[begins])
    stop = np.where(own, calls.start_ns[closing], np.iinfo(np.int64).max)
    return candidates & intervals.overlaps_any(calls.start_ns, calls.start_ns, calls.start_ns[begins], stop)


def dispatch(trace: Trace, host: Launching, chosen: Bool) -> list[ThreadDispatch]:
    """Return the dispatch intervals of each launching thread: all of them, and the steady ones.

    ``dispatch_i = launch_start_i - launch_start_(i-1)`` over launches that own a device row; kernel dispatch
    is the same over kernel and graph launch calls by API name, whether or not their device record survived.
    Only intervals between two ``chosen`` calls count.
    """
    calls = trace.calls
    reasons = _interval_reasons(trace, host)
    result = []
    for thread in distinct(calls.thread[(host.owns | host.by_name) & chosen]).tolist():
        low, high = np.searchsorted(calls.thread, (thread, thread + 1)).tolist()  # calls are sorted by thread
        at = np.flatnonzero(host.owns[low:high]) + low
        named = np.flatnonzero(host.by_name[low:high]) + low
        inside = chosen[at[1:]] & chosen[at[:-1]]
        gaps = np.diff(calls.start_ns[at])[inside]
        code = reasons(at)[inside]
        steady = code < 0
        left_out = {r: c for i, r in enumerate(REASONS) if (c := int(np.count_nonzero(code == i)))}
        kernel_gaps = np.diff(calls.start_ns[named])[chosen[named[1:]] & chosen[named[:-1]]]
        result.append(
            ThreadDispatch(
                thread, int(np.count_nonzero(chosen[at])), gaps, at[1:][inside], gaps[steady], left_out,
                int(np.count_nonzero(chosen[named])), kernel_gaps,
            )
        )  # fmt: skip
    return result


class _interval_reasons:  # noqa: N801 - a function with shared precomputed columns
    def __init__(self, trace: Trace, host: Launching) -> None:
        calls = trace.calls
        self._calls = calls
        names = [trace.names[i].lower() for i in trace.overheads.name.tolist()]
        full = np.array(["command buffer full" in n for n in names], dtype=bool)
        load = np.array(["lazy" in n or "module" in n or "compil" in n for n in names], dtype=bool)
        over = trace.overheads
        self._full = (over.start_ns[full], over.end_ns[full])
        loads = calls.api_class == ApiClass.MODULE_LOAD
        self._load = (
            np.concatenate([over.start_ns[load], calls.start_ns[loads]]),
            np.concatenate([over.end_ns[load], calls.end_ns[loads]]),
        )
        rest = ~full & ~load
        self._profiler = (over.start_ns[rest], over.end_ns[rest])
        step = np.array([n.startswith("ProfilerStep#") for n in trace.names], dtype=bool)
        marks = (
            trace.ranges.start_ns[step[trace.ranges.name] & ~trace.ranges.on_device]
            if len(trace.ranges)
            else np.empty(0, np.int64)
        )
        self._steps = (marks, marks)
        self._syncs_before = np.concatenate([[0], np.cumsum(host.syncs)])
        durations = calls.end_ns - calls.start_ns
        median = stats.median(durations[host.launches])
        self._blocked = durations > BLOCKED_FACTOR * median if median else np.zeros(len(calls), dtype=bool)

    def __call__(self, at: Int64) -> Int64:
        """Return the number of the first reason each interval between successive calls has; -1 for steady ones."""
        calls = self._calls
        low, high = at[:-1], at[1:]
        start, stop = calls.start_ns[low], calls.start_ns[high]
        has_sync = self._syncs_before[high] > self._syncs_before[low]
        blocked = self._blocked[low] | intervals.overlaps_any(start, calls.end_ns[low], *self._full)
        load = intervals.overlaps_any(start, stop, *self._load)
        # the profiler's many small records touch every interval; one that fills a fifth of it sets its length
        profiler = 5 * intervals.covered_length(start, stop, *self._profiler) > stop - start
        steps = intervals.overlaps_any(start + 1, stop, *self._steps)
        masks = (has_sync, blocked & ~load & ~profiler, load, profiler, steps)
        code = np.full(len(low), -1, dtype=np.int64)
        for number in range(len(masks) - 1, -1, -1):
            code[masks[number]] = number
        return code
