"""What a host thread was doing at each instant: the label of the ledger, by the innermost row that says something.

Layers in order of precedence: the profiler's own work, graph capture, data loading, compilation, runtime and driver
calls, operators, Python frames. Only rows that touch an asked interval are sorted and swept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceanalyzer.analysis.ledger import classes
from traceanalyzer.analysis.ledger.classes import LedgerClass, api_class
from traceanalyzer.analysis.ledger.lines import is_users
from traceanalyzer.analysis.ledger.sweep import NOTHING, Layer, Pieces, cut, innermost, outermost, overlapping
from traceanalyzer.record import record
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool, Int8, Int32, Int64, Trace

_SPECIAL = ("", "graph capture", classes.DATA_LOADER)
NO_NAME, CAPTURE_NAME, LOADER_NAME = range(3)
NO_THREAD = -1


class HostNames:
    """Numbers of all names a label can have; ``text`` gives one back."""

    def __init__(self, trace: Trace) -> None:
        self._tables = (list(_SPECIAL), trace.names, trace.apis, trace.python.names)
        sizes = [len(t) for t in self._tables]
        self.rows = sizes[0]
        """Number of the first of ``trace.names``."""
        self.apis = self.rows + sizes[1]
        """Number of the first of ``trace.apis``."""
        self.frames = self.apis + sizes[2]
        """Number of the first name of a Python frame."""

    def text(self, number: int) -> str:
        """Return the name of a number."""
        for table in self._tables:
            if number < len(table):
                return table[number]
            number -= len(table)
        raise IndexError(number)


class Labels(NamedTuple):
    """Labelled parts of the asked intervals, in no order: ``of`` numbers the interval, ``cls`` and ``name`` label it."""

    start: Int64
    end: Int64
    of: Int64
    cls: Int8
    name: Int64
    within: Int64


@record(frozen=True)
class _Rows:
    """Host rows of one kind with their thread (NO_THREAD: of every thread) and the label each gives."""

    start: Int64
    end: Int64
    thread: Int32 | Int64
    cls: Int8
    name: Int32 | Int64

    def take(self, mask: Bool | Int64) -> _Rows:
        return _Rows(self.start[mask], self.end[mask], self.thread[mask], self.cls[mask], self.name[mask])


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("start", "end", "thread", "cls", "name")))


def process_of_thread(trace: Trace) -> Int64:
    """Return a number for the process of each thread."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(t.process, len(number)) for t in trace.threads], dtype=np.int64)


@record(frozen=True)
class WaitingCalls:
    """Calls of a process in which the host waits, in order of start: the latest end so far, and the call that has it (the later of equals)."""

    start: Int64
    reach: Int64
    latest: Int64


