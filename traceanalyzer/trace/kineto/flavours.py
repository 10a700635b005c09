"""Traces without Kineto categories: which of their rows lie on a device, known by the names of the lanes.

JAX/XLA, the Ascend exporter, rocprof v1 and PyTorch's 2020 autograd exporter write complete events without
a category; the process says what it is. Only the lanes that stand for streams count: XLA adds derived
lanes (ops, modules, steps) to the device process that show the same work again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceanalyzer.trace.categories import RowKind

_DEVICE_PROCESS = (
    ("jax", re.compile(r"/device:(?:GPU|TPU):(\d+)")),
    ("rocprof", re.compile(r"\A\d+ GPU(\d+)\Z")),
    ("ascend", re.compile(r"\A(?:Ascend Hardware|NPU)\s*(\d*)\Z")),
)
_LEGACY_DEVICE_PID = "CUDA functions"
_STREAM_LANE = re.compile(r"stream\s*#?\s*(\d+)", re.I)
_MEMCPY = re.compile(r"mem_?cpy|\bcopy(?:H2D|D2H|D2D)", re.I)
_MEMSET = re.compile(r"mem_?set", re.I)


@dataclass(frozen=True)
class LaneRule:
    """How rows of one (pid, tid) are to be read: device number, stream and the flavour that told us."""

    flavour: str
    device: int
    stream: int
    lane_name: str

    def kind_of(self, row_name: str) -> RowKind:
        """Return what a row of this lane is, by lane and row name."""
        for text in (self.lane_name, row_name):
            if _MEMCPY.search(text):
                return RowKind.MEMCPY
            if _MEMSET.search(text):
                return RowKind.MEMSET
        return RowKind.KERNEL


def device_lane(
    pid: str, tid: str, process_names: dict[str, str], labels: dict[str, str], thread_names: dict[tuple[str, str], str]
) -> LaneRule | None:
    """Return how to read the rows of a lane, or None when it is no stream of a device."""
    process = process_names.get(pid, "")
    found: tuple[str, int] | None = None
    for flavour, pattern in _DEVICE_PROCESS:
        if match := pattern.search(process):
            found = (flavour, int(match[1] or 0))
            break
    else:
        if labels.get(pid, "").strip() == "NPU":
            found = ("ascend", 0)
        elif pid == _LEGACY_DEVICE_PID:
            return LaneRule("legacy-autograd", int(tid) if tid.isdigit() else 0, 0, "")
    if found is None:
        return None
    lane = thread_names.get((pid, tid), "")
    match = _STREAM_LANE.search(lane)
    if match is None and any(p == pid and _STREAM_LANE.search(name) for (p, _), name in thread_names.items()):
        return None  # this process names its streams and this lane is none of them
    digits = re.findall(r"\d+", tid)
    stream = int(match[1]) if match else int(digits[-1]) if digits else 0
    return LaneRule(found[0], found[1], stream, lane)
