"""The host side: which calls launch, what lies between two launches of a thread, and how long that took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import intervals, stats
from traceanalyzer.trace.launch_names import LAUNCHES, SYNCS, ApiClass
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace

BLOCKED_FACTOR = 5
"""A launch call five times the median call is blocked: the queue was full (docs/methodology.md)."""

REASONS = (
    "after a synchronise",
    "launch call over 5x the median",
    "module load",
    "profiler overhead",
    "iteration start",
)
"""Why an interval is left out of the steady dispatch, in order of precedence."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
    )


def _captured(trace: Trace, candidates: Bool) -> Bool:
    """Return which launches without device rows lie between the begin and the end of a stream capture."""
    calls = trace.calls
    result = np.zeros(len(calls), dtype=bool)
    begins = calls.take(np.flatnonzero(calls.api_class == ApiClass.CAPTURE_BEGIN))
    ends = calls.take(np.flatnonzero(calls.api_class == ApiClass.CAPTURE_END))
    for start, thread in zip(begins.start_ns.tolist(), begins.thread.tolist(), strict=True):
        closing = ends.start_ns[(ends.thread == thread) & (ends.start_ns >= start)]
        stop = int(closing.min()) if len(closing) else np.iinfo(np.int64).max
        result |= candidates & (calls.start_ns >= start) & (calls.start_ns <= stop)
    return result


def dispatch(trace: Trace, host: Launching, chosen: Bool) -> list[ThreadDispatch]:
    """Return the dispatch intervals of each launching thread: all of them, and the steady ones.

    ``dispatch_i = launch_start_i - launch_start_(i-1)`` over launches that own a device row; kernel dispatch
    is the same over kernel and graph launch calls by API name, whether or not their device record survived.
    Only intervals between two ``chosen`` calls count.
    """
    calls = trace.calls
    reasons = _interval_reasons(trace, host)
    result = []
    for thread in np.unique(calls.thread[(host.owns | host.by_name) & chosen]).tolist():
        mine = calls.thread == thread
        at = np.flatnonzero(mine & host.owns)
        named = np.flatnonzero(mine & host.by_name)
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
        self._syncs = host.syncs
        durations = calls.end_ns - calls.start_ns
        median = stats.median(durations[host.launches])
        self._blocked = durations > BLOCKED_FACTOR * median if median else np.zeros(len(calls), dtype=bool)

    def __call__(self, at: Int64) -> Int64:
        """Return the number of the first reason each interval between successive calls has; -1 for steady ones."""
        calls = self._calls
        low, high = at[:-1], at[1:]
        start, stop = calls.start_ns[low], calls.start_ns[high]
        count = np.concatenate([[0], np.cumsum(self._syncs)])
        has_sync = count[high] > count[low]
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
