"""Calls of the thing being measured: which device rows belong to one iteration, and how that was found out.

In this order: capture's own annotations, the range asked for, ranges that repeat, ProfilerStep, else the
repeating pattern of launches on the busiest stream. Work belongs to a range by where its launch call lies. Several
processes, and several devices of one process, have operations of their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.origin import Origin
from traceanalyzer.analysis.patterns import LEAST_REPEATS, Pattern, find_patterns, rotated
from traceanalyzer.analysis.ranges import (
    PROFILER_STEP,
    Spans,
    profiler_steps,
    ranges_called,
    spans_of,
    user_ranges,
)
from traceanalyzer.analysis.selection import Chosen
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import is_fill
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import NO_ROW, Int32, Int64, Trace

_MOST_OPEN = 256
"""Ranges open at once that are looked at; deeper ones are no calls."""
_MOST_OVERLAP = 64
"""Ranges of one name of which each launch lies in more than this many on average are thousands within one another: the
outermost are taken then, so that time and memory stay linear."""
_FEW_REPEATS = 10
"""With so few repeats none is given up for a likelier beginning."""
_BEGINNINGS_TRIED = 8
_NAMED_BY = 32
"""A call is named by its longest kernel in the median of so many calls."""


@record(frozen=True)
class Iterations:
    """One operation's iterations.

    ``rows`` holds the device rows of each iteration in order of start, ``calls`` its launch calls in order of time;
    both may be empty for an iteration without work. ``windows`` are the host ranges (start, end in ns) where ranges
    told iterations apart, else None. ``left_out`` launches belong to no iteration. ``how`` and ``certainty`` are for
    people. ``process`` and ``device`` (row of ``trace.devices``) are set where the trace has several with such calls; ``mark`` is
    what the name ends with to tell them apart.
    """

    name: str
    method: str
    how: str
    certainty: str
    rows: list[Int64]
    calls: list[Int64]
    windows: list[tuple[int, int]] | None
    left_out: int = 0
    process: int | None = None
    device: int | None = None
    mark: str = ""


def find_iterations(
    trace: Trace, host: Launching, chosen: Chosen, range_name: str | None, where: Origin
) -> list[Iterations] | str:
    """Return the operations of a trace with their iterations, or why none is convincing."""
    if not chosen.rows.any():
        return "there is no device row"
    ranged = _Ranged(trace, host, chosen, where)
    groups = user_ranges(trace)
    captured = {n.removeprefix(CAPTURE_PREFIX): r for n, r in groups.items() if n.startswith(CAPTURE_PREFIX)}
    if captured:
        return [
            op for n, r in captured.items() for op in ranged.of(n, spans_of(trace, r), "capture annotation", "certain")
        ]
    if range_name is not None:
        return ranged.of(range_name, ranges_called(trace, range_name), "range", "as asked for")
    repeating = {n: r for n, r in groups.items() if len(r) >= LEAST_REPEATS}
    if repeating:
        found = [
            op
            for n, r in _outermost(trace, repeating).items()
            for op in ranged.of(n, spans_of(trace, r), "repeating range", "likely")
        ]
        if any(len(x) for op in found for x in op.calls):
            return found
    steps = profiler_steps(trace)
    if len(steps) >= LEAST_REPEATS:
        return ranged.of(PROFILER_STEP, steps, PROFILER_STEP, "likely")
    return _by_patterns(trace, chosen, where)


def step_iterations(trace: Trace, host: Launching, chosen: Chosen, where: Origin, method: str) -> list[Iterations]:
    """Return the profiler's steps where operations were found in another way; none where a range was marked or asked for as the thing under test."""
    steps = profiler_steps(trace)
    if len(steps) < LEAST_REPEATS - 1 or method in ("capture annotation", "range", PROFILER_STEP):
        return []
    return _Ranged(trace, host, chosen, where).of(PROFILER_STEP, steps, PROFILER_STEP, "likely")


def _outermost(trace: Trace, groups: dict[str, Int64]) -> dict[str, Int64]:
    """Leave out groups whose ranges all lie inside ranges of another, longer group: the outer one is the call."""
    ranges = trace.ranges
    names = list(groups)
    rows = np.concatenate([groups[n] for n in names])
    group = np.repeat(np.arange(len(names)), [len(groups[n]) for n in names])
    order = np.lexsort((-ranges.end_ns[rows], ranges.start_ns[rows]))
    length = np.bincount(group, weights=(ranges.end_ns[rows] - ranges.start_ns[rows]).astype(float))
    around: dict[int, set[int]] = {}
    opened: list[tuple[int, int]] = []
    starts, ends = ranges.start_ns[rows[order]].tolist(), ranges.end_ns[rows[order]].tolist()
    for start, end, mine in zip(starts, ends, group[order].tolist(), strict=True):
        opened = [o for o in opened if o[0] > start or o[0] >= end]
        outer = {g for stop, g in opened if stop >= end and g != mine}
        around[mine] = around[mine] & outer if mine in around else outer
        if len(opened) < _MOST_OPEN:
            opened.append((end, mine))
    return {n: groups[n] for i, n in enumerate(names) if not any(length[o] > length[i] for o in around.get(i, set()))}


