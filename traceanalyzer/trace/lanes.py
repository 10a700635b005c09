"""What readers of traces without Kineto's categories say of a lane or a row: the contract of the flavours.

Such traces tell rows apart by process and lane. Each flavour is one :class:`LaneReader` in its own folder.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.tables import NO_ID, Config

DERIVED = "row of a derived lane"
"""Name under which a reader skips host rows that an exporter made out of others."""
NO_CONFIG = Config(None, None, None, None)


@record(frozen=True)
class NamedLane:
    """A lane as the file names it; ``siblings`` is a lane of its process that is named after a stream, empty without one."""

    pid: str
    tid: str
    process: str
    label: str
    name: str
    siblings: tuple[str, ...] = ()


@record(frozen=True)
class NamedRow:
    """A row as the file has it: ``note`` is the argument that says what it is, ``has_id`` that it carries an id of device rows."""

    lane: NamedLane
    name: str
    note: str
    has_id: bool = False


@record(frozen=True)
class KnownRow:
    """What a row on a device lane is; kind SKIP for rows that only wait or that other rows show again."""

    kind: RowKind
    name: str
    config: Config = NO_CONFIG
    moved_bytes: int = NO_ID
    why_skipped: str = ""


@record(frozen=True)
class HostRow:
    """What a row on a host lane is: a call, a range, an operator, an overhead, or SKIP."""

    kind: RowKind
    name: str


class LaneReader:
    """One flavour; the methods are asked once for each distinct lane, or name and note on it, not for each row."""

    flavour: ClassVar[str] = ""
    flow_categories: ClassVar[tuple[str, ...]] = ()
    """Flow events whose category begins so join a host call with a device row."""

    doubtful: ClassVar[frozenset[RecordedPart]] = frozenset({RecordedPart.OVERHEADS, RecordedPart.INSTRUMENTATION})
    """Parts of a run that this profiler does not record, or not always."""
    inner_range_repeats: ClassVar[bool] = False
    """A range within a range of the same name is the same call, drawn twice."""

    def knows(self, process: str) -> bool:  # noqa: ARG002 - for those that override it
        """Return whether a process of this name is written by this flavour alone, so that a file without devices is its own too."""
        return False

    def device_of(self, lane: NamedLane) -> int | None:
        """Return the device number of the lane's process; None when it is no device."""
        raise NotImplementedError

    def stream_of(self, lane: NamedLane) -> int | None:
        """Return the stream number of a lane of a device; None when the lane shows other lanes' work again."""
        raise NotImplementedError

    def device_row(self, row: NamedRow) -> KnownRow:
        """Return what a row on a device lane is."""
        raise NotImplementedError

    def host_row(self, row: NamedRow) -> HostRow:
        """Return what a row on another lane is."""
        raise NotImplementedError
