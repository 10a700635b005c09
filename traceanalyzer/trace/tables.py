"""The tables of one trace: columns as numpy arrays, times as integer nanoseconds.

A table is a frozen dataclass of equally long arrays; row numbers are the keys. What a column means, its
type and unit are in :mod:`traceanalyzer.trace.schema`, from which the documentation is made.
"""

from __future__ import annotations

from dataclasses import field, fields
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from traceanalyzer.record import record
from traceanalyzer.trace.remarks import Remark
from traceanalyzer.trace.salvage import Salvage

if TYPE_CHECKING:
    from traceanalyzer.trace.frames import PythonFrames
    from traceanalyzer.trace.parts import RecordedPart
    from traceanalyzer.trace.sidecar import Sidecar

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]
Bool = npt.NDArray[np.bool_]

NO_ID = int(np.iinfo(np.int64).min)
"""Stands for an absent id in an integer column; pandas frames show it as missing."""
NO_ROW = -1
"""Stands for "no such row" in a column of row numbers; pandas frames show it as missing."""

T = TypeVar("T", bound="Table")


@record(frozen=True)
class Table:
    """Columns of equal length."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self: T, rows: Bool | npt.NDArray[np.intp]) -> T:
        """Return the table of the given rows (a mask or row numbers), in that order."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@record(frozen=True)
class Activities(Table):
    """Device rows (kernels, copies, fills), sorted by (lane, start, end)."""

    kind: Int8
    name: Int32
    start_ns: Int64
    end_ns: Int64
    lane: Int32
    config: Int32
    corr: Int64
    bytes_moved: Int64
    graph_node: Bool
    call: Int64

    @cached_property
    def dur_ns(self) -> Int64:
        """Self-time of each row in nanoseconds."""
        return self.end_ns - self.start_ns


@record(frozen=True)
class Calls(Table):
    """Host calls into a runtime or driver, sorted by (thread, start)."""

    api: Int32
    api_class: Int8
    start_ns: Int64
    end_ns: Int64
    thread: Int32
    corr: Int64
    n_activities: Int64


@record(frozen=True)
class HostOps(Table):
    """Framework operators on the host (``cpu_op`` rows)."""

    name: Int32
    start_ns: Int64
    end_ns: Int64
    thread: Int32


@record(frozen=True)
class Ranges(Table):
    """Annotations: record_function / NVTX on the host, and their projection on the device."""

    name: Int32
    start_ns: Int64
    end_ns: Int64
    thread: Int32
    on_device: Bool


@record(frozen=True)
class Overheads(Table):
    """The profiler's own work, as it says itself (``overhead`` rows)."""

    name: Int32
    start_ns: Int64
    end_ns: Int64


@record(frozen=True)
class DeviceSyncs(Table):
    """Synchronisation records of the device side (``cuda_sync`` rows)."""

    name: Int32
    start_ns: Int64
    end_ns: Int64
    device: Int64
    stream: Int64


@record(frozen=True)
class Device:
    """One device as the trace tells it apart.

    ``pid`` is the process column of its rows. ``owner`` names the host process when rows of several
    processes (merged ranks) would otherwise fall together.
    """

    pid: str
    number: int
    name: str = ""
    owner: str = ""

    @property
    def label(self) -> str:
        """The device as reports print it."""
        return f"{self.number}" + (f" ({self.owner})" if self.owner else "")


@record(frozen=True)
class Lane:
    """One stream of one device; ``device`` is a row number of :attr:`Trace.devices`.

    ``context`` is 0, or counts the contexts of the device whose streams have the same number: 1, 2, ...
    """

    device: int
    stream: int
    context: int = 0

    @property
    def label(self) -> str:
        """The stream as reports print it."""
        return f"{self.stream}" + (f" (context {self.context})" if self.context else "")


@record(frozen=True)
class Thread:
    """One host thread: process and thread id as written in the trace."""

    process: str
    tid: str

    @property
    def label(self) -> str:
        """The thread as reports print it."""
        return f"{self.process}/{self.tid}"


@record(frozen=True)
class Config:
    """Launch configuration of a kernel; ``None`` where the trace does not say."""

    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    registers: int | None
    shared_bytes: int | None

    @property
    def known(self) -> bool:
        """Whether the trace says anything of it."""
        return (self.grid, self.block, self.registers, self.shared_bytes) != (None,) * 4

    def describe(self) -> str:
        """Return e.g. ``grid 128x1x1 block 256x1x1 regs 32 smem 0``."""
        parts = []
        if self.grid is not None:
            parts.append("grid " + "x".join(map(str, self.grid)))
        if self.block is not None:
            parts.append("block " + "x".join(map(str, self.block)))
        if self.registers is not None:
            parts.append(f"regs {self.registers}")
        if self.shared_bytes is not None:
            parts.append(f"smem {self.shared_bytes}")
        return " ".join(parts) or "not recorded"


@record(frozen=True)
class TraceMeta:
    """What the file says about itself, and what reading it met.

    ``events`` counts every element of the events array; ``skipped`` those of no use here by category;
    ``unknown_categories`` complete events of a category nobody told us about. ``step_ns`` is the finest
    step in which times of device rows are written (1000: whole microseconds). ``sidecar`` is what a capture knew
    besides the trace; ``sidecar_fault`` says what is wrong with one that could not be used. ``origin_ns`` is the earliest
    time drawn; viewers count from there. ``annotations`` counts events of an earlier annotate of ours, no part of it.
    ``id_windows`` has, where correlation ids of a process grow with time, its first call's id and its last device row's: rows before
    and calls behind lie outside of the recording. ``unrecorded`` are the parts of a run that this recording may lack; ``chrome_json``: the file is Chrome JSON.
    ``rank`` of ``world_size`` processes is what distributedInfo says. ``base_ns`` is baseTimeNanoseconds, 0 where the file has none.
    """

    name: str
    format: str
    events: int
    salvage: Salvage
    origin_ns: int
    base_ns: int
    step_ns: int
    skipped: dict[str, int] = field(default_factory=dict)
    unknown_categories: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    python_rows: int = 0
    flavour: str = "kineto"
    simulated: bool = False
    annotations: int = 0
    rank: int | None = None
    world_size: int | None = None
    remarks: tuple[Remark, ...] = ()
    unrecorded: frozenset[RecordedPart] = frozenset()
    chrome_json: bool = True
    id_windows: dict[str, tuple[int, int]] = field(default_factory=dict)
    sidecar: Sidecar | None = None
    sidecar_fault: str = ""


@record(frozen=True)
class Trace:
    """Everything one trace file holds that timing needs. Build one with :func:`traceanalyzer.read`."""

    meta: TraceMeta
    names: list[str]
    apis: list[str]
    configs: list[Config]
    devices: list[Device]
    lanes: list[Lane]
    threads: list[Thread]
    activities: Activities
    calls: Calls
    host_ops: HostOps
    ranges: Ranges
    overheads: Overheads
    device_syncs: DeviceSyncs
    python: PythonFrames
    link_notes: dict[str, int] = field(default_factory=dict)
