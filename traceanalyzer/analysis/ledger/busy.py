"""Busy time of a device by precedence: compute, communication, copy, fill."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.ledger.classes import LedgerClass, is_communication
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import Int8, Int64, Trace


def busy_class(trace: Trace, ordered: Int64) -> Int8:
    """Return the busy class of each device row."""
    rows = trace.activities
    talks = np.array([is_communication(n) for n in trace.names] or [False], dtype=bool)
    kind = rows.kind[ordered]
    cls = np.full(len(ordered), LedgerClass.FILL, dtype=np.int8)
    cls[kind == RowKind.MEMCPY] = LedgerClass.COPY
    kernels = (kind == RowKind.KERNEL) | (kind == RowKind.GRAPH)  # what a whole graph ran is not told apart
    cls[kernels] = np.where(talks[rows.name[ordered[kernels]]], LedgerClass.COMMUNICATION, LedgerClass.COMPUTE)
    return cls


def busy_pieces(trace: Trace, ordered: Int64) -> tuple[Int64, Int64, Int8, Int64]:
    """Return (start, end, class, row) of the busy time of device rows, given in order of (start, end).

    Pieces are disjoint, sorted and together the union of the rows. ``row`` is the row with the largest end among those of
    the class that began before.
    """
    rows = trace.activities
    cls = busy_class(trace, ordered)
    start, end = rows.start_ns[ordered], rows.end_ns[ordered]
    kinds = [
        c
        for c in (LedgerClass.COMPUTE, LedgerClass.COMMUNICATION, LedgerClass.COPY, LedgerClass.FILL)
        if (cls == c).any()
    ]
    layers = {c: _runs(start[cls == c], end[cls == c], ordered[cls == c]) for c in kinds}
    if len(kinds) == 1:
        low, high, row = layers[kinds[0]]
        return low, high, np.full(len(low), kinds[0], dtype=np.int8), row
    edges = np.sort(np.concatenate([v for low, high, _ in layers.values() for v in (low, high)]))
    edges = edges[np.append(edges[:1] == edges[:1], edges[1:] != edges[:-1])]
    low, high = edges[:-1], edges[1:]
    found = np.full(len(low), -1, dtype=np.int8)
    row = np.full(len(low), -1, dtype=np.int64)
    for c in reversed(kinds):
        first, last, of = layers[c]
        if not len(first):  # rows of no length alone
            continue
        at = np.searchsorted(first, low, side="right") - 1
        holds = (at >= 0) & (last[np.maximum(at, 0)] > low)
        found[holds] = c
        row[holds] = of[at[holds]]
    keep = found >= 0
    low, high, found, row = low[keep], high[keep], found[keep], row[keep]
    opens = np.ones(len(low), dtype=bool)
    opens[1:] = (low[1:] != high[:-1]) | (found[1:] != found[:-1]) | (row[1:] != row[:-1])
    closes = np.concatenate([opens[1:], [True]]) if len(opens) else opens
    return low[opens], high[closes], found[opens], row[opens]


def _runs(start: Int64, end: Int64, row: Int64) -> tuple[Int64, Int64, Int64]:
    """Return disjoint pieces of the rows of one class, each with a row that holds it from its start to its end."""
    before = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    low = np.maximum(start, before)
    adds = end > low  # a row that lies in earlier ones adds nothing
    return low[adds], end[adds], row[adds]


def busy_ns(start: Int64, end: Int64) -> int:
    """Return the length of the union of intervals in nanoseconds."""
    return intervals.length(*intervals.union(start, end))
