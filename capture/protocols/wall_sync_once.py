"""Wall clock over a whole loop with one barrier: what a call costs end to end, dispatch and device overlapping."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol, run


class WallSyncOnce(Protocol):
    """Barrier, clock, calls, barrier, clock, divided by the calls. The end-to-end column."""

    key: ClassVar[str] = "wall_sync_once"
    column: ClassVar[str] = "end-to-end"
    per_call: ClassVar[bool] = False

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time per call of one block."""
        device.synchronize()
        start = device.now_ns()
        device.synchronize(run(device, call, calls))
        return [(device.now_ns() - start) / calls]
