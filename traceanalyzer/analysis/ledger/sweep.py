"""Sweeps over host rows: which row holds each instant, and cutting time at the rows of a layer. All vectorised.

Rows of several threads are swept at once: a thread and a time make one integer key, and threads lie one behind the
other on the axis of keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool, Int64

NOTHING = -1
_NEVER = np.iinfo(np.int64).max


class Layer(NamedTuple):
    """Disjoint pieces ``[start, end)`` sorted by start on one axis, and the number of the row that holds each."""

    start: Int64
    end: Int64
    row: Int64


class Pieces(NamedTuple):
    """Parts of intervals: ``of`` is the number of the interval each lies in, ``row`` what holds it or NOTHING."""

    start: Int64
    end: Int64
    of: Int64
    row: Int64


def empty_layer() -> Layer:
    """Return a layer without pieces."""
    none = np.empty(0, dtype=np.int64)
    return Layer(none, none, none)


def overlapping(start: Int64, end: Int64, layer_start: Int64, layer_end: Int64) -> Bool:
    """Return which intervals have an instant in common with disjoint, sorted others."""
    # the first of the others that ends behind the start: none begins earlier of those that can be met
    begins = np.append(layer_start, _NEVER)[np.searchsorted(layer_end, start, side="right")]
    return np.asarray(begins < end)


def _sorted(start: Int64, end: Int64, row: Int64) -> tuple[Int64, Int64, Int64]:
    keep = end > start  # a row without length labels nothing
    start, end, row = start[keep], end[keep], row[keep]
    if len(start) > 1 and not _in_order(start, end):
        order = np.lexsort((-end, start))
        start, end, row = start[order], end[order], row[order]
    return start, end, row


def _in_order(start: Int64, end: Int64) -> bool:
    """Return whether rows are sorted by start, the longer first, as most tables are: sorting is dear."""
    later, same = start[1:] > start[:-1], start[1:] == start[:-1]
    return bool((later | (same & (end[1:] <= end[:-1]))).all())


def outermost(start: Int64, end: Int64, row: Int64) -> Layer:
    """Return the rows that no earlier row holds; of two that start together the longer."""
    start, end, row = _sorted(start, end, row)
    if not len(start):
        return empty_layer()
    reach = np.maximum.accumulate(end)
    top = np.ones(len(start), dtype=bool)
    top[1:] = start[1:] >= reach[:-1]
    return Layer(start[top], end[top], row[top])


def innermost(start: Int64, end: Int64, row: Int64) -> Layer:
    """Return for each instant the row that started last of those that hold it; of equal rows the last in order.

    Rows of one thread lie in one another. Where they overlap in part the same definition holds: those stretches are
    swept one by one.
    """
    start, end, row = _sorted(start, end, row)
    n = len(start)
    if not n:
        return empty_layer()
    reach = np.maximum.accumulate(end)
    opens = np.ones(n, dtype=bool)
    opens[1:] = start[1:] >= reach[:-1]
    block = np.cumsum(opens) - 1
    alone = np.bincount(block)[block] == 1
    if alone.all():
        return Layer(start, end, row)
    low, high, held, crossing = _nested(start, end, ~alone)
    if len(crossing):
        bad = distinct(block[crossing])
        sound = ~np.isin(block[held], bad)
        # rows are sorted by start, so those of a block are together
        firsts, lasts = np.searchsorted(block, bad), np.searchsorted(block, bad, side="right")
        swept = [_swept(start, end, np.arange(a, b)) for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)]
        low = np.concatenate([low[sound], *[s[0] for s in swept]])
        high = np.concatenate([high[sound], *[s[1] for s in swept]])
        held = np.concatenate([held[sound], *[s[2] for s in swept]])
    low, high, held = (
        np.concatenate([start[alone], low]),
        np.concatenate([end[alone], high]),
        np.concatenate([np.flatnonzero(alone), held]),
    )
    order = np.argsort(low, kind="stable")
    return Layer(low[order], high[order], row[held[order]])


def _nested(start: Int64, end: Int64, chosen: Bool) -> tuple[Int64, Int64, Int64, Int64]:
    """Return pieces of nested rows by depth, and rows that end behind the row they lie in.

    A piece belongs to the last row that opened at its depth.
    """
    at = np.flatnonzero(chosen)
    m = len(at)
    time = np.concatenate([end[at], start[at]])
    opens = np.concatenate([np.zeros(m, dtype=bool), np.ones(m, dtype=bool)])
    # at one instant rows close before others open; rows that open together are in order already (longest first)
    order = np.lexsort((np.concatenate([np.zeros(m, np.int64), np.arange(m)]), opens, time))
    time, opens, row = time[order], opens[order], np.concatenate([at, at])[order]
    depth = np.cumsum(np.where(opens, 1, -1))
    by_depth = np.argsort(depth, kind="stable")
    place = np.where(opens[by_depth], np.arange(2 * m), 0)
    last_open = by_depth[np.maximum.accumulate(place)]
    held = np.empty(2 * m, dtype=np.int64)
    held[by_depth] = row[last_open]
    inner = np.flatnonzero(opens & (depth > 1))
    crossing = row[inner[end[row[inner]] > end[held[inner - 1]]]]
    low, high = time[:-1], time[1:]
    keep = (high > low) & (depth[:-1] > 0)
    return low[keep], high[keep], held[:-1][keep], crossing


def _swept(start: Int64, end: Int64, at: Int64) -> tuple[Int64, Int64, Int64]:
    """Return pieces of rows that overlap in part, row by row: the open row that started last holds an instant."""
    low: list[int] = []
    high: list[int] = []
    held: list[int] = []
    stack: list[int] = []  # open or ended rows in order of start; ended ones are dropped when they come up
    now = 0

    def until(limit: int | None) -> None:
        nonlocal now
        while stack and (limit is None or now < limit):
            top = stack[-1]
            stop = int(end[top]) if limit is None else min(int(end[top]), limit)
            if stop > now:
                low.append(now)
                high.append(stop)
                held.append(top)
                now = stop
            if int(end[top]) <= now:
                stack.pop()

    for i in at.tolist():
        until(int(start[i]))
        now = int(start[i])
        stack.append(i)
    until(None)
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), np.array(held, dtype=np.int64)


def cut(start: Int64, end: Int64, layer: Layer) -> tuple[Pieces, Pieces]:
    """Cut intervals at the pieces of a layer; return the parts it holds and the parts it leaves."""
    n = len(start)
    everything = np.arange(n)
    if not n or not len(layer.start):
        none = np.empty(0, dtype=np.int64)
        return Pieces(none, none, none, none), Pieces(start, end, everything, np.full(n, NOTHING, dtype=np.int64))
    first = np.searchsorted(layer.end, start, side="right")
    count = np.maximum(np.searchsorted(layer.start, end, side="left") - first, 0)
    of = np.repeat(everything, count)
    offset = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    at = first[of] + offset
    held = Pieces(np.maximum(start[of], layer.start[at]), np.minimum(end[of], layer.end[at]), of, layer.row[at])
    # what is left: before the first piece, between two, behind the last
    left_of = np.repeat(everything, count + 1)
    base = np.cumsum(count + 1) - (count + 1)
    left_start, left_end = np.empty(len(left_of), dtype=np.int64), np.empty(len(left_of), dtype=np.int64)
    left_start[base] = start
    left_end[base + count] = end
    slot = base[of] + offset
    left_end[slot] = held.start
    left_start[slot + 1] = held.end
    keep = left_end > left_start
    rest = Pieces(left_start[keep], left_end[keep], left_of[keep], np.full(int(keep.sum()), NOTHING, dtype=np.int64))
    return held, rest
