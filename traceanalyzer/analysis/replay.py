"""What a protocol would have printed on the trace's own times: its dispatches and kernels through the queue model.

Unlike the closed forms this keeps the order and the scatter of what happened; where the two differ, a median of
sums is not a sum of medians, or the run was not steady.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.protocols import Symbols

Times = list[list[tuple[float, float]]]
"""Per iteration, (dispatch, kernel) of each launch in nanoseconds."""
MOST_LAUNCHES = 10_000
LEAST_ITERATIONS = 3
"""A replay ends after so many launches, though not before so many iterations: medians no longer move."""


class _Queue:
    def __init__(self, s: Symbols) -> None:
        self.s = s
        self.now = self.free = 0.0
        self.behind_work = False

    def work(self, launches: list[tuple[float, float]]) -> None:
        """Launch (dispatch, kernel) in turn."""
        now, free, latency = self.now, self.free, self.s.latency
        gap = self.s.gap if self.behind_work else 0.0
        for dispatch, kernel in launches:
            now += dispatch
            arrival, ready = now + latency, free + gap
            free = (arrival if arrival > ready else ready) + kernel
            gap = self.s.gap
        self.now, self.free, self.behind_work = now, free, True

    def record(self) -> float:
        self.now += self.s.record
        self.free = max(self.now + self.s.latency, self.free)
        self.behind_work = False
        return self.free

    def sync(self) -> None:
        self.now = max(self.now, self.free) + self.s.sync


def replayed(protocol: str, times: Times, s: Symbols) -> float | None:
    """Return the reading per call in nanoseconds; None of nothing or for a protocol that needs no replay."""
    if not times or protocol in ("graph_unrolled", "profiler_self_time"):
        return None
    times = times[: max(LEAST_ITERATIONS, MOST_LAUNCHES // len(times[0]))]
    queue = _Queue(s)
    values: list[float] = []
    start = stamp = 0.0
    if protocol in ("wall_sync_once", "event_loop", "wall_nosync"):
        stamp = queue.record() if protocol == "event_loop" else 0.0
        start = queue.now
    for iteration in times:
        if protocol == "do_bench":
            queue.work([(s.clear_dispatch, s.clear)])
        if protocol in ("event_pair", "event_pair_sync", "do_bench"):
            stamp = queue.record()
        if protocol == "wall_sync_each":
            start = queue.now
        queue.work(iteration)
        if protocol in ("event_pair", "event_pair_sync", "do_bench"):
            values.append(queue.record() - stamp)
        if protocol in ("event_pair_sync", "wall_sync_each"):
            queue.sync()
        if protocol == "wall_sync_each":
            values.append(queue.now - start)
    if values:
        return stats.median(np.array(values))
    if protocol == "event_loop":
        return (queue.record() - stamp) / len(times)
    if protocol == "wall_sync_once":
        queue.sync()
        return (queue.now - start) / len(times)
    if protocol == "wall_nosync":
        return (queue.now - start) / len(times)
    return None
