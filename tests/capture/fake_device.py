"""A device with the queue model inside: every protocol of capture runs on it to the exact nanosecond, without a GPU.

Time is the simulator's: the host's clock moves only where a call, a record or a synchronise costs something. The
simulator (tests/queue_sim.py) imports nothing of the project, so that it is an oracle for protocols and closed forms.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine, Op
from traceanalyzer.capture.device import Call, Capability, DeviceAdapter, Profiled
from traceanalyzer.trace.sidecar import DeviceFacts


class FakeDevice(DeviceAdapter):
    """``missing`` names capabilities the device shall lack, with the reason. ``overhead``: what the profiler adds to each launch."""

    framework = "pytorch"

    def __init__(
        self,
        machine: Machine | None = None,
        *,
        missing: dict[Capability, str] | None = None,
        overhead: int = 0,
        clear_ns: int = 85_000,
    ) -> None:
        self.machine = machine or Machine()
        self.missing = missing or {}
        self.overhead = overhead
        self.clear_ns = clear_ns
        self.clear_cost = 6000
        self.node_gap = 0
        self.graph_cost = 10_000
        self.block_cost = 5000
        self.block_share = 1.0  # below 1 the blocker is shorter than it was asked to be
        self._profiling = False
        self._graph: list[tuple[str, int]] | None = None

    def op(self, parts: Op, name: str = "kernel", *, sync: bool = False, result: Any = None) -> Call:
        """Return a call that dispatches each (dispatch, kernel) of ``parts``; with ``sync`` it waits inside, as .item() does."""

        def call() -> Any:
            for number, (dispatch, kernel) in enumerate(parts):
                label = f"{name}_{number}"
                if self._graph is not None:
                    self._graph.append((label, kernel))
                else:
                    extra = self.overhead if self._profiling else 0
                    self.machine.launch(label, kernel, host_cost=dispatch + extra, call=min(3000, dispatch))
            if sync:
                if self._graph is not None:
                    raise RuntimeError("operation not permitted when stream is capturing")
                self.machine.sync("cudaStreamSynchronize")
            return result

        return call

    def now_ns(self) -> int:
        return self.machine.now

    def facts(self) -> DeviceFacts:
        return DeviceFacts("fake", "Simulated device")

    def lacks(self, capability: Capability) -> str:
        return self.missing.get(capability, "")

    def synchronize(self, outputs: Any = None) -> None:
        self.machine.sync()

    def record(self) -> int:
        self.machine.record()
        return self.machine.stamps[-1]

    def elapsed_ns(self, start: int, stop: int) -> float:
        assert self.machine.now >= stop, "an event was read before the device came to it"
        return float(stop - start)

    def reached(self, event: int) -> bool:
        return self.machine.now >= event

    def block(self, duration_ns: int) -> None:
        self.machine.launch("spin", int(duration_ns * self.block_share), host_cost=self.block_cost)

    def clear(self) -> None:
        self.machine.launch("clear", self.clear_ns, host_cost=self.clear_cost, kind="memset", api="cudaMemsetAsync")

    def idle_kernel(self) -> None:
        if self._graph is not None:
            self._graph.append(("idle", 1000))
        else:
            self.machine.launch("idle", 1000, host_cost=5000, call=3000)

    def clear_bytes(self) -> int:
        return 256 << 20

    def graph(self, call: Call, calls: int) -> Callable[[], None]:
        self._graph = nodes = []
        try:
            for _ in range(calls):
                call()
        finally:
            self._graph = None

        def replay() -> None:
            self.machine.graph(nodes, host_cost=self.graph_cost, call=5000, node_gap=self.node_gap)

        return replay

    def profile(self, call: Call, calls: int, annotation: str, trace: Path) -> Profiled:
        self.machine.host.clear()
        self.machine.device.clear()
        self._profiling = True
        host = []
        outputs = None
        try:
            for _ in range(calls):
                start = self.machine.now
                outputs = call()
                self.machine.annotate(annotation, start)
                host.append(self.machine.now - start)
        finally:
            self._profiling = False
        self.synchronize(outputs)
        with gzip.open(trace, "wt", encoding="utf-8") as file:
            file.write(to_json(document(self.machine)))
        return Profiled(host, trace)
