"""A pair of device events around each call with a synchronise after it: dispatch plus kernel."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol


class EventPairSync(Protocol):
    """Record, call, record, barrier, for each call. The queue is empty whenever the first record arrives."""

    key: ClassVar[str] = "event_pair_sync"
    column: ClassVar[str] = "neither"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS,)
    per_call: ClassVar[bool] = True
    loop: ClassVar[bool] = False

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time between the two events of each call."""
        device.synchronize()
        readings = []
        for _ in range(calls):
            start = device.record()
            outputs = call()
            stop = device.record()
            device.synchronize(outputs)
            readings.append(device.elapsed_ns(start, stop))
        return readings
