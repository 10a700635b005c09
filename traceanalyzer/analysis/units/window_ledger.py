"""The ledger of the middle repeat of a unit, per device: where its time went, by class, in parts that add up to its length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis.ledger import DeviceLedger, LedgerClass, clipped
from traceanalyzer.analysis.ledger.busy import busy_class
from traceanalyzer.analysis.units.model import UnitLedger
from traceanalyzer.trace.names import simplify
from traceanalyzer.trace.tables import Int64, Trace

BEFORE, AFTER = "before_first_row", "after_last_row"
"""Time of a window outside of the device's span."""
MOST_KERNELS = 400
REST = "(the rest)"


@dataclass(frozen=True)
class ComputeRows:
    """The kernels of a device in order of start, none of communication: name and the time that each adds to the class compute."""

    start: Int64
    end: Int64
    name: Int64

    @classmethod
    def of(cls, trace: Trace, rows: Int64) -> ComputeRows:
        """Return those among the device's ``rows``; a row adds what lies behind the end of all rows before it."""
        times = trace.activities
        ordered = rows[np.lexsort((times.end_ns[rows], times.start_ns[rows]))]
        ordered = ordered[busy_class(trace, ordered) == LedgerClass.COMPUTE]
        start, end = times.start_ns[ordered], times.end_ns[ordered]
        if len(ordered):
            reach = np.maximum.accumulate(end)
            start = np.maximum(start, np.concatenate([start[:1], reach[:-1]]))
        adds = end > start
        return cls(start[adds], end[adds], times.name[ordered[adds]].astype(np.int64))

    def inside(self, trace: Trace, low: int, high: int) -> dict[str, int]:
        """Return nanoseconds by kernel name between two instants, the largest first."""
        first, last = np.searchsorted(self.end, low, side="right"), np.searchsorted(self.start, high, side="left")
        ns = np.minimum(self.end[first:last], high) - np.maximum(self.start[first:last], low)
        names, place = np.unique(self.name[first:last], return_inverse=True)
        sums = np.zeros(len(names), dtype=np.int64)
        np.add.at(sums, place, ns)
        found: dict[str, int] = {}
        for at in np.argsort(-sums, kind="stable").tolist():
            name = simplify(trace.names[names[at]])[:400]
            if name not in found and len(found) >= MOST_KERNELS:
                name = REST
            found[name] = found.get(name, 0) + int(sums[at])
        return found


def middle_ledger(
    trace: Trace, ledger: DeviceLedger, compute: ComputeRows, start: Int64, end: Int64, decides: bool
) -> UnitLedger | None:
    """Return the ledger of a device in the window of median length, of an even number the mean of the two in the middle.

    Its classes add up to the median of the lengths exactly (to the half nanosecond). None without windows.
    """
    if not len(start):
        return None
    order = np.argsort(end - start, kind="stable")
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1].tolist()
    windows = [(int(start[at]), int(end[at])) for at in middle]
    return UnitLedger(
        ledger.device,
        _mean([_window(ledger, a, b) for a, b in windows]),
        _mean([compute.inside(trace, max(a, ledger.start_ns), min(b, ledger.end_ns)) for a, b in windows]),
        decides,
    )


def _mean(found: list[dict[str, int]]) -> dict[str, float]:
    sums: dict[str, int] = {}
    for part in found:
        for name, ns in part.items():
            sums[name] = sums.get(name, 0) + ns
    return {name: ns / len(found) for name, ns in sums.items()}


def _window(ledger: DeviceLedger, start: int, end: int) -> dict[str, int]:
    part = clipped(ledger, "", start, end, np.empty(0, dtype=np.int64))
    found = {c.label: ns for c, ns in part.classes_ns().items()}
    before, after = min(end, ledger.start_ns) - start, end - max(start, ledger.end_ns)
    if before > 0:
        found[BEFORE] = before
    if after > 0:
        found[AFTER] = after
    return found
