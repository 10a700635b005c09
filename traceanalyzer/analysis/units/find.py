"""The units of a trace: capture's operations, ranges, patterns of launches, replays of a graph, and the whole trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyzer.analysis.ledger import DeviceLedger
from traceanalyzer.analysis.units.exclusive import exclusive_ns
from traceanalyzer.analysis.units.measure import device_of_rows, measured
from traceanalyzer.analysis.units.model import ASKED, CAPTURED, PATTERN, REPLAY, WHOLE, Places, Unit, UnitLedger
from traceanalyzer.analysis.units.ranges import range_units
from traceanalyzer.analysis.units.window_ledger import ComputeRows, middle_ledger
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

if TYPE_CHECKING:
    from traceanalyzer.analysis.pipeline import Analysis

MOST_UNITS = 16
MOST_DEVICES = 16
_OF_OPERATIONS = {"capture annotation": CAPTURED, "range": ASKED, "repeating kernels": PATTERN}


def units(analysis: Analysis) -> list[Unit]:
    """Return the units that have device work, those of an operation first, then by coverage; the whole trace is the last."""
    trace, chosen = analysis.trace, analysis.chosen
    if not chosen.rows.any():
        return []
    clear = np.zeros(len(trace.activities), dtype=bool)
    places = []
    for op in analysis.operations:
        clear |= op.clear
        method = _OF_OPERATIONS.get(op.iterations.method)
        if method is not None:
            places.append(Places(op.iterations.name, method, op.iterations.rows, op.iterations.windows))
    captured = any(p.method == CAPTURED for p in places)
    if not captured:
        places += range_units(trace, chosen)
        places += _replays(analysis)
    whole = np.flatnonzero(chosen.rows)
    whole = whole[np.argsort(trace.activities.start_ns[whole], kind="stable")]
    own = exclusive_ns(trace.activities)
    everything = measured(trace, Places(WHOLE, WHOLE, [whole], None), clear, own)
    if everything is None:
        return []
    devices = device_of_rows(trace)
    kernels = whole[trace.activities.kind[whole] == RowKind.KERNEL]
    total = {d: int(own[kernels[devices[kernels] == d]].sum()) or 1 for d in distinct(devices[whole]).tolist()}
    found = [
        replace(u, coverage=float(u.exclusive_ns.sum()) / total[u.device])
        for p in places
        if (u := measured(trace, p, clear, own)) is not None
    ]
    first = (CAPTURED, ASKED)
    found.sort(key=lambda u: (u.method not in first, -u.coverage))
    kept = [*found[:MOST_UNITS], replace(everything, coverage=1.0)]
    sides = [(x, ComputeRows.of(trace, whole[devices[whole] == x.device])) for x in analysis.ledgers[:MOST_DEVICES]]
    return [_with_ledgers(trace, u, sides) for u in kept]


def _with_ledgers(trace: Trace, unit: Unit, devices: list[tuple[DeviceLedger, ComputeRows]]) -> Unit:
    def found(start: Int64, end: Int64) -> list[UnitLedger]:
        parts = [middle_ledger(trace, x, rows, start, end, x.device == unit.device) for x, rows in devices]
        return [p for p in parts if p is not None]

    return replace(
        unit,
        period_ledgers=found(unit.first_ns[:-1], unit.first_ns[1:]),
        duration_ledgers=found(unit.opened_ns, unit.opened_ns + unit.duration_ns),
    )


def _replays(analysis: Analysis) -> list[Places]:
    """Return replays of each graph as units of their own: where nothing around them repeats, they are what does."""
    trace = analysis.trace
    rows, calls = trace.activities, trace.calls
    at = np.flatnonzero(analysis.chosen.rows & (rows.call != NO_ROW))
    at = at[calls.api_class[rows.call[at]] == ApiClass.GRAPH_LAUNCH]
    if not len(at):
        return []
    at = at[np.lexsort((rows.start_ns[at], rows.call[at]))]
    shapes: dict[bytes, list[Int64]] = {}
    for group in np.split(at, np.flatnonzero(np.diff(rows.call[at])) + 1):
        shapes.setdefault(rows.name[group].tobytes(), []).append(group)
    found = []
    for members in shapes.values():
        members.sort(key=lambda g: int(rows.start_ns[g[0]]))
        longest = members[0][np.argmax(rows.dur_ns[members[0]])]
        found.append(Places(f"graph of {trace.names[rows.name[longest]]}", REPLAY, members, None))
    return found