class _Ranged:
    """Iterations from host ranges, each range's launches found by where they lie in time."""

    def __init__(self, trace: Trace, host: Launching, chosen: Chosen, where: Origin) -> None:
        self._trace, self._chosen, self._where = trace, chosen, where
        self._owned = _Owned(trace, chosen)
        self._launching = np.flatnonzero(host.launches & chosen.calls)
        calls = trace.calls
        self._of_process: dict[int, tuple[Int64, Int64]] = {}
        process = where.thread_process[calls.thread[self._launching]]
        for number in distinct(process).tolist():
            mine = self._launching[process == number]
            mine = mine[np.argsort(calls.start_ns[mine], kind="stable")]
            self._of_process[number] = (mine, calls.start_ns[mine])

    def of(self, name: str, spans: Spans, method: str, certainty: str) -> list[Iterations]:
        """Return the operations of ranges of one name: one for each process, and for each device of a process."""
        process = self._where.thread_process[spans.thread]
        numbers = distinct(process).tolist()
        launching = [p for p in numbers if p in self._of_process] or numbers[:1]
        result: list[Iterations] = []
        for number in launching:
            op = self._of_one(name, spans.of(np.flatnonzero(process == number)), number, method, certainty)
            if len(launching) > 1:
                op = replace(op, process=number)
            result += _by_device(self._trace, self._where, op)
        return result

    def _of_one(self, name: str, spans: Spans, process: int, method: str, certainty: str) -> Iterations:
        at, starts = self._of_process.get(process, (np.empty(0, np.int64), np.empty(0, np.int64)))
        if _launches_within(starts, spans) > _MOST_OVERLAP * len(starts):
            spans = _apart(spans)
        low = np.searchsorted(starts, spans.start_ns, side="left")
        high = np.searchsorted(starts, spans.end_ns, side="right")
        # where one range ends as the next begins, the launch is the next one's
        begins = np.isin(spans.end_ns, spans.start_ns) & (spans.end_ns > spans.start_ns)
        high = np.where(begins, np.searchsorted(starts, spans.end_ns, side="left"), high)
        calls = [at[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        rows = self._owned.started_each(calls)
        windows = list(zip(spans.start_ns.tolist(), spans.end_ns.tolist(), strict=True))
        how = f"{len(windows)} ranges called {name!r}"
        used = sum(len(c) for c in calls)
        return Iterations(name, method, how, certainty, rows, calls, windows, max(0, len(at) - used))


def _launches_within(starts: Int64, spans: Spans) -> int:
    return int((np.searchsorted(starts, spans.end_ns, side="right") - np.searchsorted(starts, spans.start_ns)).sum())


def _apart(spans: Spans) -> Spans:
    """Return spans of which none begins within another: each that begins when the one taken before it has ended."""
    kept, reached = [], None
    for place in np.lexsort((-spans.end_ns, spans.start_ns)).tolist():
        if reached is None or int(spans.start_ns[place]) >= reached:
            kept.append(place)
            reached = int(spans.end_ns[place])
    return spans.of(np.array(kept, dtype=np.int64))


def _by_device(trace: Trace, where: Origin, op: Iterations) -> list[Iterations]:
    """Return the operation, or one for each device it works on; a process or rank of its own is in the name."""
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    everything = np.concatenate(op.rows) if op.rows else np.empty(0, dtype=np.int64)
    devices = distinct(device_of_lane[trace.activities.lane[everything]]).tolist()
    if len(devices) < 2:
        return [_named(trace, where, op)]
    device_of_call = _device_of_call(trace, everything, device_of_lane)
    parts = []
    for device in devices:
        rows = [r[device_of_lane[trace.activities.lane[r]] == device] for r in op.rows]
        calls = [c[(device_of_call[c] == device) | (device_of_call[c] == NO_ROW)] for c in op.calls]
        parts.append(_named(trace, where, replace(op, rows=rows, calls=calls, device=device)))
    return parts


def _device_of_call(trace: Trace, rows: Int64, device_of_lane: Int64) -> Int64:
    found = np.full(len(trace.calls), NO_ROW, dtype=np.int64)
    linked = rows[trace.activities.call[rows] != NO_ROW]
    found[trace.activities.call[linked]] = device_of_lane[trace.activities.lane[linked]]
    return found


def _named(trace: Trace, where: Origin, op: Iterations) -> Iterations:
    marks = []
    if op.process is not None:
        marks.append(where.mark(trace, op.process))
    if op.device is not None:
        marks.append(f"device {trace.devices[op.device].number}")
    mark = f" ({', '.join(marks)})" if marks else ""
    return replace(op, name=op.name + mark, mark=mark)


class _Owned:
    """The chosen device rows of each launch call."""

    def __init__(self, trace: Trace, chosen: Chosen) -> None:
        call = trace.activities.call
        at = np.flatnonzero(chosen.rows & (call != NO_ROW))
        self._rows = at[np.argsort(call[at], kind="stable")]
        self._calls = call[self._rows]
        self._start_ns = trace.activities.start_ns

    def of(self, call: int) -> Int64:
        """Return the rows of one call in the table's order."""
        low, high = np.searchsorted(self._calls, (call, call + 1))
        return self._rows[int(low) : int(high)]

    def started(self, calls: Int64) -> Int64:
        """Return the rows of some calls in order of start."""
        low, high = np.searchsorted(self._calls, calls), np.searchsorted(self._calls, calls, side="right")
        counts = high - low
        rows: Int64 = self._rows[np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        return rows[np.argsort(self._start_ns[rows], kind="stable")]

    def started_each(self, calls: list[Int64]) -> list[Int64]:
        """Return, for each of several lists of calls, their rows in order of start."""
        if not calls:
            return []
        every, sizes = np.concatenate(calls), np.array([len(c) for c in calls])
        low, high = np.searchsorted(self._calls, every), np.searchsorted(self._calls, every, side="right")
        counts = high - low
        rows = self._rows[np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        which = np.repeat(np.repeat(np.arange(len(calls)), sizes), counts)
        order = np.lexsort((np.arange(len(rows)), self._start_ns[rows], which))
        ends = np.cumsum(np.bincount(which, minlength=len(calls)))
        return np.split(rows[order], ends[:-1])

    def shapes(self, calls: Int64, name: Int32) -> Int64:
        """Return a number for each call, equal where the names of its rows are equal in order."""
        low, high = np.searchsorted(self._calls, calls), np.searchsorted(self._calls, calls, side="right")
        names = name[self._rows]
        if (high - low == 1).all():
            shapes: Int64 = names[low].astype(np.int64)
            return shapes
        seen: dict[bytes, int] = {}
        bounds = zip(low.tolist(), high.tolist(), strict=True)
        return np.array([seen.setdefault(names[x:y].tobytes(), len(seen)) for x, y in bounds], dtype=np.int64)


def _by_patterns(trace: Trace, chosen: Chosen, where: Origin) -> list[Iterations] | str:
    """Find what repeats on the busiest stream of each device, for each process that launches there."""
    rows, calls = trace.activities, trace.calls
    usable = np.flatnonzero(chosen.rows & (rows.call != NO_ROW))
    if not len(usable):
        return "no device row is linked to a launch, so no pattern of launches can be read"
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    device = device_of_lane[rows.lane[usable]]
    process = where.thread_process[calls.thread[rows.call[usable]]]
    owned = _Owned(trace, chosen)
    several_devices, several_processes = len(distinct(device)) > 1, len(distinct(process)) > 1
    found: list[Iterations] = []
    reasons: list[str] = []
    for p, d in sorted(set(zip(process.tolist(), device.tolist(), strict=True))):
        part = _by_pattern(trace, owned, usable[(process == p) & (device == d)])
        if isinstance(part, str):
            reasons.append(part)
            continue
        shares = np.count_nonzero(process[device == d] != p) or np.count_nonzero(device[process == p] != d)
        for op in part:
            marked = replace(
                op, process=p if several_processes else None, device=d if several_devices and shares else None
            )
            found.append(_named(trace, where, marked))
    return found or reasons[0]


def _by_pattern(trace: Trace, owned: _Owned, usable: Int64) -> list[Iterations] | str:
    """Find what repeats on the stream that is busiest with the given rows."""
    rows, calls = trace.activities, trace.calls
    lanes = rows.lane[usable]
    busiest = int(np.argmax(np.bincount(lanes, weights=rows.dur_ns[usable].astype(float) + 1)))
    at = distinct(rows.call[usable[lanes == busiest]])
    at = at[np.argsort(calls.start_ns[at], kind="stable")]
    n = len(at)
    if n < LEAST_REPEATS:
        return f"only {n} launch{'' if n == 1 else 'es'} on the busiest stream"
    tokens = owned.shapes(at, rows.name)
    patterns = find_patterns(tokens)
    if not patterns:
        return f"no pattern of launches repeats through the {n} launches of the busiest stream"
    patterns = [_begun(trace, owned, at, tokens, p) for p in patterns]
    patterns = [p for p in patterns if len(p.starts) >= LEAST_REPEATS]
    launches = sum(p.period * len(p.starts) for p in patterns)
    if 2 * launches < n:
        return (
            f"a pattern of {max((p.period for p in patterns), default=0)} launches does not repeat whole often enough"
        )
    found = [_pattern_op(trace, owned, at, p) for p in patterns]
    covered = sum(int(trace.activities.dur_ns[r].sum()) for op in found for r in op.rows)
    if 2 * covered < int(trace.activities.dur_ns[owned.started(at)].sum()):
        return f"the pattern of {patterns[0].period} launches that repeats holds little of the stream's work"
    return found


def _begun(trace: Trace, owned: _Owned, at: Int64, tokens: Int64, pattern: Pattern) -> Pattern:
    """Return the pattern begun where a call begins: at a cache clear or input copy, else where the host took longest."""
    if pattern.period == 1:
        return pattern
    # a cache clear, or the copy of the inputs, opens the call it was made for, however quickly it was launched
    first = int(pattern.starts[0])
    opens = cache(partial(_is_fill_or_input, trace))
    clearing = [i for i in range(pattern.period) if opens(*_name_and_kind(trace, owned.of(int(at[first + i]))))]
    if len(clearing) == 1:
        return rotated(tokens, pattern, clearing[0])
    start = trace.calls.start_ns[at]
    wait = np.diff(start, prepend=start[0])
    places = pattern.starts[:, None] + np.arange(pattern.period)
    likely = np.argsort(-np.median(wait[places], axis=0), kind="stable")[:_BEGINNINGS_TRIED].tolist()
    kept = [rotated(tokens, pattern, int(p)) for p in likely]
    most = max(len(pattern.starts), *(len(k.starts) for k in kept))
    if most > _FEW_REPEATS:
        return kept[0]
    return next((k for k in kept if len(k.starts) == most), pattern)


def _pattern_op(trace: Trace, owned: _Owned, at: Int64, pattern: Pattern) -> Iterations:
    groups = [at[s : s + pattern.period] for s in pattern.starts.tolist()]
    rows = owned.started_each(groups)
    name = trace.names[trace.activities.name[_main_row(trace, rows)]]
    left_out = len(at) - len(groups) * pattern.period
    if pattern.period == 1:
        how, certainty = f"the same launch {len(groups)} times", "likely"
    else:
        how = f"a pattern of {pattern.period} launches, {len(groups)} times"
        certainty = "likely" if 4 * left_out < len(at) else "uncertain"
    return Iterations(name, "repeating kernels", how, certainty, rows, groups, None, left_out)


def _main_row(trace: Trace, calls: list[Int64]) -> int:
    """Return the row that names a call: the kernel that takes longest in the median call and is no fill, else such a row."""
    table = trace.activities
    alike = np.stack([r for r in calls if len(r) == len(calls[0])][:_NAMED_BY])
    longest = np.argsort(-np.median(table.dur_ns[alike], axis=0), kind="stable")
    rows = alike[0][longest].tolist()
    kernels = (r for r in rows if table.kind[r] == RowKind.KERNEL and not is_fill(trace.names[table.name[r]]))
    return int(next(kernels, rows[0]))


def _name_and_kind(trace: Trace, rows: Int64) -> tuple[int, int]:
    """Return code and kind of the one row of a launch; of several, what no row has."""
    return (int(trace.activities.name[rows[0]]), int(trace.activities.kind[rows[0]])) if len(rows) == 1 else (-1, -1)


def _is_fill_or_input(trace: Trace, code: int, kind: int) -> bool:
    """Return whether a launch of one such row is nothing but a fill, or the copy of inputs to the device."""
    if code < 0:
        return False
    name = trace.names[code]
    inputs = kind == RowKind.MEMCPY and "HtoD" in name
    return bool(inputs or kind == RowKind.MEMSET or (kind == RowKind.KERNEL and is_fill(name)))
