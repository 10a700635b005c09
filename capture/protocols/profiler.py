"""The device's own start and end stamps, from the profiler: kernel self-time. The device column."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from traceanalyzer.capture.device import Call, Capability, Device, Profiled
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

    def measure(self, device: Device, call: Call, calls: int) -> list[float]:
        """Write the trace and return the self-time of each call. Raises :class:`Abstain` where no call has a kernel."""
        from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX

        device.synchronize()
        self.run = device.profile(call, calls, CAPTURE_PREFIX + self._name, self._trace)
        device.synchronize()
        if self.run.trace is None:
            raise Abstain("the profiler wrote no trace")
        return self_times(self.run.trace, self._name)


def self_times(trace: Path, name: str) -> list[float]:
    """Return the self-time of each annotated call of a trace, in nanoseconds. Raises :class:`Abstain` without any."""
    from traceanalyzer.analysis.pipeline import analyse
    from traceanalyzer.trace.reader import read

    analysis = analyse(read(trace))
    for op in analysis.operations:
        if op.iterations.name == name and len(op.self_ns):
            return [float(t) for t in op.self_ns.tolist()]
    if not len(analysis.trace.activities):
        raise Abstain("the trace holds no device rows: the work ran on the host, or the profiler saw no device")
    raise Abstain("no kernel in the trace was launched inside the annotated calls")
