"""What a pair of CUDA events around each call would have shown in this very run (docs/methodology.md, "Event reading")."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace


@record(frozen=True)
class Readings:
    """Per device row: the event reading in nanoseconds, where ``known``. It is never below the row's exclusive time.

    ``overlaps`` and ``early`` mark rows that would have a reading, but overlap the row before them on their stream
    or start before their launch call: outside of the form's domain.

    ``latency_ns`` is L of each device (by its row in ``trace.devices``): the median time from the return of the launch
    call to the start of its kernel, over starved launches; no entry when no launch was starved, and then L = 0 is used, which can only overstate
    a reading that backlog already sets to the kernel's own time. Measured from the *return* of the call, as
    docs/methodology.md does: the start record is issued by a call that returns before the launch is made.
    """

    reading_ns: Int64
    known: Bool
    latency_ns: dict[int, float]
    overlaps: Bool
    early: Bool


def submit_latency_ns(trace: Trace, found: Waits, rows: Bool) -> float | None:
    """Return the median of kernel start minus end of its launch call over the given rows; None of nothing."""
    calls, activities = trace.calls, trace.activities
    at = np.flatnonzero(rows & found.opens_call)
    return stats.median(activities.start_ns[at] - calls.end_ns[activities.call[at]]) if len(at) else None


def event_readings(trace: Trace, host: Launching, found: Waits, offset: bool = False) -> Readings:
    """Return ``reading_i = end_i - max(record_i + L, previous end)`` for rows that open a call.

    ``record_i`` is when the host would have issued the start record: the end of the thread's previous launch
    call, or of the synchronise behind it. A first row of a stream, a first launch of a thread and rows
    without a launch have no reading, nor have rows that overlap the row before them or start before their launch
    (unless the clocks are known to be ``offset``: then most do). The record lies before the kernel in its stream, so
    it is stamped no later than the kernel starts. For a graph launch the row that opens it stands for the whole
    replay, up to the end of its last row.
    """
    rows, calls = trace.activities, trace.calls
    n = len(rows)
    reading = np.zeros(n, dtype=np.int64)
    known = found.opens_call & ~found.first
    if not known.any():
        nothing = np.zeros(n, dtype=bool)
        return Readings(reading, nothing, {}, nothing, nothing)
    previous = np.full(n, NO_ROW, dtype=np.int64)
    previous[known] = host.previous[rows.call[known]]
    known &= previous != NO_ROW
    overlaps = known & (rows.start_ns < found.previous_end_ns)
    early = known & (rows.start_ns < found.launch_start_ns) & ~overlaps & (not offset)
    known &= ~overlaps & ~early
    at = np.flatnonzero(known)
    device = np.array([lane.device for lane in trace.lanes], dtype=np.int64)[rows.lane]
    latency = {
        d: found_ns
        for d in distinct(device[at]).tolist()
        if (found_ns := _latency_of(trace, found, device == d)) is not None
    }
    delay = np.array([round(latency.get(d, 0.0)) for d in range(len(trace.devices))], dtype=np.int64)[device[at]]
    call = rows.call[at]
    record = calls.end_ns[previous[at]]
    record = np.where(host.after_sync[call], np.maximum(record, host.sync_end_ns[call]), record)
    stamped = np.minimum(record + delay, rows.start_ns[at])
    begun = np.maximum(stamped, found.previous_end_ns[at])
    reading[at] = last_end_of_call(rows.call, rows.end_ns, len(calls))[call] - begun
    return Readings(reading, known, latency, overlaps, early)


def _latency_of(trace: Trace, found: Waits, mine: Bool) -> float | None:
    # a copy's call may last as long as the copy: kernels tell how long a launch takes, where there are any
    kernels = trace.activities.kind == RowKind.KERNEL
    for some in (kernels & ~found.after_sync, kernels, np.ones(len(mine), dtype=bool)):
        latency = submit_latency_ns(trace, found, found.starved & some & mine)
        if latency is not None:
            return latency
    return None


def last_end_of_call(call: Int64, end_ns: Int64, n_calls: int) -> npt.NDArray[np.int64]:
    """Return, per host call, the latest end of the rows it owns (the dtype's minimum where it owns none)."""
    last = np.full(n_calls, np.iinfo(np.int64).min, dtype=np.int64)
    linked = call != NO_ROW
    np.maximum.at(last, call[linked], end_ns[linked])
    return last
