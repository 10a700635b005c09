"""Rows that cannot be on an in-order stream: one that runs on while rows behind it on its stream begin and end.

Dependent launch lets a kernel begin before its predecessor ends. Such overlap is short, and every call has it. A
single row that outlasts what was launched behind it was given a wrong end.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.tables import Bool, Int32, Int64

_MOST = 64
_RARE = 0.01
_OUTLASTED = 2
_LONGER = 10
_OTHERS = 3


def outlasting(lane: Int32, name: Int32, start: Int64, end: Int64, usable: Bool) -> Bool:
    """Return which rows outlast their successors on their stream and are the exception there.

    ``usable`` marks the rows of streams that keep order: kernels that are no nodes of a graph, whose branches share a
    stream. A row is impossible where it outlasts two rows that began after it, or one while it takes ten times as long
    as others of its name do. Streams on which more than one row in a hundred does so keep no order: nothing is said.
    """
    bad = np.zeros(len(start), dtype=bool)
    at = np.flatnonzero(usable)
    if len(at) < 2:
        return bad
    at = at[np.lexsort((end[at], start[at], lane[at]))]
    cuts = np.flatnonzero(np.diff(lane[at])) + 1
    for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(at)], strict=True):
        part = at[low:high]
        ends = end[part]
        later = np.minimum.accumulate(ends[::-1])[::-1]
        longer = np.flatnonzero(ends[:-1] > later[1:])
        if not 0 < len(longer) <= max(1, min(_MOST, int(_RARE * len(part)))):
            continue
        for i in longer.tolist():
            outlasted = int(np.count_nonzero(ends[i + 1 :] < ends[i]))
            others = part[(name[part] == name[part[i]]) & (part != part[i])]
            usual = float(np.median(end[others] - start[others])) if len(others) >= _OTHERS else None
            far = usual is not None and ends[i] - start[part[i]] > _LONGER * usual
            bad[part[i]] = outlasted >= _OUTLASTED or far
    return bad
