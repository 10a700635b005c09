"""The lanes of a JAX trace in Chrome JSON.

Device rows are on the lanes ``Stream #N(...)`` of a process ``/device:GPU:N``; XLA adds lanes to that process (ops, modules,
steps) which show the same work again. Host rows that carry a correlation id are calls.
"""

from __future__ import annotations

import re

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.jax.details import copy_of, launch_config
from traceanalyzer.trace.lanes import HostRow, KnownRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.launch_names import API_CLASSES
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.rocm.names import device_kind
from traceanalyzer.trace.whole_numbers import lane_number

_DEVICE = re.compile(r"/device:(?:GPU|TPU):([0-9]+)")
_STREAM = re.compile(r"stream\s*#?\s*([0-9]+)", re.I)
_COPY = re.compile(r"\Amem_?cpy|\(mem_?cpy|\bcopy(?:H2D|D2H|D2D)", re.I)
_FILL = re.compile(r"\Amem_?set|\(mem_?set", re.I)
_COMPUTES = re.compile(r"compute|kernel", re.I)
_DERIVED = frozenset({
    "Steps", "XLA Modules", "XLA TraceMe", "Framework Ops", "Framework Name Scope", "Source code", "Source", "Launch Stats",
    "Async XLA Ops", "TensorFlow Name Scope", "TensorFlow Ops",
})  # fmt: skip
UNRECORDED = frozenset(
    {
        RecordedPart.OVERHEADS,
        RecordedPart.INSTRUMENTATION,
        RecordedPart.SYNC_CALLS,
        RecordedPart.ALLOCATIONS,
        RecordedPart.MODULE_LOADS,
    }
)
"""What XLA's profiler does not record, or not always: it traces few calls other than launches and copies."""
STEP_NOTE = "step_num"


class JaxLanes(LaneReader):
    """Lanes of ``*.trace.json.gz``."""

    flavour = "jax"
    inner_range_repeats = True
    doubtful = UNRECORDED

    def knows(self, process: str) -> bool:
        """Return whether a process is XLA's host."""
        return process.startswith("/host:")

    def device_of(self, lane: NamedLane) -> int | None:
        """Return N of ``/device:GPU:N``."""
        found = _DEVICE.search(lane.process)
        return lane_number(found[1]) if found else None

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return N of ``Stream #N(...)``; other lanes are taken for streams only where none is named so."""
        return stream_of(lane)

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return a copy or fill by the names of lane and row, else a kernel."""
        return device_row(row.lane.name, row.name, row.note)

    def host_row(self, row: NamedRow) -> HostRow:
        """Return a call for rows with a correlation id, a range for steps, an operator for the runtime's own rows."""
        return host_row(row.name, row.note, has_id=row.has_id)


def stream_of(lane: NamedLane) -> int | None:
    """Return the number of a stream lane; None for a lane that is derived from the streams."""
    if found := _STREAM.search(lane.name):
        return lane_number(found[1])
    if lane.name in _DERIVED:
        return None
    if any(_STREAM.search(name) for name in lane.siblings):
        return None
    digits = re.findall(r"[0-9]+", lane.tid)
    return lane_number(digits[-1]) if digits else 0


def device_row(lane_name: str, name: str, details: str) -> KnownRow:
    """Return what a device row of XLA is: by its name, else by a lane that holds nothing but copies or fills."""
    of_lane = "" if _COMPUTES.search(lane_name) else lane_name
    for text in (name, of_lane):
        if _COPY.search(text):
            copy_name, moved = copy_of(name, details)
            return KnownRow(RowKind.MEMCPY, copy_name, moved_bytes=moved)
        if _FILL.search(text):
            return KnownRow(RowKind.MEMSET, name)
    kind = device_kind("", name) if name.startswith("__amd_rocclr") else RowKind.KERNEL
    return KnownRow(kind, name, launch_config(details))


def host_row(name: str, note: str, *, has_id: bool) -> HostRow:
    """Return what a host row of XLA is: ``cuGraphLaunch (CudaGraph:2)`` is a call of cuGraphLaunch."""
    api = name.partition(" (")[0]
    if has_id or api in API_CLASSES:
        return HostRow(RowKind.CALL, api)
    if note == STEP_NOTE or name.startswith("PjitFunction("):
        return HostRow(RowKind.RANGE, name)
    if name.startswith("$"):  # the Python tracer
        return HostRow(RowKind.SKIP, "Python frame")
    return HostRow(RowKind.HOST_OP, name)
