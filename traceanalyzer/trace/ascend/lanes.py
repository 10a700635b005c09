"""The lanes of Ascend's trace_view.json.

Device rows are on the streams of "Ascend Hardware". "Overlap Analysis" (Computing, Communication, Free) and other processes
labelled NPU are derived from those: they are no devices. Host calls are the rows of CANN; HostToDevice flow events join them.
"""

from __future__ import annotations

import re

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.lanes import DERIVED, HostRow, KnownRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.whole_numbers import lane_number

_HARDWARE = re.compile(r"\A(?:Ascend Hardware|NPU)\b\s*([0-9]*)")
_DERIVED = re.compile(
    r"\A(?:Overlap Analysis|Communication|HCCL|AI Core|Stars|HBM|DDR|LLC|NPU MEM|Acc PMU|PCIe|RoCE|NIC)", re.I
)
_STREAM = re.compile(r"stream\s*#?\s*([0-9]+)", re.I)
_CALLS = re.compile(r"\A(AscendCL|Node|Runtime|Model|HCCL)@(.+)", re.S)
_WAITS = re.compile(
    r"\A(?:EVENT_(?:RECORD|WAIT|RESET)|NOTIFY_(?:RECORD|WAIT)|Notify_(?:Record|Wait)|PLACE_HOLDER)", re.I
)
_COPY = re.compile(r"mem_?cpy|\bSDMA", re.I)
_FILL = re.compile(r"\Amem_?set", re.I)


class AscendLanes(LaneReader):
    """Lanes of trace_view.json."""

    flavour = "ascend"
    flow_categories = ("HostToDevice",)

    def knows(self, process: str) -> bool:
        """Return whether a process is CANN's host side."""
        return process == "CANN"

    def device_of(self, lane: NamedLane) -> int | None:
        """Return the device of "Ascend Hardware"; its number is in the label ("NPU 1") in files of several devices."""
        found = _HARDWARE.search(lane.process)
        if found is None and (_DERIVED.search(lane.process) or not re.fullmatch(r"NPU\s*[0-9]*", lane.label.strip())):
            return None
        digits = (found[1] if found else "") or "".join(re.findall(r"[0-9]+", lane.label))[:6]
        return lane_number(digits) if digits else 0

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return N of ``Stream N``, else the lane's number where no lane is named so."""
        if found := _STREAM.search(lane.name):
            return lane_number(found[1])
        if any(_STREAM.search(name) for name in lane.siblings):
            return None
        digits = re.findall(r"[0-9]+", lane.tid)
        return lane_number(digits[-1]) if digits else 0

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return a task by its name; tasks that only wait for an event are none."""
        if _WAITS.search(row.name) or _WAITS.search(row.note):
            return KnownRow(RowKind.SKIP, row.name, why_skipped="event or notify task of a stream")
        if _COPY.search(row.name) and "_" not in row.name.replace("MEMCPY_ASYNC", "").replace("MEMCPY_SYNC", ""):
            return KnownRow(RowKind.MEMCPY, row.name)
        return KnownRow(RowKind.MEMSET if _FILL.search(row.name) else RowKind.KERNEL, row.name)

    def host_row(self, row: NamedRow) -> HostRow:
        """Return the calls of CANN: ``AscendCL@aclrtMemcpy`` is a call of aclrtMemcpy."""
        found = _CALLS.match(row.name)
        if found is None:
            return HostRow(RowKind.SKIP, DERIVED if _DERIVED.search(row.lane.process) else "no category")
        return HostRow(RowKind.CALL, found[2] if found[1] == "AscendCL" else row.name)
