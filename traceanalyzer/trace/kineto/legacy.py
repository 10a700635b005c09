"""PyTorch's autograd exporter of 2020: a process "CUDA functions", one lane a device."""

from __future__ import annotations

import re

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.lanes import HostRow, KnownRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.launch_names import API_CLASSES
from traceanalyzer.trace.whole_numbers import lane_number

_COPY = re.compile(r"mem_?cpy", re.I)
_FILL = re.compile(r"mem_?set", re.I)


class LegacyLanes(LaneReader):
    """Lanes of ``torch.autograd.profiler`` before Kineto."""

    flavour = "legacy-autograd"

    def device_of(self, lane: NamedLane) -> int | None:
        """Return the device, whose number is the lane's."""
        if lane.pid != "CUDA functions":
            return None
        return lane_number(lane.tid) if re.fullmatch(r"[0-9]+", lane.tid) else 0

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return stream 0: streams were not recorded."""
        return 0 if lane.pid else None

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return a copy or fill by its name, else a kernel."""
        kind = (
            RowKind.MEMCPY if _COPY.search(row.name) else RowKind.MEMSET if _FILL.search(row.name) else RowKind.KERNEL
        )
        return KnownRow(kind, row.name)

    def host_row(self, row: NamedRow) -> HostRow:
        """Return a call where the row is named like one; the others are operators without ids."""
        if row.name in API_CLASSES:
            return HostRow(RowKind.CALL, row.name)
        return HostRow(RowKind.SKIP, "no category")
