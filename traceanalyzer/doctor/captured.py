"""What a capture knows of an operation that its trace does not, for rules."""

from __future__ import annotations

from traceanalyzer.analysis.pipeline import Analysis

NO_SIDECAR = "no sidecar lies beside the trace: clocks, other processes and results are known to a capture only"
"""The reason of every rule that lives on a capture's facts."""


def unprofiled_dispatch_ns(analysis: Analysis, operation: str) -> float | None:
    """Return the host time of a call without the profiler, None where no capture measured it."""
    sidecar = analysis.trace.meta.sidecar
    for record in sidecar.operations if sidecar else []:
        if record.name == operation and record.inflation is not None:
            return record.inflation.unprofiled_us * 1000
    return None
