"""The lanes of rpd's and rocprof's Chrome JSON: processes ``GPUN``, queues for lanes."""

from __future__ import annotations

import re
from typing import ClassVar

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.lanes import HostRow, KnownRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.rocm.names import UNRECORDED, device_kind, host_kind
from traceanalyzer.trace.whole_numbers import lane_number

_RPD = re.compile(r"\AGPU([0-9]+)\Z")
_ROCPROF = re.compile(r"\A[0-9]+ GPU([0-9]+)\Z")


class RpdLanes(LaneReader):
    """Lanes of the JSON form of rpd: the kind of a device row is in ``args.desc``; ``api_op`` flow events join both sides."""

    flavour = "rpd"
    flow_categories: ClassVar[tuple[str, ...]] = ("api_op",)
    doubtful = UNRECORDED
    _process = _RPD

    def device_of(self, lane: NamedLane) -> int | None:
        """Return N of ``GPUN``."""
        found = self._process.search(lane.process)
        return lane_number(found[1]) if found else None

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return the queue number, which is the lane's."""
        digits = re.findall(r"[0-9]+", lane.tid)
        return lane_number(digits[-1]) if digits else 0

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return a copy, fill or kernel by its description, else by its name."""
        kind = device_kind(row.note, row.name)
        return KnownRow(kind, row.name, why_skipped="marker or barrier in a queue" if kind is RowKind.SKIP else "")

    def host_row(self, row: NamedRow) -> HostRow:
        """Return calls, and ranges that the program marked."""
        return HostRow(*host_kind(row.name, row.note))


class RocprofLanes(RpdLanes):
    """Lanes of rocprof's JSON (version 1): processes ``7 GPU0``; no ids join both sides."""

    flavour = "rocprof"
    flow_categories = ()
    _process = _ROCPROF
