"""What a decoder has to say of a file that is no damage: codes with their numbers; the sentences are made in the report."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum


class RemarkCode(StrEnum):
    """What is remarkable."""

    GRAPHS_WHOLE = "graphs_recorded_whole"
    MIGRATIONS = "unified_memory_migrations"
    NO_DEVICE_TABLE = "calls_without_device_table"
    NO_CUDA = "no_cuda_rows"
    ANNOTATIONS_ONLY = "annotations_only"
    DIAGNOSTIC = "profiler_diagnostic"
    TRIMMED = "trimmed"
    DERIVED_LANES = "derived_lanes"
    NO_HOST_CALLS = "no_host_calls"
    LINK_BY_FLOW = "linked_by_flow_events"


@record(frozen=True)
class Remark:
    """One remark; ``params`` are the numbers and texts of its sentence."""

    code: RemarkCode
    params: dict[str, int | float | str] = field(default_factory=dict)
