"""What a device spent its time on: compute, communication, copies, nothing; exact, by interval algebra."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool, Int64, Trace

_COMMUNICATION = re.compile(r"(?:void )?(?:nccl|rccl|hccl|oneccl)|.*(?:nccl|rccl)(?:Dev|Generic)?Kernel", re.I | re.S)


def is_communication(name: str) -> bool:
    """Return whether a kernel is one of a collective library (NCCL, RCCL, HCCL, oneCCL), by its name."""
    return _COMMUNICATION.match(name) is not None


@dataclass(frozen=True)
class Breakdown:
    """One device, in nanoseconds.

    ``compute`` and ``communication`` are unions of kernels that are not, and are, of a collective library; ``copy`` the
    union of copies and fills. ``exposed_communication`` is the part that no compute kernel covers, ``exposed_copy`` the part
    that no kernel at all covers, so that ``busy = compute + exposed_communication + exposed_copy``, and ``idle = span - busy``.
    """

    device: int
    span_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    copy_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    communication_kernels: int

    @property
    def idle_ns(self) -> int:
        """Time within the span in which no row ran."""
        return self.span_ns - self.busy_ns

    @property
    def overlap_share(self) -> float | None:
        """Share of the communication that compute covers, None without communication."""
        if not self.communication_ns:
            return None
        return 1 - self.exposed_communication_ns / self.communication_ns


def breakdowns(trace: Trace) -> list[Breakdown]:
    """Return one breakdown per device with rows, in the order of ``trace.devices``."""
    rows = trace.activities
    if not len(rows):
        return []
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    device = device_of_lane[rows.lane]
    communication = communication_rows(trace)
    kernel = rows.kind == RowKind.KERNEL
    result = []
    for number in distinct(device).tolist():
        mine = device == number
        every = _union(trace, mine)
        compute, moving = _union(trace, mine & kernel & ~communication), _union(trace, mine & ~kernel)
        talking = _union(trace, mine & communication)
        kernels = _union(trace, mine & kernel)
        result.append(
            Breakdown(
                device=number,
                span_ns=int(every[1][-1] - every[0][0]),
                busy_ns=intervals.length(*every),
                compute_ns=intervals.length(*compute),
                communication_ns=intervals.length(*talking),
                copy_ns=intervals.length(*moving),
                exposed_communication_ns=_uncovered(talking, compute),
                exposed_copy_ns=_uncovered(moving, kernels),
                communication_kernels=int(np.count_nonzero(mine & communication)),
            )
        )
    return result


def communication_rows(trace: Trace) -> Bool:
    """Return which device rows are kernels of a collective library."""
    named = np.array([is_communication(name) for name in trace.names], dtype=bool)
    rows = trace.activities
    return (
        (rows.kind == RowKind.KERNEL) & named[rows.name]
        if len(rows) and len(named)
        else np.zeros(len(rows), dtype=bool)
    )


def _union(trace: Trace, mask: Bool) -> tuple[Int64, Int64]:
    return intervals.union(trace.activities.start_ns[mask], trace.activities.end_ns[mask])


def _uncovered(some: tuple[Int64, Int64], other: tuple[Int64, Int64]) -> int:
    return intervals.length(*some) - int(intervals.covered_length(*some, *other).sum())
