"""Graph replays as operations: one host call, many device rows.

The nodes of a replay are not dispatched one by one, so the replay is the unit that the host's pace is
compared with.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.readings import Readings, last_end_of_call
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace


@record(frozen=True)
class ReplayFacts:
    """Replays of one shape (API and the names of its nodes in order) on one device. Per replay, in nanoseconds.

    ``self_ns`` sums the kernels, ``busy_ns`` is the union of all rows, ``span_ns`` from the first start to
    the last end. ``period_ns`` are start-to-start intervals on the device, ``dispatch_ns`` those of the
    calls. ``opening`` numbers the device row that opens each replay. ``readings_ns`` are event readings.
    """

    api: str
    nodes: int
    kernels: int
    first_name: int
    device: int
    opening: Int64
    self_ns: Int64
    busy_ns: Int64
    span_ns: Int64
    period_ns: Int64
    dispatch_ns: Int64
    readings_ns: Int64


def in_graph(trace: Trace) -> Bool:
    """Return which device rows run inside a graph launch, by their call, their node id, or both."""
    rows, calls = trace.activities, trace.calls
    inside = rows.graph_node.copy()
    linked = rows.call != NO_ROW
    inside[linked] |= calls.api_class[rows.call[linked]] == ApiClass.GRAPH_LAUNCH
    return inside


def graph_replays(trace: Trace, host: Launching, readings: Readings, chosen: Bool) -> list[ReplayFacts]:
    """Return the replays of graph launch calls among the chosen rows, largest total self-time first."""
    rows, calls = trace.activities, trace.calls
    at = np.flatnonzero(chosen & (rows.call != NO_ROW))
    at = at[calls.api_class[rows.call[at]] == ApiClass.GRAPH_LAUNCH]
    if not len(at):
        return []
    at = at[np.lexsort((rows.start_ns[at], rows.call[at]))]
    groups = np.split(at, np.flatnonzero(np.diff(rows.call[at])) + 1)
    device_of_lane = [lane.device for lane in trace.lanes]
    shapes: dict[tuple[int, int, bytes], list[Int64]] = {}
    for group in groups:
        device = device_of_lane[int(rows.lane[group[0]])]
        key = (device, int(calls.api[rows.call[group[0]]]), rows.name[group].tobytes())
        shapes.setdefault(key, []).append(group)
    last_end = last_end_of_call(rows.call, rows.end_ns, len(calls))
    result = []
    for (device, api, _), members in shapes.items():
        members.sort(key=lambda g: int(calls.start_ns[rows.call[g[0]]]))
        heads = np.array([g[0] for g in members])
        call = rows.call[heads]
        kernel = [rows.kind[g] == RowKind.KERNEL for g in members]
        work = [(rows.kind[g] == RowKind.KERNEL) | (rows.kind[g] == RowKind.GRAPH) for g in members]
        known = heads[readings.known[heads]]
        before = host.before[call]
        has_previous = before != NO_ROW
        result.append(
            ReplayFacts(
                api=trace.apis[api],
                nodes=len(members[0]),
                kernels=int(np.count_nonzero(kernel[0])),
                first_name=int(rows.name[heads[0]]),
                device=device,
                opening=heads,
                self_ns=np.array([int(rows.dur_ns[g][k].sum()) for g, k in zip(members, work, strict=True)]),
                busy_ns=np.array(
                    [intervals.length(*intervals.union(rows.start_ns[g], rows.end_ns[g])) for g in members]
                ),
                span_ns=last_end[call] - rows.start_ns[heads],
                period_ns=np.diff(np.sort(rows.start_ns[heads])),
                dispatch_ns=(calls.start_ns[call] - calls.start_ns[before])[has_previous],
                readings_ns=readings.reading_ns[known],
            )
        )
    return sorted(result, key=lambda r: -int(r.self_ns.sum()))
