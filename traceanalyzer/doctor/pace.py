"""The pace of a device's starved launches: what the host takes per launch or call, and the device for its kernels."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.graphs import in_graph
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis, DeviceAnalysis
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64


@record(frozen=True)
class Pace:
    """Medians over the launches of one device, in nanoseconds; ``None`` where there is none.

    ``what`` names what they are of: the kernel where all launches run the same one in one configuration, else the operation of which
    ``kernels`` make one call. With graph launches the replay is the unit: ``kernel_ns`` is then the self-time of its kernels together.
    Nothing is given for a mixture of kernels.
    """

    what: str
    kernels: int
    dispatch_ns: float | None
    kernel_ns: float | None
    reading_ns: float | None
    inflation: float | None
    in_graph: bool


NO_PACE = Pace("", 0, None, None, None, None, False)


def pace_of(analysis: Analysis, device: DeviceAnalysis) -> Pace:
    """Return the pace of one device from its kernels (or replays) that open a launch call."""
    rows, found, readings = analysis.trace.activities, analysis.waits, analysis.readings
    mine = device.rows
    inside = in_graph(analysis.trace)
    kernels = mine[(rows.kind[mine] == RowKind.KERNEL) & found.opens_call[mine]]
    replays = [r for r in analysis.replays if np.isin(r.opening, mine).any()]
    if replays and np.count_nonzero(inside[mine]) * 2 > len(mine):
        main = replays[0]
        reading, own = stats.median(main.readings_ns), stats.median(main.self_ns)
        return Pace(
            f"{main.api} of {main.kernels} kernels",
            1,
            stats.median(main.dispatch_ns),
            own,
            reading,
            _ratio(reading, own),
            True,
        )
    alone = kernels[~inside[kernels]]
    if not len(alone):
        return NO_PACE
    same = len(distinct(rows.name[alone])) == 1 and len(distinct(rows.config[alone])) == 1
    if not same:
        return _of_operation(analysis, mine)
    read = alone[readings.known[alone]]
    reading, own = stats.median(readings.reading_ns[read]), stats.median(rows.dur_ns[read])
    return Pace(
        analysis.trace.names[rows.name[alone[0]]], 1, _dispatch(analysis, alone), stats.median(rows.dur_ns[alone]), reading,
        _ratio(reading, own), False,
    )  # fmt: skip


def _dispatch(analysis: Analysis, alone: Int64) -> float | None:
    """Return what the launching threads together take from launch to launch."""
    rows, calls = analysis.trace.activities, analysis.trace.calls
    launched = rows.call[alone]
    threads = distinct(calls.thread[launched]).tolist()
    if len(threads) > 1:
        starts = np.sort(calls.start_ns[launched])
        return stats.median(starts[1:] - starts[:-1])
    steady = [t.steady_ns for t in analysis.threads if t.thread in threads]
    others = np.flatnonzero(analysis.host.owns & (calls.thread == (threads[0] if threads else NO_ROW)))
    others = others[~np.isin(others, launched)]
    if steady and len(steady[0]) and not len(others):
        return stats.median(steady[0])
    previous = analysis.host.before[launched]
    known = previous != NO_ROW
    return stats.median(calls.start_ns[launched[known]] - calls.start_ns[previous[known]])


def _of_operation(analysis: Analysis, mine: Int64) -> Pace:
    """Return the pace of the one operation that the device runs; nothing where it runs several, or none was found."""
    lanes = set(analysis.trace.activities.lane[mine].tolist())
    ops = [op for op in analysis.operations if len(op.worked) and _lane(analysis, op) in lanes]
    if len(ops) != 1 or not len(ops[0].dispatch_ns):
        return NO_PACE
    op = ops[0]
    own = stats.median(op.self_ns)
    reading = op.readings.get("event_pair")
    return Pace(
        op.iterations.name,
        max(2, round(op.kernels_per_iteration)),
        stats.median(op.dispatch_ns),
        own,
        reading,
        _ratio(reading, own),
        False,
    )


def _lane(analysis: Analysis, op: OpFacts) -> int:
    return int(analysis.trace.activities.lane[op.iterations.rows[int(op.worked[0])][0]])


def _ratio(reading: float | None, own: float | None) -> float | None:
    return round(reading / own, 3) if reading is not None and own else None
