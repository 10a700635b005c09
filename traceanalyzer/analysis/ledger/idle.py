"""Idle intervals of a device, the row and the call that end each, and why the device had run dry."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.ledger.classes import DrainedBy, LedgerClass
from traceanalyzer.analysis.ledger.host import HostRows
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int8, Int64, Trace

FEW_SAMPLES = 20
LATENCY_FLOOR_NS = 20_000
LATENCY_CEILING_NS = 100_000


@record(frozen=True)
class IdleIntervals:
    """Idle intervals ``[start, end)`` of one device in order of time.

    Attributes:
        start, end: in nanoseconds.
        row: device row that ends the interval (rows of ``trace.activities``).
        call: its launch call, NO_ROW where the trace has none.
        call_start, call_end: times of that call; both ``end`` where there is none.
        thread: thread of that call, -1 without one.
        before: device row with the largest end before the interval.
        before_thread: thread that launched it, -1 without a launch.
        drained: why the device had run dry (codes of DrainedBy).
        waited_in: the call that was open where ``drained`` is WAIT, else NO_ROW.
    """

    start: Int64
    end: Int64
    row: Int64
    call: Int64
    call_start: Int64
    call_end: Int64
    thread: Int64
    before: Int64
    before_thread: Int64
    drained: Int8
    waited_in: Int64

    def __len__(self) -> int:
        return len(self.start)


def idle_intervals(trace: Trace, host: HostRows, ordered: Int64) -> IdleIntervals:
    """Return the idle intervals between device rows, given in order of (start, end)."""
    rows, calls = trace.activities, trace.calls
    start, end = rows.start_ns[ordered], rows.end_ns[ordered]
    reach = np.maximum.accumulate(end)
    # the row with the largest end so far, the later of equals
    latest = np.maximum.accumulate(np.where(end >= reach, np.arange(len(end)), 0))
    at = np.flatnonzero(start[1:] > reach[:-1]) + 1
    row, before = ordered[at], ordered[latest[at - 1]]
    a, b = reach[at - 1], start[at]
    call, call_before = rows.call[row], rows.call[before]
    linked, linked_before = call != NO_ROW, call_before != NO_ROW
    call_start, call_end = b.copy(), b.copy()
    thread = np.full(len(at), -1, dtype=np.int64)
    before_thread = np.full(len(at), -1, dtype=np.int64)
    if len(calls):
        call_start[linked], call_end[linked] = calls.start_ns[call[linked]], calls.end_ns[call[linked]]
        thread[linked] = calls.thread[call[linked]]
        before_thread[linked_before] = calls.thread[call_before[linked_before]]
    drained = np.full(len(at), DrainedBy.LATE, dtype=np.int8)
    process = host.process_of_thread
    waited_in = _open_waits(host, a, np.where(linked, process[thread] if len(process) else -1, -1))
    drained[waited_in != NO_ROW] = DrainedBy.WAIT
    drained[call_start < a] = DrainedBy.DEVICE
    drained[~linked] = DrainedBy.UNLINKED
    waited_in[drained != DrainedBy.WAIT] = NO_ROW
    return IdleIntervals(a, b, row, call, call_start, call_end, thread, before, before_thread, drained, waited_in)


def _open_waits(host: HostRows, at: Int64, process: Int64) -> Int64:
    """Return the synchronise or copy call of a process that began before an instant and was open at it."""
    found = np.full(len(at), NO_ROW, dtype=np.int64)
    for p in distinct(process[process >= 0]).tolist():
        waits = host.waits_of.get(p)
        if waits is None:
            continue
        here = np.flatnonzero(process == p)
        last = np.searchsorted(waits.start, at[here], side="left") - 1
        is_open = (last >= 0) & (waits.reach[np.maximum(last, 0)] > at[here])
        found[here[is_open]] = waits.latest[last[is_open]]
    return found


def latency_limit_ns(idle: IdleIntervals) -> int:
    """Return how long a call may take to reach the device before something else held the device back.

    A sample is the time from the return of the call to the start of its row, of each idle interval in which the call
    returned.
    """
    returned = (idle.call != NO_ROW) & (idle.call_end > idle.start) & (idle.call_end < idle.end)
    samples = np.sort((idle.end - idle.call_end)[returned])
    if len(samples) < FEW_SAMPLES:
        return LATENCY_FLOOR_NS
    return int(min(LATENCY_CEILING_NS, max(LATENCY_FLOOR_NS, 4 * int(samples[len(samples) // 2]))))


def unrecorded_launches(trace: Trace, host: HostRows) -> tuple[Int64, Int64, Int64]:
    """Return start, end and row of launch calls whose work the file does not hold, in order of start.

    Calls recorded into a graph run nothing and are none; so is a driver call inside the runtime call that owns the row.
    """
    calls = trace.calls
    if not len(calls):
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    empty = (host.class_of_api[calls.api] == LedgerClass.LAUNCH_CALL) & (calls.n_activities == 0)
    at = np.flatnonzero(empty)
    at = at[~_shares_id_with_owner(trace, at, host.process_of_thread)]
    at = at[~host.captured(calls.thread[at].astype(np.int64), calls.start_ns[at])]
    at = at[np.argsort(calls.start_ns[at], kind="stable")]
    return calls.start_ns[at], calls.end_ns[at], at


def _shares_id_with_owner(trace: Trace, at: Int64, process: Int64) -> Bool:
    calls = trace.calls
    owners = np.flatnonzero(calls.n_activities > 0)
    both = np.concatenate([at, owners])
    ids = np.unique(calls.corr[both], return_inverse=True)[1].reshape(-1)
    key = process[calls.thread[both]] * (len(both) + 1) + ids
    return np.asarray((calls.corr[at] >= 0) & np.isin(key[: len(at)], key[len(at) :]))
