"""Whether the operation under test is sound although something held the device up elsewhere in the trace."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.ledger.membership import of_classes
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.rules.ta209_device_gaps import LONG_GAP_US
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Bool, Int64

LEAST_CALLS = 10
LEAST_CALLS_WITH_GAPS = 4
"""Where nearly all idle time of the device is its own gaps, no pause hides behind a median: few calls suffice."""
MOSTLY = 0.5
"""The operation is what the trace is of where it has half of the device's busy time."""
SOUND_BUSY = 0.9
"""A device this busy is not held back by anything worth a headline."""


@record(frozen=True)
class Sound:
    """An operation that the host never holds up for long, and its calls.

    ``busy`` is the part of the time from one call to the next in which the device works, ``gaps`` the part in which
    it pauses between two short kernels that were queued ahead, as every device does (medians over the calls);
    0 where it is busy enough without them.
    """

    name: str
    calls: int
    busy: float
    gaps: float


def sound_operation(analysis: Analysis, device: DeviceCauses) -> Sound | None:
    """Return the operation that has most of a device's work and keeps it busy from call to call; None without one.

    Its own gaps of up to TA209's ``long_gap_us`` count as busy time: they are what a kernel costs, not what delays it.
    """
    ledger = device.ledger
    total = int(ledger.ns[~device.is_idle].sum())
    usual = usual_gaps(analysis, device)
    gaps_alone = device.busy_share + device.share(usual) >= SOUND_BUSY
    for op in analysis.operations:
        starts = _starts(analysis, op, ledger.device)
        if (
            len(starts) < (LEAST_CALLS_WITH_GAPS if gaps_alone else LEAST_CALLS)
            or int(op.busy_ns.sum()) < MOSTLY * total
        ):
            continue
        period = np.maximum(1, np.diff(starts))
        idle = np.diff(device.time_before(starts, device.is_idle))
        gaps = np.diff(device.time_before(starts, usual))
        busy = 1 - float(np.median(idle / period))
        if busy >= SOUND_BUSY:
            return Sound(op.iterations.name, len(starts), busy, 0.0)
        if 1 - float(np.median((idle - gaps) / period)) >= SOUND_BUSY:
            return Sound(op.iterations.name, len(starts), busy, float(np.median(gaps / period)))
    return None


def usual_gaps(analysis: Analysis, device: DeviceCauses) -> Bool:
    """Return which idle segments are pauses of the device between rows that were queued ahead, and no long ones."""
    own = of_classes(device.ledger.cls, (LedgerClass.DEVICE_GAP, LedgerClass.INSIDE_LAUNCH)) & device.is_idle
    return own & (device.ledger.ns < analysis.options.threshold(LONG_GAP_US) * 1000)


def _starts(analysis: Analysis, op: OpFacts, device: int) -> Int64:
    """Return the first starts of the calls that run on a device."""
    rows, lanes = analysis.trace.activities, analysis.trace.lanes
    parts = [op.iterations.rows[int(i)] for i in op.worked]
    first = np.array([int(p[0]) for p in parts if lanes[rows.lane[p[0]]].device == device], dtype=np.int64)
    return np.sort(rows.start_ns[first])
