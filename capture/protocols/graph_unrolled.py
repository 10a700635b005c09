"""Many calls unrolled into one graph, replayed between two events: no dispatch at all. The cross-check of self-time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Abstain, Protocol
from traceanalyzer.capture.said import said


class GraphUnrolled(Protocol):
    """Record, replay of n calls, record, barrier; the time between the records divided by n."""

    key: ClassVar[str] = "graph_unrolled"
    column: ClassVar[str] = "device"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS, Capability.GRAPH)
    per_call: ClassVar[bool] = False

    def __init__(self) -> None:
        self._replay: Callable[[], None] | None = None
        self._calls = 0

    def prepare(self, device: DeviceAdapter, call: Call, calls: int) -> None:
        """Capture the graph and replay it once."""
        try:
            self._replay = device.graph(call, calls)
            self._replay()
            device.synchronize()
        except Exception as error:
            first = said(error, 160)
            raise Abstain(f"the function cannot be captured into a graph ({type(error).__name__}: {first})") from error
        self._calls = calls

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time per call of one replay."""
        assert self._replay is not None
        device.synchronize()
        start = device.record()
        self._replay()
        stop = device.record()
        device.synchronize()
        return [device.elapsed_ns(start, stop) / self._calls]

    def parameters(self) -> dict[str, str | int | float | bool]:
        """Return how many calls the graph holds."""
        return {"graph_calls": self._calls}
