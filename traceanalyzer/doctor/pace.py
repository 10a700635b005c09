"""The pace of a device's starved launches: what the host takes per launch and the kernel per run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.graphs import in_graph
from traceanalyzer.analysis.pipeline import Analysis, DeviceFacts
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import NO_ROW


@dataclass(frozen=True)
class Pace:
    """Medians over the launches of one device, in nanoseconds; ``None`` where there is none.

    ``what`` names the kernel where all launches run the same one, in one configuration. With graph launches
    the replay is the unit: ``kernel_ns`` is then the self-time of its kernels together.
    """

    what: str
    dispatch_ns: float | None
    kernel_ns: float | None
    reading_ns: float | None
    inflation: float | None
    in_graph: bool


def pace_of(analysis: Analysis, device: DeviceFacts) -> Pace:
    """Return the pace of one device from its kernels (or replays) that open a launch call."""
    rows, found, readings = analysis.trace.activities, analysis.waits, analysis.readings
    calls = analysis.trace.calls
    mine = device.rows
    inside = in_graph(analysis.trace)
    kernels = mine[(rows.kind[mine] == RowKind.KERNEL) & found.opens_call[mine]]
    replays = [r for r in analysis.replays if np.isin(r.opening, mine).any()]
    if replays and np.count_nonzero(inside[mine]) * 2 > len(mine):
        main = replays[0]
        reading, own = stats.median(main.readings_ns), stats.median(main.self_ns)
        return Pace(
            f"{main.api} of {main.kernels} kernels", stats.median(main.dispatch_ns), own, reading,
            round(reading / own, 3) if reading is not None and own else None, True,
        )  # fmt: skip
    alone = kernels[~inside[kernels]]
    previous = analysis.host.before[rows.call[alone]]
    known = previous != NO_ROW
    interval = calls.start_ns[rows.call[alone[known]]] - calls.start_ns[previous[known]]
    launching = set(calls.thread[rows.call[alone]].tolist())
    paces = [t.steady_ns for t in analysis.threads if t.thread in launching]
    steady = np.concatenate(paces) if paces else interval
    read = alone[readings.known[alone]]
    reading, own = stats.median(readings.reading_ns[read]), stats.median(rows.dur_ns[read])
    same = len(np.unique(rows.name[alone])) == 1 and len(np.unique(rows.config[alone])) == 1
    one_thread = len(launching) <= 1
    return Pace(
        analysis.trace.names[rows.name[alone[0]]] if len(alone) and same else "",
        stats.median(steady) if one_thread and len(steady) else stats.median(interval),
        stats.median(rows.dur_ns[alone]),
        reading,
        round(reading / own, 3) if reading is not None and own else None,
        False,
    )
