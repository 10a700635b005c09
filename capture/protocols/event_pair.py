"""A pair of device events around each call, no synchronise in the loop: max(dispatch, kernel) when the queue runs dry."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol, pairs


class EventPair(Protocol):
    """Record, call, record, for each call; one barrier at the end."""

    key: ClassVar[str] = "event_pair"
    column: ClassVar[str] = "neither"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS,)
    per_call: ClassVar[bool] = True

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time between the two events of each call."""
        device.synchronize()
        events = []
        outputs = None
        for _ in range(calls):
            start = device.record()
            outputs = call()
            events.append((start, device.record()))
        device.synchronize(outputs)
        return list(pairs(device, events))
