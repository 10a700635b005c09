"""Whether the operation under test is sound although something held the device up elsewhere in the trace."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Int64

LEAST_CALLS = 10
MOSTLY = 0.5
"""The operation is what the trace is of where it has half of the device's busy time."""
SOUND_BUSY = 0.9


@record(frozen=True)
class Sound:
    """An operation, its calls, and which part of the time from one call to the next the device is busy (median)."""

    name: str
    calls: int
    busy: float


def sound_operation(analysis: Analysis, device: DeviceCauses) -> Sound | None:
    """Return the operation that has most of a device's work and keeps it busy from call to call; None without one."""
    ledger = device.ledger
    total = int(ledger.ns[~device.is_idle].sum())
    for op in analysis.operations:
        starts = _starts(analysis, op, ledger.device)
        if len(starts) < LEAST_CALLS or int(op.busy_ns.sum()) < MOSTLY * total:
            continue
        period = np.diff(starts)
        share = 1 - float(np.median(np.diff(device.idle_before(starts)) / np.maximum(1, period)))
        if share >= SOUND_BUSY:
            return Sound(op.iterations.name, len(starts), share)
    return None


def _starts(analysis: Analysis, op: OpFacts, device: int) -> Int64:
    """Return the first starts of the calls that run on a device."""
    rows, lanes = analysis.trace.activities, analysis.trace.lanes
    parts = [op.iterations.rows[int(i)] for i in op.worked]
    first = np.array([int(p[0]) for p in parts if lanes[rows.lane[p[0]]].device == device], dtype=np.int64)
    return np.sort(rows.start_ns[first])
