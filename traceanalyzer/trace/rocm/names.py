"""What rows of ROCm's profilers are, by their names."""

from __future__ import annotations

import re

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import API_CLASSES
from traceanalyzer.trace.parts import RecordedPart

UNRECORDED = frozenset({RecordedPart.OVERHEADS, RecordedPart.INSTRUMENTATION, RecordedPart.OPERATORS})
"""What ROCm's profilers do not record: nothing of their own work and settings, no framework's operators."""
_WAITING = re.compile(r"\A(?:barrier|marker)", re.I)
_RUNTIME_COPY = re.compile(
    r"__amd_rocclr_\w*[Cc]opy|\A(?:Copy(?:Host|Device|Image|Buffer)|MEMORY_COPY|hipMemcpy|Memcpy)", re.I
)
_RUNTIME_FILL = re.compile(r"__amd_rocclr_\w*[Ff]ill|\AfillBuffer|\AFill(?:Buffer|Image)|\A(?:hipMemset|Memset)", re.I)
_MARKERS = ("UserMarker", "roctxRange", "roctxMark")


def device_kind(description: str, name: str) -> RowKind:
    """Return what a device row is: by what the profiler says of it, else by its name.

    The runtime copies and fills with kernels of its own (``__amd_rocclr_copyBuffer``, ``fillBufferAligned``): such rows
    are copies and fills.
    """
    if _WAITING.search(description):
        return RowKind.SKIP
    for text in (description, name):
        if _RUNTIME_FILL.search(text):
            return RowKind.MEMSET
        if _RUNTIME_COPY.search(text):
            return RowKind.MEMCPY
    return RowKind.KERNEL


def host_kind(name: str, args: str) -> tuple[RowKind, str]:
    """Return what a host row is and its name; a marker is named by its text."""
    if name.startswith(_MARKERS):
        return RowKind.RANGE, args or name
    if name.startswith("hip") or name in API_CLASSES:
        return RowKind.CALL, name
    if name == "hcc_activity_callback" or "::" in name:  # the profiler writing its own tables
        return RowKind.OVERHEAD, name
    return RowKind.CALL, name


_WAYS = {
    "HOST_TO_HOST": "HtoH (Host -> Host)", "HOST_TO_DEVICE": "HtoD (Host -> Device)",
    "DEVICE_TO_HOST": "DtoH (Device -> Host)", "DEVICE_TO_DEVICE": "DtoD (Device -> Device)",
}  # fmt: skip


def copy_name(operation: str) -> str:
    """Return the name of a copy as PyTorch's profiler writes it for ROCm, from ``MEMORY_COPY_HOST_TO_DEVICE``."""
    way = _WAYS.get(operation.removeprefix("MEMORY_COPY_"))
    return f"Memcpy {way}" if way else operation
