"""Exclusive time: what a device row adds to the busy time of its stream, overlap with its predecessors counted once."""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.tables import Activities, Int64


def exclusive_ns(rows: Activities) -> Int64:
    """Return, per row, its end minus the later of its start and the largest end before it on its stream; at least 0.

    Rows of a stream that overlap (dependent launches) wait for one another inside their self-time.
    """
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    first = np.flatnonzero(np.diff(rows.lane, prepend=rows.lane[0] - 1))
    before = np.empty(len(rows), dtype=np.int64)
    for low, high in zip(first.tolist(), [*first[1:].tolist(), len(rows)], strict=True):
        ends = np.maximum.accumulate(rows.end_ns[low:high])
        before[low] = rows.start_ns[low]
        before[low + 1 : high] = ends[:-1]
    result: Int64 = np.maximum(0, rows.end_ns - np.maximum(rows.start_ns, before))
    return result
