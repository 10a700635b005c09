"""Two device events around a whole loop: the larger of dispatch and kernel, per call."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol, run


class EventLoop(Protocol):
    """Record, calls, record, barrier; the time between the records divided by the calls."""

    key: ClassVar[str] = "event_loop"
    column: ClassVar[str] = "neither"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS,)
    per_call: ClassVar[bool] = False

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time per call of one block."""
        device.synchronize()
        start = device.record()
        outputs = run(device, call, calls)
        stop = device.record()
        device.synchronize(outputs)
        return [device.elapsed_ns(start, stop) / calls]
