"""The host's recorded time before the first and after the last device row, labelled as the ledger labels idle time."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.ledger.classes import LedgerClass
from traceanalyzer.analysis.ledger.host import NO_THREAD, HostRows
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int8, Int64, Trace


@record(frozen=True)
class HostStretch:
    """Time of the host outside of a device's span: its length, and nanoseconds per class, which add up to it."""

    ns: int
    classes: dict[LedgerClass, int]


NO_STRETCH = HostStretch(0, {})


def before_first(trace: Trace, host: HostRows, ordered: Int64, since: int | None) -> HostStretch:
    """Return the host's time from ``since`` to the first of the device rows (in order of start)."""
    rows, calls = trace.activities, trace.calls
    stop = int(rows.start_ns[ordered[0]])
    if since is None or since >= stop:
        return NO_STRETCH
    call = int(rows.call[ordered[0]])
    if call == NO_ROW:
        return HostStretch(stop - since, {LedgerClass.UNLINKED: stop - since})
    called, returned = (min(max(int(t), since), stop) for t in (calls.start_ns[call], calls.end_ns[call]))
    found = _labelled(host, since, called, int(calls.thread[call]))
    own = LedgerClass(int(host.class_of_api[calls.api[call]]))
    own = own if own is LedgerClass.COPY_CALL else LedgerClass.LAUNCH_CALL
    for cls, ns in ((own, returned - called), (LedgerClass.LAUNCH_LATENCY, stop - returned)):
        if ns:
            found[cls] = found.get(cls, 0) + ns
    return HostStretch(stop - since, found)


def after_last(trace: Trace, host: HostRows, ordered: Int64, until: int | None) -> HostStretch:
    """Return the host's time from the end of the last of the device rows to ``until``, by the thread that launched it."""
    rows = trace.activities
    last = ordered[int(np.argmax(rows.end_ns[ordered]))]
    start = int(rows.end_ns[last])
    if until is None or until <= start:
        return NO_STRETCH
    call = int(rows.call[last])
    thread = int(trace.calls.thread[call]) if call != NO_ROW else NO_THREAD
    return HostStretch(until - start, _labelled(host, start, until, thread))


def _labelled(host: HostRows, start: int, end: int, thread: int) -> dict[LedgerClass, int]:
    if end <= start:
        return {}
    one = np.array([thread], dtype=np.int64)
    found = host.labels(np.array([start], dtype=np.int64), np.array([end], dtype=np.int64), one, one)
    return class_totals(found.cls, found.end - found.start)


def class_totals(cls: Int8, ns: Int64) -> dict[LedgerClass, int]:
    """Return nanoseconds per class, largest first."""
    sums = {LedgerClass(int(c)): int(ns[cls == c].sum()) for c in distinct(cls)}
    return {c: v for c, v in sorted(sums.items(), key=lambda item: (-item[1], item[0])) if v}


def recorded(trace: Trace, process_of: Int64, processes: Int64) -> tuple[int | None, int | None]:
    """Return the first start and last end of the host rows of some processes; None where they have no rows."""
    starts, ends = [], []
    mine = np.isin(process_of, processes)
    for table in (trace.calls, trace.host_ops, trace.ranges.take(~trace.ranges.on_device)):
        keep = mine[table.thread] if len(table) else np.empty(0, dtype=bool)
        if keep.any():
            starts.append(int(table.start_ns[keep].min()))
            ends.append(int(table.end_ns[keep].max()))
    if (extent := trace.python.extent(mine)) is not None:
        starts.append(extent[0])
        ends.append(extent[1])
    return min(starts, default=None), max(ends, default=None)
