"""Operations: statistics per iteration, the symbols of the model, and the ladder of readings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import intervals, protocols, stats
from traceanalyzer.analysis.absent import Absent
from traceanalyzer.analysis.grouped import Groups
from traceanalyzer.analysis.iterations import Iterations
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.protocols import Symbols
from traceanalyzer.analysis.queue import QueueVerdict
from traceanalyzer.analysis.replay import replayed
from traceanalyzer.analysis.steadiness import Steadiness
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.analysis.symbols import MachineSymbols, operation_symbols
from traceanalyzer.options import HEAD_RATIO, LEVEL_SHIFT, MODE_GAP, AnalysisOptions
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import is_fill
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace

_ROUNDING = 0.01
_PERIOD_SLACK = 0.05
"""A sum of medians may exceed the median of sums by this much."""
_SAFE = 1 << 62
LEAST_CLEAR_NS = 4000
"""A fill shorter than this clears no cache (7 us for 50 MiB on the fastest memory)."""


@record(frozen=True)
class OpFacts:
    """One operation; arrays hold one value per iteration that has device work, in nanoseconds.

    ``clear`` marks device rows that clear a cache before the work: they are shown apart and count in no
    self-time. ``self_ns`` sums the kernels, ``busy_ns`` is the union of the rows, ``span_ns`` first start to
    last end, ``period_ns`` start to start on the device, ``dispatch_ns`` first launch to first launch on the
    host, over all threads that launch. ``worked`` numbers the iterations that have work; ``steady`` says whether ``self_ns`` is. Without symbols (no regular shape) there is no
    ladder and ``no_ladder`` says why. ``absent`` says of each reading that is None why; a reading lies between the
    kernels' exclusive time and the period that the run itself shows. ``machine`` gave the symbols of its device.
    """

    iterations: Iterations
    worked: Int64
    clear: Bool
    self_ns: Int64
    busy_ns: Int64
    span_ns: Int64
    clear_ns: Int64
    period_ns: Int64
    dispatch_ns: Int64
    kernels_per_iteration: float
    symbols: Symbols | None
    readings: dict[str, float | None]
    replays: dict[str, float | None]
    no_ladder: str
    absent: dict[str, Absent]
    machine: MachineSymbols | None
    queue: QueueVerdict
    steady: Steadiness


def operation(
    trace: Trace, host: Launching, waits: Waits, machines: list[MachineSymbols], found: Iterations, queue_of: Callable[[Int64], QueueVerdict], clocks_disagree: bool,
    options: AnalysisOptions,
) -> OpFacts:  # fmt: skip
    """Return the facts of one operation."""
    rows = trace.activities
    worked = np.array([i for i, r in enumerate(found.rows) if len(r)], dtype=np.int64)
    parts = [found.rows[i] for i in worked.tolist()]
    clear = _clears(trace, parts)
    work = [p[~clear[p]] if (~clear[p]).any() else p for p in parts] if clear.any() else parts
    is_kernel = rows.kind == RowKind.KERNEL
    is_work = is_kernel | (rows.kind == RowKind.GRAPH)  # of a graph recorded whole only the whole is known
    grouped = _grouped(work)
    self_ns = grouped.sum(np.where(is_work, rows.dur_ns, 0))
    starts = rows.start_ns[grouped.rows[grouped.begins]]
    ordered = np.sort(starts)
    period_ns: Int64 = ordered[1:] - ordered[:-1]
    first_calls = np.array(
        [int(trace.calls.start_ns[c[0]]) for i in worked.tolist() if len(c := found.calls[i])], dtype=np.int64
    )
    device = trace.lanes[rows.lane[parts[0][0]]].device if parts else 0
    machine = machines[device] if machines else None
    symbols, times, why = _symbols(trace, host, waits, machine, found, worked, work)
    if clocks_disagree:
        symbols, why = None, "host and device clocks disagree; launch latency cannot be measured"
    readings: dict[str, float | None] = dict.fromkeys(protocols.PROTOCOLS)
    replays: dict[str, float | None] = dict.fromkeys(protocols.PROTOCOLS)
    absent = dict.fromkeys(protocols.PROTOCOLS, Absent.CLOCKS if clocks_disagree else Absent.NO_SYMBOLS)
    if symbols is not None:
        synced = _waits_in_each(trace, host, found, worked)
        readings |= protocols.ladder(symbols)
        replays |= {p: replayed(p, times, symbols) for p in protocols.PROTOCOLS}
        absent = impossible(readings, symbols, stats.median(period_ns), synced, trace.meta.step_ns)
        readings |= dict.fromkeys(absent)
        replays |= dict.fromkeys(
            [*absent, *impossible(replays, symbols, stats.median(period_ns), synced, trace.meta.step_ns)]
        )
    readings["profiler_self_time"] = stats.median(self_ns)
    absent.pop("profiler_self_time", None)
    each = _grouped(parts)
    return OpFacts(
        iterations=found,
        worked=worked,
        clear=clear,
        self_ns=self_ns,
        busy_ns=_busy_ns(rows.start_ns, rows.end_ns, grouped),
        span_ns=_largest(rows.end_ns, grouped) - starts,
        clear_ns=each.sum(np.where(clear, rows.dur_ns, 0)),
        period_ns=period_ns,
        dispatch_ns=np.diff(first_calls),
        kernels_per_iteration=float(np.median(grouped.count(is_kernel))) if work else 0.0,
        symbols=symbols,
        readings=readings,
        replays=replays,
        no_ladder=why if symbols is None else "",
        absent=absent,
        machine=machine,
        queue=queue_of(grouped.rows),
        steady=Steadiness(self_ns, *(options.threshold(t) for t in (HEAD_RATIO, LEVEL_SHIFT, MODE_GAP))),
    )


def _clears(trace: Trace, parts: list[Int64]) -> Bool:
    """Return which rows clear a cache: a fill that leads an iteration with other kernels behind it, in most of them."""
    rows = trace.activities
    clear = np.zeros(len(rows), dtype=bool)
    if not parts:
        return clear
    fills = np.array([is_fill(n) for n in trace.names], dtype=bool)
    grouped = _grouped(parts)
    first, is_kernel = grouped.rows[grouped.begins], rows.kind == RowKind.KERNEL
    behind = grouped.count(is_kernel) - is_kernel[first]
    fill = fills[rows.name[first]] | (rows.kind[first] == RowKind.MEMSET)
    leading = first[(behind > 0) & (rows.dur_ns[first] >= LEAST_CLEAR_NS) & fill]
    if len(leading) >= 0.9 * len(parts):
        clear[leading] = True
    return clear


def _grouped(parts: list[Int64]) -> Groups:
    lengths = np.array([len(p) for p in parts], dtype=np.int64)
    rows = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return Groups(rows, np.cumsum(lengths) - lengths)


def _largest(values: Int64, grouped: Groups) -> Int64:
    found: Int64 = np.maximum.reduceat(values[grouped.rows], grouped.begins) if len(grouped.begins) else values[:0]
    return found


def _busy_ns(start: Int64, end: Int64, grouped: Groups) -> Int64:
    """Return the length of the union of each group's intervals; the rows of a group are in order of start."""
    if not len(grouped.begins):
        return start[:0]
    low, high = start[grouped.rows], end[grouped.rows]
    origin = int(low.min())
    apart = int(high.max()) - origin + 1
    if apart * len(grouped.begins) > _SAFE:
        parts = (grouped.members(i) for i in range(len(grouped.begins)))
        return np.array([intervals.length(*intervals.union(start[p], end[p])) for p in parts], dtype=np.int64)
    # groups are laid one behind the other, so that one running maximum serves them all
    offset = grouped.of * apart - origin
    reach = np.maximum.accumulate(high + offset)
    before = np.concatenate([(low + offset)[:1], reach[:-1]])
    own = np.maximum(0, high + offset - np.maximum(low + offset, before))
    found: Int64 = np.add.reduceat(own, grouped.begins)
    return found


