"""Why rows and events of a file were repaired or left out: codes that programs compare; damage_text has the words."""

from __future__ import annotations

from typing import NamedTuple

from traceanalyzer.strenum import StrEnum


class RowFault(StrEnum):
    """What is wrong with a row or an event."""

    NO_TIME = "no_time"
    UNSET = "unset"
    FAR = "far"
    NEGATIVE_TIME = "negative_time"
    NO_DURATION = "no_duration"
    NEGATIVE_DURATION = "negative_duration"
    LONG = "long"
    PLACE = "place"
    MANY_DEVICES = "many_devices"
    OUTLASTS = "outlasts"
    TWICE = "twice"
    CUT = "cut"
    TOO_LARGE = "event_too_large"
    TOO_DEEP = "too_deep"
    MALFORMED = "malformed"
    NO_EVENT = "no_event"
    NO_EVENT_TEXT = "no_event_text"
    STRAY_COMMA = "stray_comma"
    NAME_BYTES = "name_bytes"
    INNER_TRACE = "inner_trace"
    LONELY = "lonely"


DURATION_FAULTS = frozenset({RowFault.NO_DURATION, RowFault.NEGATIVE_DURATION, RowFault.LONG})
"""A call with one of these still has a start, which dispatch needs."""


class FaultyRow(StrEnum):
    """What kind of row a fault was found in."""

    KERNEL = "kernel"
    COPY = "copy"
    FILL = "fill"
    GRAPH = "graph_launch"
    DEVICE = "device_row"
    CALL = "host_call"
    OPERATOR = "operator"
    ANNOTATION = "annotation"
    DEVICE_ANNOTATION = "device_annotation"
    FRAME = "python_frame"
    OVERHEAD = "profiler_overhead"
    DEVICE_SYNC = "device_sync_record"


class Damage(NamedTuple):
    """A reason by which rows are counted: the fault, the kind of row (None: an event of any kind), and what goes with it.

    ``start_used``: the row is kept for its start. ``limit``: the one that was exceeded, 0 where there is none.
    """

    fault: RowFault
    row: FaultyRow | None = None
    start_used: bool = False
    limit: int = 0

    def key(self) -> str:
        """Return the name under which programs count it: ``ROW:FAULT``, with ``:start_used`` or ``:LIMIT`` behind it."""
        parts = [str(self.row) if self.row else "", str(self.fault)]
        parts += ["start_used" if self.start_used else "", str(self.limit) if self.limit else ""]
        return ":".join(filter(None, parts))


def damage_of(key: str) -> Damage | None:
    """Return the damage of a key; None where it is none (a report of another version)."""
    parts = key.split(":")
    limit = (
        int(parts.pop())
        if len(parts) > 1 and len(parts[-1]) < 12 and parts[-1].isascii() and parts[-1].isdigit()
        else 0
    )
    start_used = len(parts) > 1 and parts[-1] == "start_used" and bool(parts.pop())
    row = parts[0] if len(parts) == 2 else None
    try:
        found = Damage(RowFault(parts[-1]), None if row is None else FaultyRow(row), start_used, limit)
    except ValueError:
        return None
    return found if len(parts) <= 2 else None