class HostRows:
    """The host rows of a trace as layers of labels; made once and asked for each device."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.names = HostNames(trace)
        apis = trace.apis
        self.class_of_api = np.array([api_class(a) for a in apis] or [LedgerClass.OTHER_CALL], dtype=np.int8)
        self._api_is_overhead = np.array([a in classes.OVERHEAD_NAMES for a in apis] or [False], dtype=bool)

    def _by_name(self, test: Callable[[str], bool]) -> Bool:
        return np.array([test(n) for n in self._trace.names] or [False], dtype=bool)

    @cached_property
    def _named(self) -> list[_Rows]:
        """Operators and host ranges."""
        trace = self._trace
        host = ~trace.ranges.on_device
        result = []
        for table in (trace.host_ops, trace.ranges.take(host)):
            n = len(table)
            result.append(
                _Rows(
                    table.start_ns, table.end_ns, table.thread,
                    np.full(n, LedgerClass.HOST_OP, dtype=np.int8), table.name,
                )
            )  # fmt: skip
        return result

    @cached_property
    def process_of_thread(self) -> Int64:
        """A number for the process of each thread."""
        return process_of_thread(self._trace)

    @cached_property
    def waits_of(self) -> dict[int, WaitingCalls]:
        """The synchronise and copy calls of each process that has any."""
        calls = self._trace.calls
        if not len(calls):
            return {}
        cls = self.class_of_api[calls.api]
        at = np.flatnonzero((cls == LedgerClass.SYNCHRONISE) | (cls == LedgerClass.COPY_CALL))
        process = self.process_of_thread[calls.thread[at]]
        order = np.lexsort((calls.start_ns[at], process))
        at, process = at[order], process[order]
        cuts = np.flatnonzero(np.diff(process)) + 1
        found = {}
        for mine in np.split(np.arange(len(at)), cuts) if len(at) else []:
            rows, end = at[mine], calls.end_ns[at[mine]]
            reach = np.maximum.accumulate(end)
            latest = np.maximum.accumulate(np.where(end >= reach, np.arange(len(end)), 0))
            found[int(process[mine[0]])] = WaitingCalls(calls.start_ns[rows], reach, rows[latest])
        return found

    @cached_property
    def overheads(self) -> Layer:
        """The profiler's own work on the axis of time alone; it holds every thread."""
        trace = self._trace
        over, calls = trace.overheads, trace.calls
        mine = self._api_is_overhead[calls.api] if len(calls) else np.empty(0, dtype=bool)
        is_name = self._by_name(lambda n: n in classes.OVERHEAD_NAMES)
        parts = [(over.start_ns, over.end_ns, over.name.astype(np.int64) + self.names.rows)]
        parts.append((calls.start_ns[mine], calls.end_ns[mine], calls.api[mine].astype(np.int64) + self.names.apis))
        for rows in self._named:
            at = is_name[rows.name] if len(rows.name) else np.empty(0, dtype=bool)
            parts.append((rows.start[at], rows.end[at], rows.name[at].astype(np.int64) + self.names.rows))
        start, end, name = (np.concatenate([p[i] for p in parts]) for i in range(3))
        return innermost(start, end, name)

    def overhead_class(self, name: Int64) -> Int8:
        """Return CODE_LOAD for overhead rows that load functions or modules, PROFILER for the others."""
        known = {n: "oading" in self.names.text(n) for n in distinct(name).tolist()}
        load = np.array([known[n] for n in name.tolist()], dtype=bool)
        return np.where(load, LedgerClass.CODE_LOAD, LedgerClass.PROFILER).astype(np.int8)

    @cached_property
    def _captures(self) -> _Rows:
        calls = self._trace.calls
        begins = np.flatnonzero(calls.api_class == ApiClass.CAPTURE_BEGIN)
        ends = np.flatnonzero(calls.api_class == ApiClass.CAPTURE_END)
        # calls are sorted by thread and start: the next end of the same thread closes a capture
        after = np.searchsorted(ends, begins)
        usable = after < len(ends)
        begins, closing = begins[usable], ends[after[usable]]
        same = calls.thread[begins] == calls.thread[closing]
        begins, closing = begins[same], closing[same]
        n = len(begins)
        return _Rows(
            calls.start_ns[begins], calls.end_ns[closing], calls.thread[begins].astype(np.int64),
            np.full(n, LedgerClass.GRAPH_SETUP, dtype=np.int8), np.full(n, CAPTURE_NAME, dtype=np.int64),
        )  # fmt: skip

    def captured(self, thread: Int64, at: Int64) -> Bool:
        """Return which of the instants lie under graph capture on their thread."""
        result = np.zeros(len(at), dtype=bool)
        rows = self._captures
        for t in distinct(rows.thread).tolist():
            mine = thread == t
            layer = outermost(*(v[rows.thread == t] for v in (rows.start, rows.end, rows.thread)))
            result[mine] = overlapping(at[mine], at[mine] + 1, layer.start, layer.end)
        return result

    @cached_property
    def _loaders(self) -> _Rows:
        test = self._by_name(lambda n: n.startswith(classes.DATA_LOADER))
        return _joined([
            _Rows(r.start, r.end, r.thread, np.full(len(r.start), LedgerClass.DATA_LOADING, dtype=np.int8), np.full(len(r.start), LOADER_NAME))
            for r in (rows.take(test[rows.name]) for rows in self._named)
        ])  # fmt: skip

    @cached_property
    def _compilers(self) -> _Rows:
        test = self._by_name(classes.is_compiler)
        return _joined([
            _Rows(r.start, r.end, r.thread, np.full(len(r.start), LedgerClass.COMPILE, dtype=np.int8), r.name + self.names.rows)
            for r in (rows.take(test[rows.name]) for rows in self._named)
        ])  # fmt: skip

    @cached_property
    def _calls(self) -> _Rows:
        calls = self._trace.calls
        rows = _Rows(
            calls.start_ns, calls.end_ns, calls.thread, self.class_of_api[calls.api],
            calls.api + self.names.apis,
        )  # fmt: skip
        return rows.take(~self._api_is_overhead[calls.api]) if self._api_is_overhead.any() and len(calls) else rows

    @cached_property
    def _operators(self) -> tuple[_Rows, _Rows]:
        """Operators that say what is done, and those that only wrap."""
        rows = self._named[0]
        wraps = self._by_name(classes.is_wrapper)
        is_wrapper = wraps[rows.name] if len(rows.name) else np.empty(0, dtype=bool)
        named = _Rows(rows.start, rows.end, rows.thread, rows.cls, rows.name + self.names.rows)
        # rows are sorted by start, the longer first; of rows with the same times the order tells the outer: the operator
        # that takes longest elsewhere holds the others
        same = (rows.start[1:] == rows.start[:-1]) & (rows.end[1:] == rows.end[:-1])
        if same.any():
            longest = np.zeros(len(self._trace.names) or 1, dtype=np.int64)
            np.maximum.at(longest, rows.name, rows.end - rows.start)
            tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
            order = np.arange(len(rows.start))
            order[tied] = tied[np.lexsort((-longest[rows.name[tied]], -rows.end[tied], rows.start[tied]))]
            named, is_wrapper = named.take(order), is_wrapper[order]
        return (
            (named.take(~is_wrapper), named.take(is_wrapper)) if is_wrapper.any() else (named, named.take(is_wrapper))
        )

    def _frames(self, asked: _Asked, of_names: Bool | None = None) -> _Rows:
        """Return the Python frames, of some names only, that touch what is asked."""
        order = np.argsort(asked.start, kind="stable")
        frames = self._trace.python.touching(*union(asked.start[order], asked.end[order]), of_names)
        return _Rows(
            frames.start_ns, frames.end_ns, frames.thread,
            np.full(len(frames), LedgerClass.PYTHON, dtype=np.int8), frames.name + self.names.frames,
        )  # fmt: skip

    @cached_property
    def _ranges(self) -> _Rows:
        """Host ranges of any kind: a thread inside one is at work, though no row says at what."""
        rows = self._named[1]
        n = len(rows.start)
        return _Rows(
            rows.start, rows.end, rows.thread, np.full(n, LedgerClass.BETWEEN_OPS, dtype=np.int8), np.full(n, NO_NAME, dtype=np.int64),
        )  # fmt: skip

    @cached_property
    def _user_ranges(self) -> _Rows:
        rows = self._named[1]
        mine = self._by_name(classes.is_user_range)
        rows = rows.take(mine[rows.name]) if len(rows.name) else rows
        return _Rows(rows.start, rows.end, rows.thread, rows.cls, rows.name + self.names.rows)

    def users_lines(self, start: Int64, end: Int64, thread: Int64) -> Pieces:
        """Return the parts of intervals that frames of the user's own code hold; ``row`` is the number of the frame's name.

        Where the thread has none (one of autograd's), those of the thread that has most of them: it waits for the other.
        """
        none = np.empty(0, dtype=np.int64)
        if not len(start) or not len(self._trace.python):
            return Pieces(none, none, none, none)
        mine = np.array([is_users(n) for n in self._trace.python.names] or [False], dtype=bool)
        asked = _Asked(start, end, np.arange(len(start)))
        users = self._frames(asked, mine)
        if not len(users.start):
            return Pieces(none, none, none, none)
        held, rest = _held(asked, thread, users, innermost)
        busiest = int(np.argmax(self._trace.python.per_thread(mine)))
        rest = rest.take((thread[rest.of] >= 0) & (thread[rest.of] != busiest))
        later, _ = _held(rest, np.full(len(rest.of), busiest, dtype=np.int64), users, innermost)
        every = _joined_pieces([held, later])
        return Pieces(every.start, every.end, every.of, users.name[every.row].astype(np.int64))

    def labels(self, start: Int64, end: Int64, thread: Int64, other: Int64) -> Labels:
        """Return what each thread did in its interval; where it has no row, what the ``other`` thread did.

        An interval may name NO_THREAD for either. What no row labels is BETWEEN_OPS.
        """
        asked = _Asked(start, end, np.arange(len(start)))
        found: list[tuple[Pieces, Int8, Int64]] = []
        held, rest = cut(asked.start, asked.end, self.overheads)
        found.append((held, self.overhead_class(held.row), held.row))
        asked = asked.within(rest)
        asked = self._of_threads(asked, thread, found)
        # what a thread leaves it leaves a second time
        elsewhere = thread[asked.of] != other[asked.of]
        for last in (asked.take(~elsewhere), self._of_threads(asked.take(elsewhere), other, found)):
            n = len(last.of)
            left = Pieces(last.start, last.end, last.of, np.full(n, NOTHING, dtype=np.int64))
            found.append(
                (left, np.full(n, LedgerClass.BETWEEN_OPS, dtype=np.int8), np.full(n, NO_NAME, dtype=np.int64))
            )
        pieces = _joined_pieces([p for p, _, _ in found])
        cls, name = np.concatenate([c for _, c, _ in found]), np.concatenate([m for _, _, m in found])
        return self._with_ranges(pieces, cls, name, thread, other)

    def _of_threads(self, asked: _Asked, threads: Int64, found: list[tuple[Pieces, Int8, Int64]]) -> _Asked:
        outer, wrappers = self._operators
        layers: tuple[tuple[_Rows | None, Callable[[Int64, Int64, Int64], Layer]], ...] = (
            (self._captures, outermost), (self._loaders, outermost), (self._compilers, innermost), (self._calls, innermost),
            (outer, outermost), (outer, innermost), (wrappers, innermost), (None, innermost), (self._ranges, outermost),
        )  # fmt: skip
        for known, sweep in layers:
            if not len(asked.of):
                break
            rows = self._frames(asked) if known is None else known
            if len(rows.start):
                held, rest = _held(asked, threads[asked.of], rows, sweep)
                found.append((held, rows.cls[held.row], rows.name[held.row].astype(np.int64)))
                asked = rest
        return asked

    def _with_ranges(self, pieces: Pieces, cls: Int8, name: Int64, thread: Int64, other: Int64) -> Labels:
        """Cut the pieces at the innermost ranges of the user."""
        rows = self._user_ranges
        n = len(pieces.of)
        if not len(rows.start):
            return Labels(pieces.start, pieces.end, pieces.of, cls, name, np.full(n, NO_NAME, dtype=np.int64))
        asked = _Asked(pieces.start, pieces.end, np.arange(n))
        held, rest = _held(asked, thread[pieces.of], rows, innermost)
        parts = [(held, rows.name[held.row])]
        elsewhere = (thread != other)[pieces.of[rest.of]]
        asked = rest.take(elsewhere)
        held, last = _held(asked, other[pieces.of[asked.of]], rows, innermost)
        parts.append((held, rows.name[held.row]))
        for part in (rest.take(~elsewhere), last):
            left = Pieces(part.start, part.end, part.of, np.full(len(part.of), NOTHING, dtype=np.int64))
            parts.append((left, np.full(len(left.of), NO_NAME, dtype=np.int64)))
        every = _joined_pieces([p for p, _ in parts])
        within = np.concatenate([w for _, w in parts])
        return Labels(every.start, every.end, pieces.of[every.of], cls[every.of], name[every.of], within)


