"""The ledger of whatever repeats on a device, and which of it is the unit of the run: a step before a call, a call before a pattern."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.iterations import Iterations
from traceanalyzer.analysis.ledger import DeviceLedger, UnitKind, WorthUnit, clipped
from traceanalyzer.analysis.ledger.worth import STEP_KERNELS
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.ranges import PROFILER_STEP
from traceanalyzer.analysis.worth.worth import LEAST_UNITS, WorthMaker
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Int64, Trace

_MOST_SEGMENTS = 16
_FREE_SEGMENTS = 50_000
"""Segments that the ledgers of all operations may have together: so many times those of the devices, and some more."""
_WHOLE = 0.8
"""Calls that hold a smaller part of the device rows from one to the next are a part of what repeats: the unit is a step then."""


@record(frozen=True)
class Repeats:
    """What repeats: the device rows of each time that has work, in order, and how many kernels one holds (rounded)."""

    iterations: Iterations
    parts: list[Int64]
    kernels: int

    @classmethod
    def of(cls, op: OpFacts) -> Repeats:
        """Return the calls of an operation."""
        return cls(op.iterations, [op.iterations.rows[i] for i in op.worked.tolist()], round(op.kernels_per_iteration))

    @classmethod
    def of_steps(cls, trace: Trace, steps: Iterations) -> Repeats:
        """Return steps."""
        parts = [r for r in steps.rows if len(r)]
        kernels = [int(np.count_nonzero(trace.activities.kind[r] == RowKind.KERNEL)) for r in parts]
        return cls(steps, parts, round(float(np.median(kernels))) if kernels else 0)


@record(frozen=True)
class RepeatLedger:
    """The ledger of what repeats on one device, from the first row of one time to the first row of the next, and how long its rows keep the device busy."""

    busy_ns: int
    ledger: DeviceLedger


def with_unit(ledger: DeviceLedger, operations: list[RepeatLedger], steps: list[RepeatLedger]) -> DeviceLedger:
    """Return a device's ledger with the unit of the run: the profiler's step where there are enough of them, else the operation that keeps it busy longest."""
    ops = [u for u in operations if u.ledger.device == ledger.device]
    marked = [u for u in steps if u.ledger.device == ledger.device]
    enough = [u for u in marked if len(u.ledger.unit_starts_ns) > LEAST_UNITS]
    if not any(len(u.ledger.unit_starts_ns) > LEAST_UNITS for u in ops):
        enough = enough or marked
    mine = enough or ops
    if not mine:
        return ledger
    largest = max(mine, key=lambda u: u.busy_ns).ledger
    return replace(
        ledger,
        unit=largest.unit,
        unit_starts_ns=largest.unit_starts_ns,
        replay=lambda: largest.worth,
        replay_with=largest.replay_with,
    )


def unit_ledgers(
    trace: Trace, ledgers: list[DeviceLedger], repeats: list[Repeats], worth: WorthMaker
) -> list[RepeatLedger]:
    """Return the ledger of each operation or kind of step per device, with its rows there."""
    rows = trace.activities
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    found: list[_Candidate] = []
    for what in repeats:
        lengths = [len(p) for p in what.parts]
        everything = np.concatenate(what.parts) if what.parts else np.empty(0, dtype=np.int64)
        device_of_row = device_of_lane[rows.lane[everything]]
        part_of_row = np.repeat(np.arange(len(what.parts)), lengths)
        for ledger in (ledgers[d] for d in _places(ledgers, device_of_row)):
            at = device_of_row == ledger.device
            splits = np.searchsorted(part_of_row[at], range(1, len(what.parts)))
            units = [u for u in np.split(everything[at], splits) if len(u)]
            starts = np.array([int(rows.start_ns[u].min()) for u in units], dtype=np.int64)
            if len(starts) > 1 and starts.max() > starts.min():
                found.append(_Candidate(int(np.count_nonzero(at)), ledger, what, np.sort(starts), units))
    on_device = {ledger.device: np.sort(_starts_on(trace, device_of_lane, ledger.device)) for ledger in ledgers}
    result = []
    for number in _affordable(found, ledgers):
        c = found[number]
        unit = _unit(c, on_device[c.ledger.device])
        window = clipped(c.ledger, unit.name, int(c.starts[0]), int(c.starts[-1]), c.starts)
        window = replace(
            window,
            unit=unit,
            replay=partial(worth.worth, window, c.units),
            replay_with=partial(worth.timeline, window, c.units),
        )
        mine = np.concatenate(c.units)
        busy = intervals.length(*intervals.union(rows.start_ns[mine], rows.end_ns[mine]))
        result.append(RepeatLedger(busy, window))
    return result


@record(frozen=True)
class _Candidate:
    count: int
    ledger: DeviceLedger
    what: Repeats
    starts: Int64
    units: list[Int64]


def _starts_on(trace: Trace, device_of_lane: Int64, device: int) -> Int64:
    rows = trace.activities
    return np.asarray(rows.start_ns[device_of_lane[rows.lane] == device])


def _unit(found: _Candidate, on_device: Int64) -> WorthUnit:
    """Return what the times are called. A range that is one part of what goes on from one to the next is a step's, not the whole of it."""
    iterations, kernels = found.what.iterations, found.what.kernels
    name, ranged = iterations.name, iterations.windows is not None
    if name.startswith(PROFILER_STEP) or (not ranged and kernels >= STEP_KERNELS):
        return WorthUnit(UnitKind.STEP, name, kernels)
    if not ranged and kernels > 1:
        return WorthUnit(UnitKind.ITERATION, name, kernels)
    low, high = np.searchsorted(on_device, (found.starts[0], found.starts[-1]))
    own = found.count - len(found.units[-1])
    part = ranged and own < _WHOLE * int(high - low)
    return WorthUnit(UnitKind.STEP if part else UnitKind.CALL, name, kernels)


def _places(ledgers: list[DeviceLedger], devices: Int64) -> list[int]:
    """Return the places of the ledgers of these devices, in order."""
    place = {ledger.device: i for i, ledger in enumerate(ledgers)}
    return sorted(place[d] for d in distinct(devices).tolist() if d in place)


def _affordable(found: list[_Candidate], ledgers: list[DeviceLedger]) -> list[int]:
    """Return the operations whose ledgers are made, in order: those with most rows, while work stays linear.

    The window of an operation may hold all others, so hundreds of them would cost a square.
    """
    left = _MOST_SEGMENTS * sum(len(ledger.start) for ledger in ledgers) + _FREE_SEGMENTS
    chosen = []
    for number in sorted(range(len(found)), key=lambda n: -found[n].count):
        c = found[number]
        low, high = np.searchsorted(c.ledger.start, (c.starts[0], c.starts[-1]))
        left -= int(high - low)
        if left < 0:
            break
        chosen.append(number)
    return sorted(chosen)
