"""The device's own start and end stamps, from the profiler: kernel self-time. The device column."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter, Profiled
from traceanalyzer.capture.protocols.base import Abstain, Protocol


class Profiler(Protocol):
    """Calls in annotated ranges under the profiler; each call's reading is the sum of its kernels' durations.

    The readings are taken from the written trace with this project's own reader, so that the sidecar and every later
    report say the same number. It runs after the other protocols: its instrumentation slows the host.
    """

    key: ClassVar[str] = "profiler_self_time"
    column: ClassVar[str] = "device"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROFILER,)
    per_call: ClassVar[bool] = True

    def __init__(self, name: str, trace: Path) -> None:
        self._name, self._trace = name, trace
        self.run: Profiled | None = None
        self._kernels = 0.0

    def measure(self, device: DeviceAdapter, call: Call, calls: int) -> list[float]:
        """Write the trace and return the self-time of each call. Raises :class:`Abstain` where no call has a kernel."""
        from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX

        device.synchronize()
        self.run = device.profile(call, calls, CAPTURE_PREFIX + self._name, self._trace)
        device.synchronize()
        if self.run.trace is None:
            raise Abstain("the profiler wrote no trace")
        times, self._kernels = self_times(self.run.trace, self._name)
        return times

    def parameters(self) -> dict[str, str | int | float | bool]:
        """Return how many kernels a call has, where the trace shows them."""
        return {"kernels_per_call": self._kernels} if self._kernels else {}


def self_times(trace: Path, name: str) -> tuple[list[float], float]:
    """Return the self-time of each annotated call of a trace, in nanoseconds, and its median number of kernels. Raises :class:`Abstain` without any."""
    from traceanalyzer.analysis.pipeline import analyse
    from traceanalyzer.trace.reader import read

    analysis = analyse(read(trace))
    for op in analysis.operations:
        if op.iterations.name == name and len(op.self_ns):
            return [float(t) for t in op.self_ns.tolist()], float(op.kernels_per_iteration or 0.0)
    if not len(analysis.trace.activities):
        raise Abstain("the trace holds no device rows: the work ran on the host, or the profiler saw no device")
    raise Abstain("no kernel in the trace was launched inside the annotated calls")