def _waits_in_each(trace: Trace, host: Launching, found: Iterations, worked: Int64) -> bool:
    """Return whether a thread that launches waits for the device in most iterations."""
    first = np.array([c[0] for i in worked.tolist() if len(c := found.calls[i])], dtype=np.int64)
    first = first[np.argsort(trace.calls.start_ns[first], kind="stable")]
    if len(first) < 2:
        return False
    start = trace.calls.start_ns[first]
    waited = host.waited_ns(trace, trace.calls.thread[first[1:]], start[:-1], start[1:])
    return 2 * int(np.count_nonzero(waited)) >= len(waited)


def impossible(
    readings: dict[str, float | None], s: Symbols, period_ns: float | None, synced: bool, step_ns: int
) -> dict[str, Absent]:
    """Return the readings that cannot be, with the reason.

    Those of a loop cannot exceed the period that the run itself shows, nor what it must add to it where the run did
    not wait for the device (a synchronise of its own, the latency, event records); none is below the time that the
    kernels add to the device's busy time. Where the loop's reading is impossible, so are the inputs of all.
    """
    least = s.paired_time * (1 - _ROUNDING) - step_ns
    bad = {
        p: Absent.BELOW_EXCLUSIVE
        for p, v in readings.items()
        if v is not None and v < (least if p != "wall_nosync" else 0) and p != "profiler_self_time"
    }
    if period_ns is None:
        return bad
    loop = period_ns * (1 + _PERIOD_SLACK) + step_ns
    waiting = loop if synced else loop + period_ns + s.latency + s.sync
    most = {
        "wall_nosync": loop, "wall_sync_once": loop, "event_loop": loop, "graph_unrolled": loop + s.graph_dispatch,
        "event_pair": loop + 2 * s.record, "do_bench": loop + 2 * s.record + s.clear_dispatch,
        "wall_sync_each": waiting + s.latency + s.sync, "event_pair_sync": waiting + s.latency + s.record,
    }  # fmt: skip
    above = {p for p, limit in most.items() if (v := readings.get(p)) is not None and v > limit}
    if above & {"wall_sync_once", "event_loop"}:
        above = {p for p, v in readings.items() if v is not None and p != "profiler_self_time"}
    return bad | {p: Absent.ABOVE_PERIOD for p in readings if p in above}  # in one order: a set has none


