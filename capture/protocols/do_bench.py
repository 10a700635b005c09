"""``triton.testing.do_bench``: an event pair per call behind a cache clear that also hides dispatch, where it is long enough."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Protocol, pairs

LONGEST_NS = 5_000_000
"""triton's function makes at least eight calls, more than a round has for a call as long as this."""


class DoBench(Protocol):
    """Clear, record, call, record, for each call; one barrier at the end.

    Through triton's own function where it is installed, which chooses how many calls it makes; elsewhere, and for calls longer
    than :data:`LONGEST_NS`, the same loop
    over the device's clear, in the number of calls this capture makes for every protocol.
    """

    key: ClassVar[str] = "do_bench"
    column: ClassVar[str] = "device"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS, Capability.CLEAR)
    per_call: ClassVar[bool] = True

    def __init__(self) -> None:
        self._clear_bytes = 0
        self._through = "this capture"
        self._long = False

    def prepare(self, device: DeviceAdapter, call: Call, calls: int) -> None:
        """Allocate the buffer, outside of any timing."""
        device.clear()
        device.synchronize()
        self._clear_bytes = device.clear_bytes()
        start = device.now_ns()
        device.synchronize(call())
        self._long = device.now_ns() - start > LONGEST_NS

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time between the two events of each call."""
        device.synchronize()
        native = None if self._long else device.do_bench(call)
        if native is not None:
            self._through = "triton.testing.do_bench"
            return native
        events = []
        outputs = None
        for _ in range(calls):
            device.clear()
            start = device.record()
            outputs = call()
            events.append((start, device.record()))
        device.synchronize(outputs)
        return list(pairs(device, events))

    def parameters(self) -> dict[str, str | int | float | bool]:
        """Return the size of the cleared buffer, and whose loop it was."""
        return {"clear_bytes": self._clear_bytes, "through": self._through}