class _Asked(NamedTuple):
    """Intervals still without a label; ``of`` numbers the interval each is part of."""

    start: Int64
    end: Int64
    of: Int64

    def within(self, rest: Pieces) -> _Asked:
        return _Asked(rest.start, rest.end, self.of[rest.of])

    def take(self, mask: Bool) -> _Asked:
        return _Asked(self.start[mask], self.end[mask], self.of[mask])


def _held(
    asked: _Asked, thread: Int64, rows: _Rows, sweep: Callable[[Int64, Int64, Int64], Layer]
) -> tuple[Pieces, _Asked]:
    """Return the parts of the asked intervals that rows of their own thread hold, and what is left.

    ``row`` of the pieces numbers ``rows``.
    """
    none = np.empty(0, dtype=np.int64)
    if not len(thread) or not len(rows.start):
        return Pieces(none, none, none, none), asked
    seen = np.zeros(int(thread.max()) + 2, dtype=bool)
    seen[thread + 1] = True  # NO_THREAD comes first
    wanted = np.flatnonzero(seen[1:])
    if not len(wanted):
        return Pieces(none, none, none, none), asked
    low, high = int(asked.start.min()), int(asked.end.max())
    width = high - low + 1
    place = np.full(int(max(rows.thread.max(), wanted.max())) + 2, NOTHING, dtype=np.int64)
    place[wanted] = np.arange(len(wanted))
    most = max(1, (1 << 62) // width)
    near = np.flatnonzero((rows.end > low) & (rows.start < high))
    of_row = place[rows.thread[near]]
    held: list[Pieces] = []
    left: list[_Asked] = []
    nobody = thread == NO_THREAD
    if nobody.any():
        left.append(_Asked(asked.start[nobody], asked.end[nobody], asked.of[nobody]))
    # one axis for all threads; more than fit into 64 bits take several axes
    for first in range(0, len(wanted), most):
        group = of_row - first
        mine = near[(group >= 0) & (group < most)]
        own = np.flatnonzero(~nobody & (place[thread] >= first) & (place[thread] < first + most))
        base = (place[thread[own]] - first) * width - low
        start, end = asked.start[own] + base, asked.end[own] + base
        shift = group[(group >= 0) & (group < most)] * width - low
        row_start, row_end = np.maximum(rows.start[mine], low) + shift, np.minimum(rows.end[mine], high) + shift
        ordered = np.argsort(start, kind="stable")
        touched = overlapping(row_start, row_end, *union(start[ordered], end[ordered]))
        layer = sweep(row_start[touched], row_end[touched], mine[touched])
        inside, rest = cut(start, end, layer)
        of = own[inside.of]
        held.append(Pieces(inside.start - base[inside.of], inside.end - base[inside.of], asked.of[of], inside.row))
        left.append(_Asked(rest.start - base[rest.of], rest.end - base[rest.of], asked.of[own[rest.of]]))
    return _joined_pieces(held), _Asked(
        *(np.concatenate([getattr(p, f) for p in left]) for f in ("start", "end", "of"))
    )


def union(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return sorted intervals joined where they touch or overlap."""
    reach = np.maximum.accumulate(end)
    opens = np.ones(len(start), dtype=bool)
    opens[1:] = start[1:] > reach[:-1]
    closes = np.ones(len(start), dtype=bool)
    closes[:-1] = opens[1:]
    return start[opens], reach[closes]


def _joined_pieces(parts: list[Pieces]) -> Pieces:
    return Pieces(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("start", "end", "of", "row")))
