"""Interval algebra on integer nanoseconds: the only place that has any."""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.tables import Bool, Int64


def union(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Return the disjoint, sorted intervals that cover the same instants; touching ones are joined."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate([[True], starts[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return starts[opens], reach[closes]


def length(starts: Int64, ends: Int64) -> int:
    """Return the summed length of intervals that do not overlap, in nanoseconds."""
    return int((ends - starts).sum())


def complement(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Return the gaps between disjoint, sorted intervals."""
    return ends[:-1], starts[1:]


def previous_end(ends: Int64) -> Int64:
    """Return, for rows sorted by start, the latest end among the rows before each; the first has none.

    The first element repeats its own end and must not be used.
    """
    if not len(ends):
        return ends
    reach = np.maximum.accumulate(ends)
    return np.concatenate([ends[:1], reach[:-1]])


def overlaps_any(starts: Int64, ends: Int64, other_starts: Int64, other_ends: Int64) -> Bool:
    """Return which of the intervals share an instant with any interval of the other set.

    Both ends count: an interval of no length overlaps where it lies.
    """
    if not len(other_starts) or not len(starts):
        return np.zeros(len(starts), dtype=bool)
    s, e = union(other_starts, other_ends)
    candidate = np.searchsorted(s, ends, side="right") - 1
    return np.asarray((candidate >= 0) & (e[np.maximum(candidate, 0)] >= starts))


def covered_length(starts: Int64, ends: Int64, other_starts: Int64, other_ends: Int64) -> Int64:
    """Return how much of each interval the union of the other set covers, in nanoseconds."""
    if not len(other_starts) or not len(starts):
        return np.zeros(len(starts), dtype=np.int64)
    s, e = union(other_starts, other_ends)
    before = np.concatenate([[0], np.cumsum(e - s)])

    def covered_until(t: Int64) -> Int64:
        at = np.searchsorted(s, t, side="right")
        inside = np.where(at > 0, np.maximum(0, e[np.maximum(at - 1, 0)] - t), 0)
        return np.asarray(before[at] - inside, dtype=np.int64)

    return covered_until(ends) - covered_until(starts)
