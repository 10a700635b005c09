"""The device side: gaps per stream, what the device waited for in each, and which launches met an empty stream."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace


@record(frozen=True)
class Waits:
    """Per device row (rows of ``trace.activities``), in nanoseconds; formulas in docs/methodology.md, "Per stream".

    Attributes:
        first: first row of its stream; it has no gap.
        previous_end_ns: latest end of the rows before it on its stream.
        gap_ns: idle time of the stream before it.
        linked: it has a launch call.
        opens_call: it is the first row its call owns.
        launch_start_ns: start of its launch call (0 where unlinked).
        host_wait_ns, launch_wait_ns: the two parts of the gap of a linked row; they add up to it.
        sync_wait_ns: the part of host_wait in or directly behind a synchronise.
        starved: the stream was idle when the host called; never true of a first row.
        after_sync: its launch call follows a synchronise directly.
        exclusive_ns: what it adds to its predecessors' busy time on the stream: end - max(start, previous end), never
            below 0. It differs from self-time where rows overlap (dependent launch).
    """

    first: Bool
    previous_end_ns: Int64
    gap_ns: Int64
    linked: Bool
    opens_call: Bool
    launch_start_ns: Int64
    host_wait_ns: Int64
    launch_wait_ns: Int64
    sync_wait_ns: Int64
    starved: Bool
    after_sync: Bool
    exclusive_ns: Int64


@record(frozen=True)
class StreamFacts:
    """One stream: gaps over all rows, gaps over its kernels alone, and the overlap of neighbours (ns).

    ``depth`` is the queue depth at each launch.
    """

    lane: int
    activities: int
    busy_ns: int
    gaps_ns: Int64
    kernel_gaps_ns: Int64
    overlap_ns: Int64
    starved: int
    host_wait_ns: int
    launch_wait_ns: int
    sync_wait_ns: int
    unattributed_ns: int
    depth: Int64


def waits(trace: Trace, host: Launching) -> Waits:
    """Return gap, waits and starvation of every device row."""
    rows, calls = trace.activities, trace.calls
    n = len(rows)
    first = np.ones(n, dtype=bool)
    first[1:] = rows.lane[1:] != rows.lane[:-1]
    previous = np.zeros(n, dtype=np.int64)
    for low, high in _lanes(first):
        previous[low:high] = intervals.previous_end(rows.end_ns[low:high])
    linked = rows.call != NO_ROW
    opens = _opens_call(rows.call, rows.start_ns)
    gap = np.where(first, 0, np.maximum(0, rows.start_ns - previous))
    launch_start = np.zeros(n, dtype=np.int64)
    after_sync = np.zeros(n, dtype=bool)
    sync_start = np.zeros(n, dtype=np.int64)
    if len(calls):
        launch_start[linked] = calls.start_ns[rows.call[linked]]
        after_sync[linked] = host.after_sync[rows.call[linked]]
        sync_start[linked] = host.sync_start_ns[rows.call[linked]]
    usable = linked & ~first
    until = np.minimum(launch_start, rows.start_ns)
    host_wait = np.where(usable, np.maximum(0, until - previous), 0)
    launch_wait = np.where(usable, gap - host_wait, 0)
    sync_wait = np.where(usable & after_sync, np.maximum(0, until - np.maximum(previous, sync_start)), 0)
    starved = usable & (launch_start >= previous)
    return Waits(
        first, previous, gap, linked, opens, launch_start, host_wait, launch_wait, np.minimum(sync_wait, host_wait),
        starved, after_sync, np.maximum(0, rows.end_ns - np.where(first, rows.start_ns, np.maximum(rows.start_ns, previous))),
    )  # fmt: skip


def _lanes(first: Bool) -> list[tuple[int, int]]:
    at = np.flatnonzero(first).tolist()
    if not at:
        return []
    return list(zip(at, [*at[1:], len(first)], strict=True))


def _opens_call(call: Int64, start: Int64) -> Bool:
    """Return which row of each call starts first: a graph launch has one latency, not one per node."""
    opens = np.zeros(len(call), dtype=bool)
    linked = np.flatnonzero(call != NO_ROW)
    order = linked[np.lexsort((linked, start[linked], call[linked]))]
    if len(order):
        head = np.concatenate([[True], call[order[1:]] != call[order[:-1]]])
        opens[order[head]] = True
    return opens


def stream_facts(trace: Trace, found: Waits, depth: Int64, chosen: Bool) -> list[StreamFacts]:
    """Return one summary per stream with a chosen row, in lane order.

    Gaps are those before chosen rows, measured on the whole stream: a row left out is not idle time.
    """
    rows = trace.activities
    result = []
    for low, high in _lanes(found.first):
        part = np.flatnonzero(chosen[low:high]) + low
        if not len(part):
            continue
        kernels = np.flatnonzero(rows.kind[low:high] == RowKind.KERNEL) + low
        kernel_previous = intervals.previous_end(rows.end_ns[kernels])
        kernel_gaps = np.maximum(0, rows.start_ns[kernels] - kernel_previous)[1:][chosen[kernels[1:]]]
        later = part[~found.first[part]]
        behind = np.maximum(0, found.previous_end_ns[later] - rows.start_ns[later])
        overlap = np.minimum(behind, rows.dur_ns[later])
        own_gaps = found.gap_ns[part]
        opens = part[found.opens_call[part]]
        result.append(
            StreamFacts(
                lane=int(rows.lane[low]),
                activities=len(part),
                busy_ns=intervals.length(*intervals.union(rows.start_ns[part], rows.end_ns[part])),
                gaps_ns=found.gap_ns[later],
                kernel_gaps_ns=kernel_gaps,
                overlap_ns=overlap[overlap > 0],
                starved=int(np.count_nonzero(found.starved[part])),
                host_wait_ns=int(found.host_wait_ns[part].sum()),
                launch_wait_ns=int(found.launch_wait_ns[part].sum()),
                sync_wait_ns=int(found.sync_wait_ns[part].sum()),
                unattributed_ns=int(own_gaps[~found.linked[part]].sum()),
                depth=depth[opens],
            )
        )
    return result


def depth_at_launch(trace: Trace, found: Waits) -> Int64:
    """Return, per device row that opens a call, how many rows of its stream were launched earlier and not finished.

    Rows that open no call have 0. Never negative: where clocks disagree a row may seem to end before it was
    launched, and counts as finished.
    """
    rows = trace.activities
    depth = np.zeros(len(rows), dtype=np.int64)
    for low, high in _lanes(found.first):
        part = slice(low, high)
        linked = found.linked[part]
        launched = np.sort(found.launch_start_ns[part][linked])
        ended = np.sort(np.maximum(rows.end_ns[part][linked], found.launch_start_ns[part][linked]))
        when = found.launch_start_ns[part]
        waiting = np.searchsorted(launched, when, side="left") - np.searchsorted(ended, when, side="right")
        depth[part] = np.where(linked & found.opens_call[part], np.maximum(0, waiting), 0)
    return depth
