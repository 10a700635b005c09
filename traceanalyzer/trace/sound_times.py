"""Which rows have a time that can be true. The others are left out of every number and counted by reason."""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.row_faults import RowFault
from traceanalyzer.trace.store import BAD_TIME
from traceanalyzer.trace.tables import Bool, Int64

DAY_NS = 86_400 * 1_000_000_000
"""No trace lasts a day: a row this far from the others has a broken stamp, as has one this long."""


def middle_of(*starts: Int64) -> int | None:
    """Return the middle start among rows that have one: the reference for "absurdly far"; None without rows."""
    known = np.concatenate([s[s != BAD_TIME] for s in starts]) if starts else np.empty(0, dtype=np.int64)
    if not len(known):
        return None
    return int(np.partition(known, len(known) // 2)[len(known) // 2])


def unset(start: Int64, dur: Int64) -> Bool:
    """Return which rows have both time and duration zero: a record that was never filled in."""
    return np.asarray((start == 0) & (dur == 0))


def faults(start: Int64, dur: Int64, middle: int | None, *, check_unset: bool) -> list[tuple[RowFault, Bool]]:
    """Return (fault, mask) pairs of rows whose times cannot be used; a row is in at most one mask."""
    taken = np.zeros(len(start), dtype=bool)
    result: list[tuple[RowFault, Bool]] = []

    def reason(fault: RowFault, mask: Bool) -> None:
        nonlocal taken
        mask = mask & ~taken
        taken |= mask
        if mask.any():
            result.append((fault, mask))

    reason(RowFault.NO_TIME, start == BAD_TIME)
    if check_unset:
        reason(RowFault.UNSET, unset(start, dur))
    if middle is not None:
        # distances in floats: the difference of two int64 extremes overflows
        far = np.abs(start.astype(np.float64) - float(middle)) > DAY_NS
        reason(RowFault.FAR, far)
        if middle >= 0:
            reason(RowFault.NEGATIVE_TIME, start < 0)
    reason(RowFault.NO_DURATION, dur == BAD_TIME)
    reason(RowFault.NEGATIVE_DURATION, dur < 0)
    reason(RowFault.LONG, dur > DAY_NS)
    return result
