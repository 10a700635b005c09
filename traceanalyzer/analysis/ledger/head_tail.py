"""The host's recorded time before the first and after the last device row, labelled as the ledger labels idle time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer.analysis.ledger.classes import LedgerClass
from traceanalyzer.analysis.ledger.host import NO_THREAD, HostRows, union
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace


@record(frozen=True)
class HostStretch:
    """Time of the host outside of a device's span: its length, and nanoseconds per class, which add up to it."""

    ns: int
    classes: dict[LedgerClass, int]


NO_STRETCH = HostStretch(0, {})
_NEVER = 1 << 62


def margins(
    trace: Trace, host: HostRows, devices: list[Int64], recorded: list[tuple[int | None, int | None]]
) -> list[tuple[HostStretch, HostStretch]]:
    """Return of each device, given by its rows in order of start, the host's time before its first row and after its last.

    ``recorded`` has the first start and last end of the host rows of the processes that launched them. The time after the last
    row is that of the thread which launched it.
    """
    stretches: list[tuple[int, int, int]] = []
    found: list[dict[LedgerClass, int]] = []
    for ordered, (since, until) in zip(devices, recorded, strict=True):
        for (start, end, thread), known in (_head(trace, host, ordered, since), _tail(trace, ordered, until)):
            stretches.append((start, end, thread))
            found.append(known)
    made = []
    for known, labelled in zip(found, _labelled(host, stretches), strict=True):
        for cls, ns in labelled.items():
            known[cls] = known.get(cls, 0) + ns
        order = sorted(known.items(), key=lambda item: (-item[1], item[0]))
        made.append(HostStretch(sum(known.values()), {c: v for c, v in order if v}))
    return list(zip(made[::2], made[1::2], strict=True))


_NO_TIME = (0, 0, NO_THREAD)


def _head(
    trace: Trace, host: HostRows, ordered: Int64, since: int | None
) -> tuple[tuple[int, int, int], dict[LedgerClass, int]]:
    """Return the stretch to label before the first row, and what of the time is known without: its call, and its latency."""
    rows, calls = trace.activities, trace.calls
    stop = int(rows.start_ns[ordered[0]])
    if since is None or since >= stop:
        return _NO_TIME, {}
    call = int(rows.call[ordered[0]])
    if call == NO_ROW:
        return _NO_TIME, {LedgerClass.UNLINKED: stop - since}
    called, returned = (min(max(int(t), since), stop) for t in (calls.start_ns[call], calls.end_ns[call]))
    own = LedgerClass(int(host.class_of_api[calls.api[call]]))
    own = own if own is LedgerClass.COPY_CALL else LedgerClass.LAUNCH_CALL
    known = {own: returned - called, LedgerClass.LAUNCH_LATENCY: stop - returned}
    return (since, called, int(calls.thread[call])), known


def _tail(trace: Trace, ordered: Int64, until: int | None) -> tuple[tuple[int, int, int], dict[LedgerClass, int]]:
    rows = trace.activities
    last = ordered[int(np.argmax(rows.end_ns[ordered]))]
    start = int(rows.end_ns[last])
    if until is None or until <= start:
        return _NO_TIME, {}
    call = int(rows.call[last])
    return (start, until, int(trace.calls.thread[call]) if call != NO_ROW else NO_THREAD), {}


def _labelled(host: HostRows, stretches: list[tuple[int, int, int]]) -> list[dict[LedgerClass, int]]:
    """Return nanoseconds per class of each stretch (start, end, thread).

    Stretches of one thread overlap where it launches on many devices: what they cover together is labelled once, and read by sums.
    """
    found: list[dict[LedgerClass, int]] = [{} for _ in stretches]
    start, end, thread = np.array(stretches, dtype=np.int64).reshape(-1, 3).T
    asked = np.flatnonzero(end > start)
    if not len(asked):
        return found
    parts = []
    for t in distinct(thread[asked]).tolist():
        mine = asked[thread[asked] == t]
        mine = mine[np.argsort(start[mine], kind="stable")]
        low, high = union(start[mine], end[mine])
        parts.append((low, high, np.full(len(low), t, dtype=np.int64)))
    low, high, of_thread = (np.concatenate([p[i] for p in parts]) for i in range(3))
    labels = host.labels(low, high, of_thread, of_thread)
    order = np.lexsort((labels.start, of_thread[labels.of]))
    piece_thread = of_thread[labels.of][order]
    begin, stop, cls = labels.start[order], labels.end[order], labels.cls[order]
    for t in distinct(thread[asked]).tolist():
        mine = asked[thread[asked] == t]
        one, last = np.searchsorted(piece_thread, (t, t + 1)).tolist()
        for c in distinct(cls[one:last]).tolist():
            of_class = np.flatnonzero(cls[one:last] == c) + one
            until = _time_until(begin[of_class], stop[of_class])
            for place, ns in zip(mine.tolist(), (until(end[mine]) - until(start[mine])).tolist(), strict=True):
                if ns:
                    found[place][LedgerClass(c)] = ns
    return found


def _time_until(start: Int64, end: Int64) -> Callable[[Int64], Int64]:
    """Return what gives how much of disjoint intervals, in order, lies before each of some instants."""
    total = np.concatenate([[0], np.cumsum(end - start)])

    def until(at: Int64) -> Int64:
        which = np.searchsorted(start, at, side="right") - 1
        held = np.maximum(which, 0)
        return np.asarray(np.where(which >= 0, total[held] + np.minimum(at, end[held]) - start[held], 0))

    return until


class RecordedTimes:
    """First start and last end of the host rows of each process."""

    def __init__(self, trace: Trace, process_of: Int64) -> None:
        self._trace = trace
        self._process_of = process_of
        many = int(process_of.max()) + 1 if len(process_of) else 0
        self._first = np.full(many, _NEVER, dtype=np.int64)
        self._last = np.full(many, -_NEVER, dtype=np.int64)
        for table in (trace.calls, trace.host_ops, trace.ranges.take(~trace.ranges.on_device)):
            if len(table):
                process = process_of[table.thread]
                np.minimum.at(self._first, process, table.start_ns)
                np.maximum.at(self._last, process, table.end_ns)
        self._frames: dict[int, tuple[int, int] | None] = {}

    def of(self, processes: Int64) -> tuple[int | None, int | None]:
        """Return the first start and last end of the rows of some processes; None where they have no rows."""
        known = [p for p in processes.tolist() if self._last[p] > -_NEVER]
        starts, ends = [int(self._first[p]) for p in known], [int(self._last[p]) for p in known]
        for p in processes.tolist() if len(self._trace.python) else []:
            if p not in self._frames:
                self._frames[p] = self._trace.python.extent(self._process_of == p)
            if (extent := self._frames[p]) is not None:
                starts.append(extent[0])
                ends.append(extent[1])
        return min(starts, default=None), max(ends, default=None)
