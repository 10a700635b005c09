"""Queue depth over time: how many rows of a stream were launched and not finished at each moment."""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Int64


def depth_over_time(launched_ns: Int64, ended_ns: Int64) -> tuple[Int64, Int64]:
    """Return the moments at which the depth changes, and the depth from each on.

    ``launched_ns`` and ``ended_ns`` belong to the same rows of one stream. The definition is that of
    ``depth_at_launch`` (docs/methodology.md, "Queue depth at launch") read at every moment instead of at launches alone: a row
    counts from the start of its launch call to its end; one that seems to end before its call counts never.
    """
    ended = np.maximum(ended_ns, launched_ns)
    times = np.concatenate([launched_ns, ended])
    step = np.concatenate([np.ones(len(launched_ns), np.int64), -np.ones(len(ended), np.int64)])
    moments, which = np.unique(times, return_inverse=True)
    change = np.zeros(len(moments), dtype=np.int64)
    np.add.at(change, which, step)
    changes = np.flatnonzero(change)
    return moments[changes], np.cumsum(change)[changes]


def thinned(at_ns: Int64, value: Int64, bins: int) -> Int64:
    """Return which places of a step series to keep: all, or of each of ``bins`` equal stretches the first, lowest, highest and last."""
    if len(at_ns) <= 4 * bins:
        return np.arange(len(at_ns), dtype=np.int64)
    span = int(at_ns[-1] - at_ns[0])
    stretch = (at_ns - at_ns[0]) * bins // (span + 1)
    by_value = np.lexsort((value, stretch))
    cuts = np.concatenate([[True], np.diff(stretch) > 0])
    ends = np.concatenate([cuts[1:], [True]])
    keep = [np.flatnonzero(cuts), np.flatnonzero(ends), by_value[cuts], by_value[ends]]
    return distinct(np.concatenate(keep)).astype(np.int64)
