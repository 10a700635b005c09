"""The kernel table: self-time per name, and per launch configuration where one name has several."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traceanalyzer.analysis.absent import Absent
from traceanalyzer.analysis.graphs import in_graph
from traceanalyzer.analysis.grouped import Groups
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.queue import Judge, QueueVerdict
from traceanalyzer.analysis.readings import Readings
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.trace.tables import NO_ROW, Bool, Int32, Int64, Trace


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel name. Medians are ``None`` where no row has the value.

    ``config`` is the configuration number where all rows share one, else ``None`` and ``variants`` holds
    (configuration number, facts of its rows). ``in_graph`` counts rows that are nodes of a graph launch: an
    event pair cannot be put around them, so they have no reading of their own. ``rows`` numbers its device rows, by
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


def kernel_table(
    trace: Trace, host: Launching, found: Waits, readings: Readings, depth: Int64, chosen: Bool, judge: Judge,
) -> list[KernelFacts]:  # fmt: skip
    """Return the facts of every name on every device among the chosen rows, largest total first, ties by name."""
    rows = trace.activities
    at = np.flatnonzero(chosen)
    if not len(at):
        return []
    columns = _Columns(trace, host, found, readings, depth, int(rows.dur_ns[at].sum()))
    name, device = rows.name, columns.device
    order = at[np.lexsort((at, device[at], name[at]))]
    whole = _grouped(order, name, device)
    finer = at[np.lexsort((at, rows.config[at], device[at], name[at]))]
    parts = _grouped(finer, name, device, rows.config)
    # parts are in the order of the whole groups they belong to
    first = np.flatnonzero(_changes(name[finer[parts.begins]], device[finer[parts.begins]]))
    pieces = np.diff(np.concatenate([first, [len(parts.begins)]]))
    several = pieces > 1
    table = columns.facts(whole, judge.of_groups(whole), several)
    split = np.repeat(several, pieces)
    variants = dict(zip(np.flatnonzero(split).tolist(), columns.facts(_only(parts, split), None, None), strict=True))
    for i in np.flatnonzero(several).tolist():
        own = [variants[j] for j in range(int(first[i]), int(first[i] + pieces[i]))]
        table[i] = replace(
            table[i], config=None, variants=sorted(own, key=lambda f: (-f.time.total_ns, _configuration(trace, f)))
        )
    return sorted(table, key=lambda f: (-f.time.total_ns, trace.names[f.name], f.device))


def _configuration(trace: Trace, facts: KernelFacts) -> str:
    return trace.configs[facts.config].describe() if facts.config is not None else ""


def _changes(*columns: Int64 | Int32) -> Bool:
    """Return where a row differs from the one before it in any column; the first does."""
    found = np.ones(len(columns[0]), dtype=bool)
    found[1:] = np.any([c[1:] != c[:-1] for c in columns], axis=0)
    return found


def _grouped(order: Int64, *columns: Int64 | Int32) -> Groups:
    return Groups(order, np.flatnonzero(_changes(*(c[order] for c in columns))))


def _only(groups: Groups, keep: Bool) -> Groups:
    """Return some of the groups."""
    counts = groups.counts[keep]
    return Groups(groups.rows[keep[groups.of]], np.cumsum(counts) - counts)


class _Columns:
    """What the facts of any group of rows are taken from, one value a device row."""

    def __init__(
        self, trace: Trace, host: Launching, found: Waits, readings: Readings, depth: Int64, total_ns: int
    ) -> None:
        rows, calls = trace.activities, trace.calls
        self.rows, self.found, self.readings, self.depth, self.total_ns = rows, found, readings, depth, total_ns
        device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
        self.device: Int64 = device_of_lane[rows.lane]
        self.graph = in_graph(trace)
        self.alone = found.opens_call & ~self.graph
        self.interval = np.zeros(len(rows), dtype=np.int64)
        self.dispatched = np.zeros(len(rows), dtype=bool)
        linked = np.flatnonzero(found.opens_call)
        if len(linked):
            call = rows.call[linked]
            before = host.before[call]
            self.dispatched[linked] = before != NO_ROW
            self.interval[linked] = calls.start_ns[call] - calls.start_ns[before]

    def facts(self, groups: Groups, queues: list[QueueVerdict] | None, several: Bool | None) -> list[KernelFacts]:
        """Return the facts of each group; ``several`` marks groups of several configurations, which have no reading."""
        rows, found, readings = self.rows, self.found, self.readings
        if not len(groups.begins):
            return []
        times = self._times(groups)
        read = readings.known & self.alone
        missing = self._missing(groups, groups.count(read), several)
        reading = groups.ordered(readings.reading_ns, read).medians()
        own = groups.ordered(rows.dur_ns, read).medians()
        opens = found.opens_call
        latency = groups.ordered(rows.start_ns - found.launch_start_ns, opens).medians()
        dispatch = groups.ordered(self.interval, self.dispatched).medians()
        waiting = groups.ordered(self.depth, opens).medians()
        exclusive = groups.ordered(found.exclusive_ns).quantile(0.5).tolist()
        counts = [
            groups.count(m).tolist()
            for m in (found.linked, found.starved, found.starved & found.after_sync, self.graph)
        ]
        lead = groups.rows[groups.begins]
        result = []
        for i, (name, config, device) in enumerate(
            zip(rows.name[lead].tolist(), rows.config[lead].tolist(), self.device[lead].tolist(), strict=True)
        ):
            value = reading[i] if missing[i] is None else None
            usual = own[i]
            result.append(
                KernelFacts(
                    name=name, time=times[i], linked=counts[0][i], starved=counts[1][i], after_sync=counts[2][i],
                    in_graph=counts[3][i], latency_p50_ns=latency[i], dispatch_p50_ns=dispatch[i], reading_p50_ns=value,
                    inflation=value / usual if value is not None and usual else None, depth_p50=waiting[i],
                    queue=queues[i] if queues is not None else None, config=config, variants=[],
                    rows=groups.members(i), device=device, exclusive_p50_ns=exclusive[i], no_reading=missing[i],
                )
            )  # fmt: skip
        return result

    def _times(self, groups: Groups) -> list[SelfTime]:
        durations, share = self.rows.dur_ns, self.total_ns
        ordered = groups.ordered(durations)
        middle, high = ordered.quantile(0.5), ordered.quantile(0.9)
        off = np.zeros(len(durations))
        off[groups.rows] = np.abs(durations[groups.rows] - middle[groups.of])
        spread = groups.ordered(off).quantile(0.5)
        numbers = (groups.counts, groups.sum(durations), ordered.first(), middle, high, ordered.last(), spread)
        columns = zip(*(n.tolist() for n in numbers), ordered.median_intervals(), strict=True)
        return [
            SelfTime(n, total, total / n, least, p50, p90, most, mad, interval, total / share if share else 0.0)
            for n, total, least, p50, p90, most, mad, interval in columns
        ]

    def _missing(self, groups: Groups, read: Int64, several: Bool | None) -> list[Absent | None]:
        """Return why each group has no reading: most rows that could have one are outside of its domain, or none can."""
        overlap = groups.count(self.readings.overlaps & self.alone)
        early = groups.count(self.readings.early & self.alone)
        inside = groups.count(self.graph) == groups.counts
        result: list[Absent | None] = []
        for i in range(len(read)):
            if several is not None and several[i]:
                result.append(Absent.SEVERAL_CONFIGURATIONS)
            elif read[i] > overlap[i] + early[i]:
                result.append(None)
            elif overlap[i] + early[i]:
                result.append(Absent.OVERLAPS if overlap[i] >= early[i] else Absent.BEFORE_LAUNCH)
            else:
                result.append(Absent.IN_GRAPH if inside[i] else Absent.NO_LAUNCH)
        return result