def _symbols(
    trace: Trace, host: Launching, waits: Waits, machine: MachineSymbols | None, found: Iterations, worked: Int64, work: list[Int64],
) -> tuple[Symbols | None, list[list[tuple[float, float]]], str]:  # fmt: skip
    """Estimate dispatch and kernel of each launch from iterations of the commonest shape."""
    rows = trace.activities
    if machine is None or len(work) < 2:
        return None, [], f"{'one iteration only' if work else 'no iteration'} with device work"
    shapes: dict[tuple[bytes, bytes], list[int]] = {}
    leads = _first_of_call(rows.call, work)
    for i, (part, lead) in enumerate(zip(work, leads, strict=True)):
        if (rows.call[part] != NO_ROW).all():
            shapes.setdefault((rows.name[part].tobytes(), lead.tobytes()), []).append(i)
    if not shapes:
        return None, [], "no iteration is linked to launches throughout"
    regular = max(shapes.values(), key=len)
    if 2 * len(regular) < len(work):
        return None, [], "iterations differ in their kernels, so no launch stands for a typical one"
    # rows of iterations x places of a row in its iteration; launches in order of their first row
    table = np.stack([work[i] for i in regular])
    lead = leads[regular[0]]
    by_launch = np.argsort(lead, kind="stable")
    places, begins = np.unique(lead[by_launch], return_index=True)
    # what a row adds to its predecessors: a dependent launch's self-time holds waiting for them
    kernels = np.add.reduceat(waits.exclusive_ns[table[:, by_launch]], begins, axis=1)
    owners = rows.call[table[:, places]]
    windows = np.array([found.windows[i] for i in worked[regular].tolist()]) if found.windows is not None else None
    dispatch, whole = dispatch_of_calls(trace, host, owners, windows)
    if not whole.any():
        return None, [], "no iteration has a launch before it to measure dispatch from"
    times = [
        [(d, k) for d, k in i] for i in np.stack([dispatch[whole], kernels[whole]], axis=-1).astype(float).tolist()
    ]
    typical = (np.median(dispatch[whole], axis=0).tolist(), np.median(kernels, axis=0).tolist())
    return operation_symbols(machine, *typical), times, ""


def dispatch_of_calls(
    trace: Trace, host: Launching, owners: Int64, windows: Int64 | None
) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return the host time to each launch of each call, and which calls have all of them.

    ``owners`` are launch calls, one row a call. Launches are taken in order of time whatever thread made them. The
    first one's time begins where the launch before it was made, in any thread; told apart by ranges (``windows``,
    start and end), a call begins with its range and what it does behind its last launch counts to it: nothing outside
    of the range does. Time in which the host waited for the device is no dispatch.
    """
    calls = trace.calls
    order = np.argsort(calls.start_ns[owners], axis=1, kind="stable")
    timed = np.take_along_axis(owners, order, axis=1)
    start, thread = calls.start_ns[timed], calls.thread[timed]
    begun = np.roll(start, 1, axis=1)
    before = host.before[timed[:, 0]]
    whole = before != NO_ROW
    begun[:, 0] = calls.start_ns[before]
    behind = np.zeros(len(owners), dtype=np.int64)
    if windows is not None:
        whole = np.ones(len(owners), dtype=bool)
        begun[:, 0] = windows[:, 0]
        until = np.maximum(start[:, -1], windows[:, 1])
        behind = until - start[:, -1] - host.waited_ns(trace, thread[:, -1], start[:, -1], until)
        # what the thread that opens the call waited for there: it closes the range too
        other = thread[:, 0] != thread[:, -1]
        behind[other] -= host.waited_ns(trace, thread[other, 0], start[other, -1], until[other])
    flat = host.waited_ns(trace, thread.ravel(), begun.ravel(), start.ravel())
    result = start - begun - flat.reshape(start.shape)
    result[:, 0] += np.maximum(0, behind)
    back = np.argsort(order, axis=1, kind="stable")
    return np.take_along_axis(np.maximum(0, result), back, axis=1), whole


def _first_of_call(call: Int64, parts: list[Int64]) -> list[Int64]:
    """Return, for each row of each part, the place in the part of the first row of the same call."""
    lengths = np.array([len(p) for p in parts])
    begins = np.cumsum(lengths) - lengths
    part = np.repeat(np.arange(len(parts)), lengths)
    keys = part * (int(call.max()) + 2) + call[np.concatenate(parts)] + 1
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    places = first[which] - begins[part]
    return [places[b : b + n] for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
