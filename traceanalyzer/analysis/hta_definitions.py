"""HTA's quantities by HTA's definitions, from our tables: what its numbers should be when nothing else is different.

Used to verify a difference between its report and ours: a cause counts only if recomputing with it gives the number
(docs/second-opinion.md). Times come in twice: exact, and as the 64-bit floats that a JSON reader makes of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool, Int64, Trace

KERNEL_WAIT_NS = 30_000
LAUNCH_CALLS = frozenset(
    ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution")
)  # fmt: skip
"""The launch calls its launch statistics know."""

_COMMUNICATION = re.compile(r"nccl.*Kernel")
_MEMORY = re.compile(r"Memcpy|Memset|dma")
_NOT_COMPUTE = re.compile(r"nccl.*Kernel|.*Memcpy|Memset|.*Sync")


def is_compute(name: str) -> bool:
    """Return whether HTA takes a row of this name for computation."""
    return not (_COMMUNICATION.match(name) or _MEMORY.match(name) or _NOT_COMPUTE.match(name))


@dataclass(frozen=True)
class Quantities:
    """All in nanoseconds. ``idle``: stream to category to time; ``kernels``: name to (count, sum)."""

    span_ns: int
    busy_ns: int
    compute_ns: int
    idle: dict[int, dict[str, int]] = field(default_factory=dict)
    kernels: dict[str, tuple[int, int]] = field(default_factory=dict)
    launch_rows: int = 0
    delay_p50_ns: float | None = None


def quantities(trace: Trace, found: Waits, *, as_floats: bool) -> Quantities:
    """Return HTA's quantities of every device row; with ``as_floats`` from times that went through 64-bit floats.

    Raises ValueError for a trace without device rows.
    """
    rows = trace.activities
    if not len(rows):
        raise ValueError("the trace has no device rows")
    convert = _through_floats if as_floats else _exact
    origin = int(rows.start_ns.min())
    start = convert(rows.start_ns, origin)
    # durations are small numbers in the file, which a float holds exactly
    end = start + rows.dur_ns
    launch = np.zeros(len(rows), dtype=np.int64)
    launch[found.linked] = convert(found.launch_start_ns[found.linked], origin)
    every = intervals.union(start, end)
    compute = np.array([is_compute(name) for name in trace.names], dtype=bool)[rows.name]
    knows = known_launches(trace, found)
    delays = _delays(trace, start, launch, knows)
    return Quantities(
        span_ns=int(every[1][-1] - every[0][0]),
        busy_ns=intervals.length(*every),
        compute_ns=intervals.length(*intervals.union(start[compute], end[compute])),
        idle=_idle(trace, start, end, launch, found.linked),
        kernels=_kernels(trace),
        launch_rows=len(delays),
        delay_p50_ns=float(np.median(delays)) if len(delays) else None,
    )


def known_launches(trace: Trace, found: Waits) -> Bool:
    """Return which device rows have a launch call that HTA's launch statistics know."""
    known = np.array([api in LAUNCH_CALLS for api in trace.apis], dtype=bool)
    result = np.zeros(len(trace.activities), dtype=bool)
    if len(trace.calls):
        result[found.linked] = known[trace.calls.api[trace.activities.call[found.linked]]]
    return result


def unknown_launch_calls(trace: Trace, found: Waits) -> dict[str, int]:
    """Return the launch calls of linked device rows that HTA's launch statistics do not know, with their rows."""
    rest = found.linked & ~known_launches(trace, found)
    apis, counts = np.unique(trace.calls.api[trace.activities.call[rest]], return_counts=True)
    named = {trace.apis[a]: int(n) for a, n in zip(apis.tolist(), counts.tolist(), strict=True)}
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))


def delays_ns(trace: Trace, found: Waits) -> Int64:
    """Return, for every linked device row, the exact time from the end of its launch call to its start, 0 if negative."""
    origin = int(trace.activities.start_ns.min()) if len(trace.activities) else 0
    start = _exact(trace.activities.start_ns, origin)
    return _delays(trace, start, _exact(found.launch_start_ns, origin), found.linked)


def _delays(trace: Trace, start: Int64, launch: Int64, chosen: Bool) -> Int64:
    if not len(trace.calls) or not chosen.any():
        return np.empty(0, dtype=np.int64)
    call = trace.activities.call[chosen]
    length = (trace.calls.end_ns - trace.calls.start_ns)[call]
    return np.maximum(0, start[chosen] - launch[chosen] - length)


def _exact(times_ns: Int64, origin: int) -> Int64:
    return times_ns - origin


def _through_floats(times_ns: Int64, origin: int) -> Int64:
    """Return times less the origin in nanoseconds after both were 64-bit floats of microseconds."""
    # a whole number divided by a whole number in Python is rounded once, as reading the decimal text is
    floats: npt.NDArray[np.float64] = np.array([int(t) / 1000 for t in times_ns.tolist()], dtype=np.float64)
    return np.rint((floats - origin / 1000) * 1000).astype(np.int64)


def _idle(trace: Trace, start: Int64, end: Int64, launch: Int64, linked: Bool) -> dict[int, dict[str, int]]:
    """Return gaps per stream by HTA's rule: to the row before, whole, negative ones too."""
    streams = np.array([lane.stream for lane in trace.lanes], dtype=np.int64)[trace.activities.lane]
    result: dict[int, dict[str, int]] = {}
    for stream in distinct(streams).tolist():
        at = np.flatnonzero(streams == stream)
        at = at[np.argsort(start[at], kind="stable")]
        before = end[at[:-1]]
        later = at[1:]
        gap = start[later] - before
        host = linked[later] & (launch[later] > before)
        kernel = ~host & (gap < KERNEL_WAIT_NS)
        result[stream] = {
            "host_wait": int(gap[host].sum()),
            "kernel_wait": int(gap[kernel].sum()),
            "other": int(gap[~host & ~kernel].sum()),
        }
    return result


def _kernels(trace: Trace) -> dict[str, tuple[int, int]]:
    rows = trace.activities
    listed = np.array([is_compute(name) or bool(_COMMUNICATION.match(name)) for name in trace.names], dtype=bool)[
        rows.name
    ]
    names, where = np.unique(rows.name[listed], return_inverse=True)
    counts = np.bincount(where, minlength=len(names)).tolist()
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(sums, where, rows.dur_ns[listed])
    return {trace.names[n]: (counts[i], int(sums[i])) for i, n in enumerate(names.tolist())}
