"""Closed forms of the timing protocols: what each prints per call, from the symbols of the timing model alone.

One in-order stream fed by one host thread, in steady state (docs/methodology.md; the forms for operations of
several kernels are the same max-plus algebra). All times in one unit, nanoseconds here; results in that unit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from traceanalyzer.record import record

PROTOCOLS = (
    "wall_nosync", "wall_sync_each", "wall_sync_once", "event_pair", "event_pair_sync", "event_loop", "do_bench",
    "graph_unrolled", "profiler_self_time",
)  # fmt: skip
"""Every protocol, by the key it has in the JSON report."""

TITLES = {
    "wall_nosync": "wall clock, no synchronise",
    "wall_sync_each": "wall clock, synchronise each call",
    "wall_sync_once": "wall clock, synchronise once",
    "event_pair": "event pair per call",
    "event_pair_sync": "event pair, synchronise each call",
    "event_loop": "events around the loop",
    "do_bench": "event pair behind a clear (do_bench)",
    "graph_unrolled": "calls unrolled in one graph",
    "profiler_self_time": "profiler self-time",
}
"""Names for people."""


@record(frozen=True)
class Symbols:
    """The symbols of the model, in nanoseconds.

    ``dispatch`` and ``kernels``: host time to each kernel's launch and its self-time, equally long. ``latency`` L:
    submission to device. ``record`` e: host cost of an event record. ``sync`` s: return cost of a synchronise.
    ``gap`` g: device time between rows in the queue. ``clear`` c and ``clear_dispatch`` d_c: a cache clear on the
    device and its host time. ``graph_dispatch``: host cost of a graph launch. ``calls`` N: calls in a loop.
    ``graph_calls`` n: calls unrolled in a graph. ``depth`` Q: queue entries. ``node_gap``: device time between the
    nodes of a graph, ``gap`` where it is None.
    """

    dispatch: tuple[float, ...]
    kernels: tuple[float, ...]
    latency: float = 4000
    record: float = 2000
    sync: float = 6000
    gap: float = 0
    clear: float = 85_000
    clear_dispatch: float = 6000
    graph_dispatch: float = 10_000
    calls: int = 100
    graph_calls: int = 100
    depth: int = 1024
    node_gap: float | None = None

    def __post_init__(self) -> None:
        if not self.kernels or len(self.dispatch) != len(self.kernels):
            raise ValueError("an operation needs one dispatch time for each of its kernels, and at least one kernel")
        if min(*self.dispatch, *self.kernels, self.latency, self.record, self.sync, self.gap, self.clear) < 0:
            raise ValueError("times of the model are not negative")

    @property
    def total_dispatch(self) -> float:
        """D, the host time of one call."""
        return sum(self.dispatch)

    @property
    def total_kernel(self) -> float:
        """K, the self-time of one call."""
        return sum(self.kernels)

    @property
    def device_time(self) -> float:
        """Device time of one call in a full queue: self-time and a gap for each kernel."""
        return self.total_kernel + len(self.kernels) * self.gap

    @property
    def paired_time(self) -> float:
        """Device time of one call between event records, which keep the gap to other calls outside."""
        return self.total_kernel + (len(self.kernels) - 1) * self.gap

    def launch_and_rest(self) -> list[tuple[float, float]]:
        """Return, for each kernel, host time to its launch and device time from its start to the call's end."""
        launched = list(accumulate(self.dispatch))
        rest = list(accumulate(reversed(self.kernels), lambda after, kernel: after + self.gap + kernel))
        return list(zip(launched, reversed(rest), strict=True))

    @cached_property
    def critical_path(self) -> float:
        """M, host start to last kernel end on an empty queue, less the launch latency."""
        return max(launched + rest for launched, rest in self.launch_and_rest())


def _loop_path(s: Symbols) -> float:
    """Critical path of N calls from an empty queue: the slowest is decided in the first call or in the last."""
    return s.critical_path + (s.calls - 1) * max(s.device_time, s.total_dispatch)


def wall_nosync(s: Symbols) -> float:
    """Return D until the queue is full; then launch calls wait for the device."""
    blocked = s.calls * len(s.kernels) - s.depth
    if blocked <= 0 or s.device_time <= s.total_dispatch:
        return s.total_dispatch
    started = s.dispatch[0] + s.latency + blocked * (s.device_time / len(s.kernels))
    return max(s.total_dispatch, started / s.calls)


def wall_sync_each(s: Symbols) -> float:
    """Return M + L + s: additive, never the kernel."""
    return s.critical_path + s.latency + s.sync


def wall_sync_once(s: Symbols) -> float:
    """Return [critical path of N calls + L + s] / N, which tends to max(D, K + gaps)."""
    return (_loop_path(s) + s.latency + s.sync) / s.calls


def event_pair(s: Symbols) -> float:
    """Return K with a backlog, else max(M, D + e) less what the previous call still covers."""
    host = s.total_dispatch + 2 * s.record
    if s.paired_time >= host:
        return s.paired_time
    path = s.critical_path
    return max(path, s.total_dispatch + s.record) - max(0.0, path - host)


def event_pair_sync(s: Symbols) -> float:
    """Return max(M, D + e): dispatch plus kernel, for one kernel."""
    return max(s.critical_path, s.total_dispatch + s.record)


def event_loop(s: Symbols) -> float:
    """Return [max(critical path of N calls, N D + e)] / N."""
    return max(_loop_path(s), s.calls * s.total_dispatch + s.record) / s.calls


def do_bench(s: Symbols) -> float:
    """Return K while clear and kernel outlast the host's period; else what the clear leaves uncovered."""
    host = s.clear_dispatch + s.total_dispatch + 2 * s.record
    if s.clear + s.paired_time >= host:
        return s.paired_time
    # times from the arrival of the clear
    end = max(s.record + s.critical_path, s.clear + s.paired_time)
    cleared = max(0.0, end - host) + s.clear
    return max(end, 2 * s.record + s.total_dispatch) - max(s.record, cleared)


def graph_unrolled(s: Symbols) -> float:
    """Return K + gaps + the graph's launch divided by its n calls."""
    gap = s.gap if s.node_gap is None else s.node_gap
    return s.total_kernel + len(s.kernels) * gap + (s.graph_dispatch - gap) / s.graph_calls


def profiler_self_time(s: Symbols) -> float:
    """Return K: blind to everything but the kernels."""
    return s.total_kernel


_FORMS: dict[str, Callable[[Symbols], float]] = {
    f.__name__: f
    for f in (
        wall_nosync, wall_sync_each, wall_sync_once, event_pair, event_pair_sync, event_loop, do_bench, graph_unrolled,
        profiler_self_time,
    )
}  # fmt: skip


def ladder(s: Symbols) -> dict[str, float]:
    """Return the reading of every protocol, in the order of :data:`PROTOCOLS`."""
    return {name: _FORMS[name](s) for name in PROTOCOLS}


def inverts_by_sum(a: Symbols, b: Symbols) -> bool:
    """Return whether a synchronise per call ranks two operations against their self-times (B.4)."""
    quick, slow = sorted((a, b), key=lambda s: s.total_kernel)
    return quick.total_dispatch - slow.total_dispatch > slow.total_kernel - quick.total_kernel


def inverts_by_max(a: Symbols, b: Symbols) -> bool:
    """Return whether unsynced event pairs rank two operations against their self-times (B.4)."""
    quick, slow = sorted((a, b), key=lambda s: s.total_kernel)
    reading = [max(s.total_dispatch + 2 * s.record, s.total_kernel) for s in (quick, slow)]
    return reading[0] > reading[1]
