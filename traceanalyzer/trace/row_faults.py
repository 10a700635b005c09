"""Why rows and events of a file were repaired or left out: codes that programs compare, with the words that people read."""

from __future__ import annotations

from typing import NamedTuple

from traceanalyzer.strenum import StrEnum


class RowFault(StrEnum):
    """What is wrong with a row or an event; the value is what people read."""

    NO_TIME = "no usable time"
    UNSET = "time and duration never set (both 0)"
    FAR = "time more than a day from all others"
    NEGATIVE_TIME = "negative time"
    NO_DURATION = "no usable duration"
    NEGATIVE_DURATION = "negative duration (never finished)"
    LONG = "duration over a day"
    PLACE = "a device or stream number that cannot be one"
    MANY_DEVICES = "on one of more devices than are told apart"
    OUTLASTS = "outlasts its successors on an in-order stream"
    TWICE = "in the file twice"
    CUT = "event cut off at the end of the file"
    TOO_LARGE = "event_too_large: an event longer than --max-event-bytes"
    TOO_DEEP = "event nested deeper than"
    MALFORMED = "event with malformed text"
    NO_EVENT = "not an event (no JSON object)"
    NO_EVENT_TEXT = "text between events that is no event"
    STRAY_COMMA = "stray comma between events"
    NAME_BYTES = "name with bytes that are not UTF-8"
    INNER_TRACE = "trace inside the events that cannot be read"
    LONELY = "begin or end event without its other half"


DURATION_FAULTS = frozenset({RowFault.NO_DURATION, RowFault.NEGATIVE_DURATION, RowFault.LONG})
"""A call with one of these still has a start, which dispatch needs."""


class FaultyRow(StrEnum):
    """What kind of row a fault was found in."""

    KERNEL = "kernel"
    COPY = "copy"
    FILL = "fill"
    GRAPH = "graph launch"
    DEVICE = "device row"
    CALL = "host call"
    OPERATOR = "operator"
    ANNOTATION = "annotation"
    DEVICE_ANNOTATION = "device annotation"
    FRAME = "Python frame"
    OVERHEAD = "profiler overhead"
    DEVICE_SYNC = "device sync record"


class Damage(NamedTuple):
    """A reason by which rows are counted: the fault, the kind of row (None: an event of any kind), and what goes with it.

    ``start_used``: the row is kept for its start. ``limit``: the one that was exceeded, 0 where there is none.
    """

    fault: RowFault
    row: FaultyRow | None = None
    start_used: bool = False
    limit: int = 0

    def words(self) -> str:
        """Return what people read."""
        if self.fault is RowFault.TOO_DEEP:
            return f"{self.fault} {self.limit} (--max-depth)"
        if self.row is None:
            return str(self.fault)
        if self.fault is RowFault.TWICE:
            return f"{self.row} that is in the file twice, counted once"
        limit = f" ({self.limit})" if self.limit else ""
        return f"{self.row}: {self.fault}{limit}" + (", its start is used" if self.start_used else "")
