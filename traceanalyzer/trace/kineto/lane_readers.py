"""The profilers that write Chrome JSON without Kineto's categories, each with the class that reads its lanes."""

from __future__ import annotations

from traceanalyzer.trace.ascend.lanes import AscendLanes
from traceanalyzer.trace.intel.lanes import UnitraceLanes
from traceanalyzer.trace.jax.lanes import JaxLanes
from traceanalyzer.trace.kineto.legacy import LegacyLanes
from traceanalyzer.trace.lanes import LaneReader
from traceanalyzer.trace.rocm.lanes import RocprofLanes, RpdLanes

READERS: tuple[type[LaneReader], ...] = (JaxLanes, RpdLanes, RocprofLanes, AscendLanes, UnitraceLanes, LegacyLanes)
"""In the order in which they are asked whether a process is one of their devices."""
FLOW_CATEGORIES = tuple(category for reader in READERS for category in reader.flow_categories)
