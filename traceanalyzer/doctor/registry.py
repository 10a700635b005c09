"""The rules, listed by hand in the order they are reported."""

from __future__ import annotations

from traceanalyzer.doctor.rule import Rule
from traceanalyzer.doctor.rules.ta101_no_device_activity import NoDeviceActivity
from traceanalyzer.doctor.rules.ta102_no_host_activity import NoHostActivity
from traceanalyzer.doctor.rules.ta103_lost_records import LostRecords
from traceanalyzer.doctor.rules.ta104_impossible_times import ImpossibleTimes
from traceanalyzer.doctor.rules.ta201_cpu_bound_queue import CpuBoundQueue
from traceanalyzer.doctor.rules.ta202_event_reading_misleads import EventReadingMisleads

RULES: tuple[type[Rule], ...] = (
    NoDeviceActivity,
    NoHostActivity,
    LostRecords,
    ImpossibleTimes,
    CpuBoundQueue,
    EventReadingMisleads,
)
"""Every rule, integrity first. Codes are never used again for something else."""
