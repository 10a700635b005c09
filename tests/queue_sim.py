"""An independent simulator of host threads that feed in-order streams, in integer nanoseconds.

It imports nothing of traceanalyzer: it is the oracle for its timing model and analyses. The host runs a program
of steps in order; each stream takes entries in order; an entry arrives ``latency`` after the call that submitted
it ended and starts when it has arrived and its predecessor has ended (``gap`` later for work behind work). Event
records are entries without length that stamp the moment they are reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class HostRow:
    """A host call or operator on the host's timeline."""

    kind: str  # "call", "op", "range" or "overhead"
    name: str
    start: int
    end: int
    corr: int = 0
    tid: int = 1


@dataclass
class DeviceRow:
    """A device row: what ran, where and when."""

    kind: str  # "kernel", "memcpy" or "memset"
    name: str
    start: int
    end: int
    stream: int
    corr: int
    node: int | None = None
    grid: tuple[int, int, int] = (128, 1, 1)


@dataclass
class Machine:
    """The machine and everything that happened on it. All times in nanoseconds.

    latency: submission to arrival on the device. gap: device time between two pieces of work that stand in the
    queue. record_cost: host time of an event record. sync_cost: return of a synchronise after the work ended.
    depth: entries a stream holds; a launch call into a full one blocks until one has started.
    jitter: relative standard deviation of host and device times, from ``rng``.
    """

    latency: int = 4000
    gap: int = 0
    record_cost: int = 2000
    sync_cost: int = 6000
    depth: int = 1024
    jitter: float = 0.0
    rng: np.random.Generator | None = None
    now: int = 1_000_000
    tid: int = 1
    host: list[HostRow] = field(default_factory=list)
    device: list[DeviceRow] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    _free: dict[int, int] = field(default_factory=dict)
    _worked: dict[int, bool] = field(default_factory=dict)
    _starts: dict[int, list[int]] = field(default_factory=dict)
    _corr: int = 100
    _clocks: dict[int, int] = field(default_factory=dict)

    # -- threads ----------------------------------------------------------------------------------------

    def hand_over(self, tid: int, cost: int = 0) -> None:
        """Go on on another thread, which waited for this one: backward passes run on a thread of autograd."""
        self.tid = tid
        self.now += cost

    def switch(self, tid: int) -> None:
        """Go on on another thread that has run by itself since it was left."""
        self._clocks[self.tid] = self.now
        self.tid = tid
        self.now = self._clocks.get(tid, self.now)

    def vary(self, duration: int) -> int:
        """Return the duration with the machine's jitter."""
        if self.rng is None or not self.jitter:
            return duration
        # the sum of twelve uniforms: nearly normal, and the same bits in every numpy version
        return max(1, round(duration * (1 + self.jitter * (float(self.rng.random(12).sum()) - 6))))

    # -- host steps -------------------------------------------------------------------------------------

    def work(self, duration: int, name: str = "") -> None:
        """Let the host be busy; with a name it leaves an operator row."""
        start = self.now
        self.now += self.vary(duration)
        if name:
            self.host.append(HostRow("op", name, start, self.now, tid=self.tid))

    def call(self, name: str, duration: int) -> None:
        """Make a runtime call that touches no stream (an allocation, a module load)."""
        self._call(name, self.now, duration)

    def _call(self, name: str, start: int, duration: int, corr: int = 0) -> int:
        self._corr += 1
        corr = corr or self._corr
        self.now = start + duration
        self.host.append(HostRow("call", name, start, self.now, corr, self.tid))
        return corr

    def _enter(self, stream: int) -> int:
        """Return when an entry submitted now arrives; blocks the host while the stream is full."""
        starts = self._starts.setdefault(stream, [])
        if len(starts) >= self.depth:
            self.now = max(self.now, starts[-self.depth])
        return self.now + self.latency

    def _run(self, stream: int, arrival: int, duration: int, gap: int) -> tuple[int, int]:
        free = self._free.get(stream, 0)
        start = max(arrival, free + (gap if self._worked.get(stream) else 0))
        self._free[stream] = start + duration
        self._worked[stream] = True
        self._starts[stream].append(start)
        return start, start + duration

    def launch(
        self, name: str, duration: int, *, host_cost: int = 0, call: int = 0, stream: int = 7, api: str = "cudaLaunchKernel",
        kind: str = "kernel", grid: tuple[int, int, int] = (128, 1, 1),
    ) -> None:  # fmt: skip
        """Dispatch one piece of work: ``host_cost`` before the call, of which the last ``call`` is the call itself."""
        cost = self.vary(host_cost)
        self.now += max(0, cost - call)
        begun = self.now
        self.now += min(call, cost)
        arrival = self._enter(stream)
        self._corr += 1
        corr = self._corr
        self.host.append(HostRow("call", api, begun, self.now, corr, self.tid))
        start, end = self._run(stream, arrival, self.vary(duration), self.gap)
        self.device.append(DeviceRow(kind, name, start, end, stream, corr, grid=grid))

    def graph(
        self, names_and_durations: list[tuple[str, int]], *, host_cost: int, call: int, node_gap: int, stream: int = 7,
        api: str = "cudaGraphLaunch",
    ) -> None:  # fmt: skip
        """Launch a graph: one call, its nodes ``node_gap`` apart."""
        self.now += max(0, self.vary(host_cost) - call)
        begun = self.now
        self.now += call
        arrival = self._enter(stream)
        self._corr += 1
        corr = self._corr
        self.host.append(HostRow("call", api, begun, self.now, corr, self.tid))
        for node, (name, duration) in enumerate(names_and_durations):
            start, end = self._run(
                stream, arrival if node == 0 else 0, self.vary(duration), node_gap if node else self.gap
            )
            self.device.append(DeviceRow("kernel", name, start, end, stream, corr, node))

    def record(self, stream: int = 7) -> None:
        """Record an event: its stamp goes to ``stamps``."""
        begun = self.now
        self.now += self.record_cost
        arrival = self._enter(stream)
        self._corr += 1
        self.host.append(HostRow("call", "cudaEventRecord", begun, self.now, self._corr, self.tid))
        stamp = max(arrival, self._free.get(stream, 0))
        self._free[stream] = stamp
        self._worked[stream] = False  # the gap lies between two pieces of work; a record is none
        self._starts[stream].append(stamp)
        self.stamps.append(stamp)

    def sync(self, api: str = "cudaDeviceSynchronize", stream: int | None = None) -> None:
        """Wait for all streams, or for one."""
        begun = self.now
        done = max([self.now, *(t for s, t in self._free.items() if stream in (None, s))])
        self.now = done + self.sync_cost
        self._corr += 1
        self.host.append(HostRow("call", api, begun, self.now, self._corr, self.tid))

    def copy(
        self,
        duration: int,
        *,
        call: int,
        stream: int = 7,
        waits: bool = True,
        name: str = "Memcpy DtoH (Device -> Pageable)",
    ) -> None:
        """Copy: the call returns when the copy has ended, or at once where it does not wait (pinned memory)."""
        begun = self.now
        self.now += call
        arrival = self._enter(stream)
        self._corr += 1
        corr = self._corr
        start, end = self._run(stream, arrival, self.vary(duration), self.gap)
        if waits:
            self.now = max(self.now, end + self.sync_cost)
        self.host.append(HostRow("call", "cudaMemcpyAsync", begun, self.now, corr, self.tid))
        self.device.append(DeviceRow("memcpy", name, start, end, stream, corr))

    def item(self, *, host_cost: int, duration: int = 1500, call: int = 4000, stream: int = 7) -> None:
        """Read a number back as ``.item()`` does: an operator with a copy that waits and a synchronise."""
        begun = self.now
        self.now += host_cost
        self.copy(duration, call=call, stream=stream)
        self.sync("cudaStreamSynchronize", stream)
        self.host.append(HostRow("op", "aten::item", begun, self.now, tid=self.tid))

    def data(self, duration: int) -> None:
        """Wait for a batch."""
        begun = self.now
        self.now += self.vary(duration)
        self.host.append(
            HostRow(
                "range", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begun, self.now, tid=self.tid
            )
        )

    def fetch(self, ready: int, cost: int = 2000) -> None:
        """Take a batch from workers that have it ready at an instant."""
        begun = self.now
        self.now = max(self.now + cost, ready)
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        self.host.append(HostRow("range", name, begun, self.now, tid=self.tid))

    def annotate(self, name: str, start: int) -> None:
        """Leave a range from ``start`` to now."""
        self.host.append(HostRow("range", name, start, self.now, tid=self.tid))


