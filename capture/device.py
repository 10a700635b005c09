"""What a protocol may ask of a device, whatever the framework behind it.

One small class per framework implements this (``capture/frameworks``); the tests implement it over a queue
simulator. What a device lacks is said with :meth:`Device.lacks`, and the protocols that need it abstain with that
reason; nothing is imitated.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.sidecar import DeviceFacts

_clock_ns = time.perf_counter_ns
"""Bound before any code under capture runs, which may put another clock in its place."""

Call = Callable[[], Any]
"""One call of the thing being measured; returns its outputs."""


class Capability(StrEnum):
    """What protocols need beyond a clock and a barrier."""

    EVENTS = "events"
    BLOCKER = "blocker"
    CLEAR = "clear"
    GRAPH = "graph"
    PROFILER = "profiler"


@dataclass(frozen=True)
class Profiled:
    """A run under the profiler: host time of each call (ns), and where the trace was written (None: there is none)."""

    host_ns: list[int]
    trace: Path | None


class DeviceAdapter(ABC):
    """A device with its framework.

    ``framework`` is the name people know (pytorch, jax, tensorflow). ``holds_outputs`` is True where a barrier needs
    the outputs of the calls it waits for, so that a loop must keep them.
    """

    framework: str
    holds_outputs = False

    @abstractmethod
    def facts(self) -> DeviceFacts:
        """Return what the sidecar says of the device."""

    @abstractmethod
    def lacks(self, capability: Capability) -> str:
        """Return why the device cannot do something, empty if it can."""

    @abstractmethod
    def synchronize(self, outputs: Any = None) -> None:
        """Wait until the device has done all it was given; ``outputs`` are those of the calls to wait for."""

    def now_ns(self) -> int:
        """Return the host's monotonic clock."""
        return _clock_ns()

    # What follows is called only where `lacks` returned an empty string.

    def record(self) -> Any:
        """Enqueue an event record and return the event."""
        raise NotImplementedError(self.lacks(Capability.EVENTS))

    def elapsed_ns(self, start: Any, stop: Any) -> float:
        """Return the device time between two events that have been reached, as the framework resolves it."""
        raise NotImplementedError(self.lacks(Capability.EVENTS))

    def reached(self, event: Any) -> bool:
        """Return whether the device has come to an event."""
        raise NotImplementedError(self.lacks(Capability.EVENTS))

    def block(self, duration_ns: int) -> None:
        """Enqueue work that keeps the device busy for at least ``duration_ns``."""
        raise NotImplementedError(self.lacks(Capability.BLOCKER))

    def clear(self) -> None:
        """Enqueue a write over a buffer larger than the last cache."""
        raise NotImplementedError(self.lacks(Capability.CLEAR))

    def idle_kernel(self) -> None:
        """Enqueue the shortest kernel that the device can run; it may be captured into a graph."""
        raise NotImplementedError(self.lacks(Capability.GRAPH))

    def do_bench(self, call: Call) -> list[float] | None:  # noqa: ARG002 - for frameworks that have one
        """Return the readings (ns) of the framework's own do_bench, None where it has none."""
        return None

    def clear_bytes(self) -> int:
        """Return the size of that buffer."""
        raise NotImplementedError(self.lacks(Capability.CLEAR))

    def graph(self, call: Call, calls: int) -> Callable[[], None]:
        """Capture ``calls`` calls into one graph and return its replay. Raises what the framework raises."""
        raise NotImplementedError(self.lacks(Capability.GRAPH))

    def profile(self, call: Call, calls: int, annotation: str, trace: Path) -> Profiled:
        """Run calls under the profiler, each inside a range called ``annotation``, and write the trace (gzip JSON)."""
        raise NotImplementedError(self.lacks(Capability.PROFILER))

    # Facts that are None where the framework does not know them.

    def versions(self) -> dict[str, str]:
        """Return versions of framework, driver and runtime."""
        return {}

    def forget_peak_memory(self) -> None:  # noqa: B027 - most count none
        """Begin to count peak memory anew."""

    def peak_memory_bytes(self) -> int | None:
        """Return the most device memory the framework held since then."""
        return None

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an exception says that memory ran out."""
        text = str(error).lower()
        return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
