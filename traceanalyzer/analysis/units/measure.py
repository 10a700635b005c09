"""The times of a unit, one value per repeat, and the kernels it is made of."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.units.model import WHOLE, Places, Unit, Work
from traceanalyzer.analysis.units.operators import operators
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import simplify
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace

MOST_WORK = 400
"""Names of one unit that are kept, by time; the rest is one entry."""
LONGEST_NAME = 400
REST = "(the rest)"


def measured(trace: Trace, places: Places, clear: Bool, exclusive: Int64) -> Unit | None:
    """Return the unit; None where no repeat has device work. Rows in ``clear`` clear a cache and are no work.

    Of rows on several devices, times of the device are those of the one that has most.

    ``exclusive`` is the exclusive time of every device row.
    """
    rows = trace.activities
    worked = [i for i, part in enumerate(places.rows) if len(part)]
    if not worked:
        return None
    parts = [p[~clear[p]] if (~clear[p]).any() else p for p in (places.rows[i] for i in worked)]
    lengths = np.array([len(p) for p in parts])
    every = np.concatenate(parts)
    which = np.repeat(np.arange(len(parts)), lengths)
    begins = np.cumsum(lengths) - lengths
    device_of = device_of_rows(trace)
    device = _deciding(device_of[every], exclusive[every])
    mine = device_of[every] == device
    kernel = (rows.kind[every] == RowKind.KERNEL) & mine

    def per_repeat(values: Int64) -> Int64:
        summed: Int64 = np.add.reduceat(np.where(kernel, values, 0), begins)
        return summed

    first = np.minimum.reduceat(rows.start_ns[every], begins)
    last = np.maximum.reduceat(rows.end_ns[every], begins)
    windows = [places.windows[i] for i in worked] if places.windows is not None else None
    opened, closed = first, last
    if windows is not None:
        opened = np.minimum(first, np.array([w[0] for w in windows], dtype=np.int64))
        closed = np.maximum(last, np.array([w[1] for w in windows], dtype=np.int64))
    if places.method == WHOLE and len(trace.calls):
        opened = np.minimum(opened, _first_call(trace, every))
    calls = rows.call[every]
    return Unit(
        name=places.name,
        method=places.method,
        repeats=len(parts),
        coverage=0.0,
        kernels_per_repeat=float(np.median(per_repeat(np.ones(len(every), dtype=np.int64)))),
        period_ns=np.diff(np.sort(first)),
        duration_ns=closed - opened,
        busy_ns=np.array([_busy(trace, p if mine.all() else p[device_of[p] == device]) for p in parts], dtype=np.int64),
        self_ns=per_repeat(rows.dur_ns[every]),
        exclusive_ns=per_repeat(exclusive[every]),
        launches=_distinct(which, calls, len(parts)),
        work=_work(trace, every[mine], exclusive[every[mine]]),
        operators=operators(trace, windows if windows is not None else _of_calls(trace, places.method, parts)),
        first_ns=np.sort(first),
        opened_ns=opened,
        device=device,
    )


def device_of_rows(trace: Trace) -> Int64:
    """Return the device of each device row, as a row of ``trace.devices``."""
    lanes = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    found: Int64 = lanes[trace.activities.lane]
    return found


def _deciding(device: Int64, exclusive: Int64) -> int:
    """Return the device with most exclusive time."""
    devices, place = np.unique(device, return_inverse=True)
    sums = np.zeros(len(devices), dtype=np.int64)
    np.add.at(sums, place, exclusive)
    return int(devices[np.argmax(sums)])


def _busy(trace: Trace, rows: Int64) -> int:
    return intervals.length(*intervals.union(trace.activities.start_ns[rows], trace.activities.end_ns[rows]))


def _of_calls(trace: Trace, method: str, parts: list[Int64]) -> list[tuple[int, int]]:
    """Return the stretches of the host in which repeats without a window were launched: from first call to first call; of the whole trace all of it."""
    if method == WHOLE:
        return [(np.iinfo(np.int64).min, np.iinfo(np.int64).max)]
    calls = trace.activities.call
    begun = [int(trace.calls.start_ns[known].min()) for p in parts if len(known := calls[p][calls[p] != NO_ROW])]
    known = calls[parts[-1]]
    last = trace.calls.end_ns[known[known != NO_ROW]]
    begun = sorted(set(begun))
    return list(pairwise([*begun, int(last.max())])) if len(begun) > 1 and len(last) else []


def _first_call(trace: Trace, every: Int64) -> Int64:
    """Return the begin of the first call that launched any of the rows: where the host began to work on them."""
    called = trace.activities.call[every]
    called = called[called != NO_ROW]
    first = int(trace.calls.start_ns[called].min()) if len(called) else int(trace.activities.start_ns[every].min())
    return np.array([first], dtype=np.int64)


def _distinct(which: Int64, calls: Int64, repeats: int) -> Int64:
    """Return the number of different launch calls of each repeat."""
    known = calls != NO_ROW
    width = int(calls.max()) + 1 if len(calls) and calls.max() >= 0 else 1
    pairs = distinct(which[known] * width + calls[known])
    return np.bincount(pairs // width, minlength=repeats).astype(np.int64)


def _work(trace: Trace, every: Int64, own: Int64) -> list[Work]:
    rows = trace.activities
    names, place = np.unique(rows.name[every], return_inverse=True)
    counts = np.bincount(place)
    times = np.zeros(len(names), dtype=np.int64)
    np.add.at(times, place, own)
    order = np.argsort(-times, kind="stable")
    merged: dict[str, tuple[int, int]] = {}
    for at in order.tolist():
        name = simplify(trace.names[names[at]])[:LONGEST_NAME]
        if name not in merged and len(merged) >= MOST_WORK:
            name = REST
        count, time = merged.get(name, (0, 0))
        merged[name] = (count + int(counts[at]), time + int(times[at]))
    return [Work(name, count, time) for name, (count, time) in merged.items()]
