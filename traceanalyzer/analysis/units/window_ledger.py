"""The ledger of the middle repeat of a unit: where its time went, by class, in parts that add up to its length."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.ledger import DeviceLedger, clipped
from traceanalyzer.trace.tables import Int64

BEFORE, AFTER = "before_first_row", "after_last_row"
"""Time of a host's window outside of the device's span."""


def middle_ledger(ledger: DeviceLedger, start: Int64, end: Int64) -> dict[str, float]:
    """Return nanoseconds by class of the window of median length, of an even number the mean of the two in the middle.

    They add up to the median of the lengths exactly (to the half nanosecond).
    """
    if not len(start):
        return {}
    order = np.argsort(end - start, kind="stable")
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1].tolist()
    sums: dict[str, float] = {}
    for at in middle:
        for name, ns in _window(ledger, int(start[at]), int(end[at])).items():
            sums[name] = sums.get(name, 0.0) + ns / len(middle)
    return sums


def _window(ledger: DeviceLedger, start: int, end: int) -> dict[str, int]:
    part = clipped(ledger, "", start, end, np.empty(0, dtype=np.int64))
    found = {c.label: ns for c, ns in part.classes_ns().items()}
    before, after = min(end, ledger.start_ns) - start, end - max(start, ledger.end_ns)
    if before > 0:
        found[BEFORE] = before
    if after > 0:
        found[AFTER] = after
    return found
