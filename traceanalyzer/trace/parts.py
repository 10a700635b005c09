"""The parts of a run that a recording can lack."""

from __future__ import annotations

from traceanalyzer.strenum import StrEnum


class RecordedPart(StrEnum):
    """A kind of rows, or of knowledge, that rules rest on."""

    HOST_CALLS = "host calls"
    SYNC_CALLS = "synchronise calls"
    ALLOCATIONS = "allocation calls"
    MODULE_LOADS = "module loading"
    OPERATORS = "operators"
    OVERHEADS = "the profiler's own work"
    INSTRUMENTATION = "the profiler's settings"
