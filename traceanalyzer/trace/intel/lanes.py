"""The lanes of unitrace's Chrome JSON: device rows have the category gpu_op, calls cpu_op, flow events Flow_H2D_* join them."""

from __future__ import annotations

import re

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.lanes import NO_CONFIG, HostRow, KnownRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.tables import NO_ID, Config
from traceanalyzer.trace.whole_numbers import byte_count, lane_number

GPU_OP = "gpu_op"
_DEVICE_NUMBER = re.compile(r"#([0-9]+)(?:\.[0-9]+)?\s*\Z")
_SUFFIX = re.compile(r"\[(?:SIMD\w*|[^\[\]{}]*\{)[^\[\]]*\]\Z")
_DIMS = re.compile(r"\{\s*([0-9]{1,10})\s*[;,]\s*([0-9]{1,10})\s*[;,]\s*([0-9]{1,10})\s*\}")
_BYTES = re.compile(r"\[([0-9]{1,18})\]\Z")
_WAITS = re.compile(r"Barrier|EventReset|SignalEvent|WaitOnEvents|QueryKernelTimestamps|WriteGlobalTimestamp")


class UnitraceLanes(LaneReader):
    """Lanes of unitrace; a lane is an engine or queue of one host thread."""

    flavour = "unitrace"
    flow_categories = ("Flow_H2D_", "CL_Flow_H2D_")

    def __init__(self) -> None:
        self._streams: dict[str, dict[str, int]] = {}

    def device_of(self, lane: NamedLane) -> int | None:
        """Return N of ``DEVICE<host>0:3a:0:0 #N``; rows of category gpu_op are on a device however it is named."""
        if lane.label != GPU_OP and "DEVICE<" not in lane.process:
            return None
        found = _DEVICE_NUMBER.search(lane.process)
        return lane_number(found[1]) if found else 0

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return a number for each lane of the device, in order of sight."""
        streams = self._streams.setdefault(lane.pid, {})
        return streams.setdefault(lane.tid, len(streams))

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return kernels with grid and group size, copies and fills with their bytes."""
        if _WAITS.search(row.name):
            return KnownRow(RowKind.SKIP, row.name, why_skipped="barrier or event command of a queue")
        if "MemoryCopy" in row.name or "MemoryFill" in row.name:
            moved = _BYTES.search(row.name)
            kind = RowKind.MEMCPY if "MemoryCopy" in row.name else RowKind.MEMSET
            return KnownRow(kind, _BYTES.sub("", row.name), moved_bytes=byte_count(moved[1]) if moved else NO_ID)
        suffix = _SUFFIX.search(row.name)
        dims = [tuple(map(int, d)) for d in _DIMS.findall(suffix[0])] if suffix else []
        config = Config(dims[0], dims[1], None, None) if len(dims) == 2 else NO_CONFIG
        return KnownRow(RowKind.KERNEL, _SUFFIX.sub("", row.name) if len(dims) == 2 else row.name, config)

    def host_row(self, row: NamedRow) -> HostRow:
        """Return a call for Level Zero, OpenCL and SYCL functions, an operator for the rest."""
        is_call = re.match(r"ze[A-Z]|zes[A-Z]|cl[A-Z]|ur[A-Z]|pi[A-Z]", row.name)
        return HostRow(RowKind.CALL if is_call else RowKind.HOST_OP, row.name)
