"""Wall clock without any synchronise: how long the host takes to enqueue a call. The classic mistake, and a fact worth having."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol, run


class WallNoSync(Protocol):
    """Clock, calls, clock; the barrier comes after the second reading. Gives dispatch until the queue is full."""

    key: ClassVar[str] = "wall_nosync"
    column: ClassVar[str] = "neither"
    per_call: ClassVar[bool] = False

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the host time per call of one block."""
        device.synchronize()
        start = device.now_ns()
        outputs = run(device, call, calls)
        elapsed = device.now_ns() - start
        device.synchronize(outputs)
        return [elapsed / calls]
