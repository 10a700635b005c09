"""Wall clock with a synchronise after each call: dispatch, latency, kernel and synchronise in a row."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol


class WallSyncEach(Protocol):
    """Clock, call, barrier, clock. Each call meets an empty queue and pays for all of it."""

    key: ClassVar[str] = "wall_sync_each"
    column: ClassVar[str] = "neither"
    per_call: ClassVar[bool] = True
    loop: ClassVar[bool] = False

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time of each call to its barrier."""
        device.synchronize()
        readings = []
        for _ in range(calls):
            start = device.now_ns()
            device.synchronize(call())
            readings.append(float(device.now_ns() - start))
        return readings
