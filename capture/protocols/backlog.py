"""Event pairs behind a blocker: the device is kept busy until the host has enqueued every call, so that pairs read the kernel."""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter
from traceanalyzer.capture.protocols.base import Abstain, Protocol, pairs

MOST_CALLS = 300
"""Three queue entries per call of one kernel, and a queue holds about 1,024: beyond it launch calls would block behind the blocker."""
_TRIES = 9
"""Enough to come from :data:`MOST_CALLS` down to one call, for operations of hundreds of kernels."""


class Backlog(Protocol):
    """Blocker, then record, call, record for each call; the blocker must outlast the host.

    Whether it did is checked, not assumed: an event behind the blocker may not have been reached when the last record
    is enqueued. If it was, the readings are discarded, the blocker per call is doubled and half as many calls go behind it:
    the host was slower than thought, or the calls filled the queue and the host stood waiting for the blocker itself.
    """

    key: ClassVar[str] = "backlog"
    column: ClassVar[str] = "device"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.EVENTS, Capability.BLOCKER)
    per_call: ClassVar[bool] = True
    loop: ClassVar[bool] = False

    def __init__(self) -> None:
        self._block_ns = 0
        self._discarded = 0
        self._most = MOST_CALLS

    def prepare(self, device: DeviceAdapter, call: Call, calls: int) -> None:
        """Estimate the host time of a call with its records, and bring the blocker into memory."""
        device.block(1000)
        device.synchronize()
        start = device.now_ns()
        few = 5
        outputs = None
        for _ in range(few):
            device.record()
            outputs = call()
            device.record()
        self._block_ns = 2 * (device.now_ns() - start) // few
        device.synchronize(outputs)

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Return the time between the two events of each call."""
        readings: list[float] = []
        while len(readings) < calls:
            readings += self._batch(device, call, calls - len(readings))
        return readings

    def _batch(self, device: DeviceAdapter, call: Call, wanted: int) -> list[float]:
        for _ in range(_TRIES):
            calls = min(self._most, wanted)
            device.synchronize()
            device.block(self._block_ns * calls)
            released = device.record()
            events = []
            outputs = None
            for _ in range(calls):
                start = device.record()
                outputs = call()
                events.append((start, device.record()))
            in_time = not device.reached(released)
            device.synchronize(outputs)
            if in_time:
                return list(pairs(device, events))
            self._block_ns *= 2
            self._most = max(1, calls // 2)
            self._discarded += calls
        raise Abstain(
            f"a blocker of {self._block_ns * calls / 2e6:.3g} ms ran out before {calls} calls were enqueued: "
            "the function waits for the device inside, so no backlog can build"
        )

    def parameters(self) -> dict[str, str | int | float | bool]:
        """Return the blocker's length per call and how many readings were discarded because it ran out."""
        return {
            "block_us_per_call": self._block_ns / 1000,
            "discarded_calls": self._discarded,
            "most_calls_behind_it": self._most,
        }