Op = list[tuple[int, int]]
"""An operation: (dispatch, kernel) of each of its kernels, in nanoseconds."""


def _run_op(machine: Machine, op: Op, call: int = 0) -> None:
    for j, (dispatch, kernel) in enumerate(op):
        machine.launch(f"kernel_{j}", kernel, host_cost=dispatch, call=call)


def reading(
    protocol: str, op: Op, machine: Machine, *, n: int = 400, clear: int = 85_000, clear_cost: int = 6000
) -> float:
    """Return what a protocol prints per call in steady state, in nanoseconds (docs/methodology.md)."""
    if protocol == "wall_sync_each":
        values = []
        for _ in range(n):
            start = machine.now
            _run_op(machine, op)
            machine.sync()
            values.append(machine.now - start)
        return float(np.median(values))
    if protocol in ("wall_sync_once", "wall_nosync"):
        machine.sync()
        start = machine.now
        for _ in range(n):
            _run_op(machine, op)
        if protocol == "wall_sync_once":
            machine.sync()
        return (machine.now - start) / n
    if protocol == "event_loop":
        machine.sync()
        machine.record()
        for _ in range(n):
            _run_op(machine, op)
        machine.record()
        return (machine.stamps[-1] - machine.stamps[-2]) / n
    if protocol in ("event_pair", "event_pair_sync", "do_bench"):
        for _ in range(n):
            if protocol == "do_bench":
                machine.launch("clear", clear, host_cost=clear_cost, kind="memset", api="cudaMemsetAsync")
            machine.record()
            _run_op(machine, op)
            machine.record()
            if protocol == "event_pair_sync":
                machine.sync()
        pairs = np.array(machine.stamps).reshape(-1, 2)
        return float(np.median((pairs[:, 1] - pairs[:, 0])[n // 2 :]))
    if protocol == "graph_unrolled":
        machine.sync()
        nodes = [(f"kernel_{j}", kernel) for _ in range(n) for j, (_, kernel) in enumerate(op)]
        machine.record()
        machine.graph(nodes, host_cost=10_000, call=5000, node_gap=machine.gap)
        machine.record()
        return (machine.stamps[-1] - machine.stamps[-2]) / n
    if protocol == "profiler_self_time":
        for _ in range(n):
            _run_op(machine, op)
        return sum(r.end - r.start for r in machine.device) / n
    raise ValueError(protocol)
