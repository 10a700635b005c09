"""The kernel table: self-time per name, and per launch configuration where one name has several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.absent import Absent
from traceanalyzer.analysis.graphs import in_graph
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.queue import QueueVerdict
from traceanalyzer.analysis.readings import Readings
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace


@dataclass(frozen=True)
class SelfTime:
    """Self-time statistics of a set of device rows; nanoseconds, ``share`` of the table's total."""

    count: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p90_ns: float
    max_ns: int
    mad_ns: float
    p50_interval_ns: tuple[float, float] | None
    share: float


@dataclass(frozen=True)
class KernelFacts:
    """One kernel name. Medians are ``None`` where no row has the value.

    ``config`` is the configuration number where all rows share one, else ``None`` and ``variants`` holds
    (configuration number, facts of its rows). ``in_graph`` counts rows that are nodes of a graph launch: an
    event pair cannot stand around them, so they have no reading of their own. ``rows`` numbers its device rows, by
    stream and start. ``device`` is the row of ``trace.devices`` they ran on. ``exclusive_p50_ns`` is the median of what
    a row adds to its predecessors' busy time. Without ``reading_p50_ns``, ``no_reading`` says why; a name with
    several configurations has none, its variants have.
    """

    name: int
    time: SelfTime
    linked: int
    starved: int
    after_sync: int
    in_graph: int
    latency_p50_ns: float | None
    dispatch_p50_ns: float | None
    reading_p50_ns: float | None
    inflation: float | None
    depth_p50: float | None
    queue: QueueVerdict | None
    config: int | None
    variants: list[KernelFacts]
    rows: Int64
    device: int
    exclusive_p50_ns: float
    no_reading: Absent | None


def populations(table: list[KernelFacts]) -> list[KernelFacts]:
    """Return the rows that are one population each: variants in place of a name with several configurations."""
    return [part for facts in table for part in (facts.variants or [facts])]


def self_time(durations: Int64, table_total_ns: int) -> SelfTime:
    """Return the statistics of at least one duration."""
    total = int(durations.sum())
    p50, p90 = np.quantile(durations, [0.5, 0.9]).tolist()
    return SelfTime(
        count=len(durations),
        total_ns=total,
        mean_ns=total / len(durations),
        min_ns=int(durations.min()),
        p50_ns=p50,
        p90_ns=p90,
        max_ns=int(durations.max()),
        mad_ns=float(np.median(np.abs(durations - p50))),
        p50_interval_ns=stats.median_interval(durations),
        share=total / table_total_ns if table_total_ns else 0.0,
    )


def kernel_table(
    trace: Trace, host: Launching, found: Waits, readings: Readings, depth: Int64, chosen: Bool,
    judge: Callable[[Int64], QueueVerdict] | None,
) -> list[KernelFacts]:  # fmt: skip
    """Return the facts of every name on every device among the chosen rows, largest total first, ties by name.

    ``judge`` gives the queue state of row numbers; without it (copies and fills) there is none.
    """
    rows, calls = trace.activities, trace.calls
    at = np.flatnonzero(chosen)
    if not len(at):
        return []
    total = int(rows.dur_ns[at].sum())
    durations = rows.dur_ns
    has_call = rows.call != NO_ROW
    before = np.full(len(rows), NO_ROW, dtype=np.int64)
    interval = np.zeros(len(rows), dtype=np.int64)
    graph = in_graph(trace)
    if len(calls):
        before[has_call] = host.before[rows.call[has_call]]
        known = before != NO_ROW
        interval[known] = calls.start_ns[rows.call[known]] - calls.start_ns[before[known]]
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)

    def facts(part: Int64, queue: QueueVerdict | None, variants: bool) -> KernelFacts:
        opens = part[found.opens_call[part]]
        alone = opens[~graph[opens]]
        read = alone[readings.known[alone]]
        overlap, early = np.count_nonzero(readings.overlaps[alone]), np.count_nonzero(readings.early[alone])
        missing = None
        if variants and (rows.config[part] != rows.config[part[0]]).any():
            missing = Absent.SEVERAL_CONFIGURATIONS
        elif len(read) <= overlap + early:
            missing = Absent.OVERLAPS if overlap >= early else Absent.BEFORE_LAUNCH
            if not overlap + early:
                missing = Absent.IN_GRAPH if graph[part].all() else Absent.NO_LAUNCH
        reading = stats.median(readings.reading_ns[read]) if missing is None else None
        own = stats.median(durations[read])
        configs = np.unique(rows.config[part]).tolist()
        split = (
            [facts(part[rows.config[part] == c], None, False) for c in configs] if variants and len(configs) > 1 else []
        )
        dispatched = opens[before[opens] != NO_ROW]
        return KernelFacts(
            name=int(rows.name[part[0]]),
            time=self_time(durations[part], total),
            linked=int(np.count_nonzero(found.linked[part])),
            starved=int(np.count_nonzero(found.starved[part])),
            after_sync=int(np.count_nonzero(found.starved[part] & found.after_sync[part])),
            in_graph=int(np.count_nonzero(graph[part])),
            latency_p50_ns=stats.median(rows.start_ns[opens] - found.launch_start_ns[opens]),
            dispatch_p50_ns=stats.median(interval[dispatched]),
            reading_p50_ns=reading,
            inflation=reading / own if reading is not None and own else None,
            depth_p50=stats.median(depth[opens]),
            queue=queue,
            config=configs[0] if len(configs) == 1 else None,
            variants=sorted(split, key=lambda f: -f.time.total_ns),
            rows=part,
            device=int(device_of_lane[rows.lane[part[0]]]),
            exclusive_p50_ns=float(np.median(found.exclusive_ns[part])),
            no_reading=missing,
        )

    device = device_of_lane[rows.lane]
    order = at[np.lexsort((at, device[at], rows.name[at]))]
    cuts = np.flatnonzero((np.diff(rows.name[order]) != 0) | (np.diff(device[order]) != 0)) + 1
    table = [facts(part, judge(part) if judge else None, True) for part in np.split(order, cuts)]
    return sorted(table, key=lambda f: (-f.time.total_ns, trace.names[f.name], f.device))
