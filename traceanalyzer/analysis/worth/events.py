"""What a program of the queue model is built of: host events by kind, and what a change may take of each."""

from __future__ import annotations

from enum import IntEnum

from traceanalyzer.analysis.worth.replay import ReplayProgram
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Bool, Int64


class EventKind(IntEnum):
    """What a host event is, for the changes. FETCHED data comes from workers that keep their own pace."""

    LAUNCH = 0
    COPY = 1
    SYNC = 2
    POLL = 3
    ALLOCATION = 4
    DATA = 5
    FETCHED = 6


@record()
class Parts:
    """Per event, nanoseconds of its gap in each kind of host work, and what else changes ask for.

    ``plain`` is what a launch call costs. ``median_lag`` is how long after the end of its work a wait returns.
    """

    kind: list[int]
    unit: list[int]
    opens_unit: list[bool]
    allocation: list[int]
    data: list[int]
    compile: list[int]
    one_time: list[int]
    one_time_cost: list[int]
    plain: int
    sites: dict[str, tuple[list[int], list[bool]]]


@record()
class Built:
    """A program, the rows of the trace in its order, and markers of the units.

    ``first_rows`` and ``first_events`` are the first row and call of each unit; ``lane_rows`` the first row of each lane of the device
    in the first and in the last whole unit.
    ``unexplained_ns``: how long the device judged waited for something that the trace does not show.
    """

    program: ReplayProgram
    parts: Parts
    events: Events
    rows: Int64
    first_rows: list[int]
    first_events: list[int]
    lane_rows: list[tuple[int, int]]
    unexplained_ns: int


@record(frozen=True)
class Window:
    """Calls of some consecutive units: per unit its first device row on the device judged, in order."""

    device: int
    first_rows: Int64


@record()
class Events:
    """Host events in order of start; ``call`` is a row of ``trace.calls`` or NO_ROW."""

    start: Int64
    end: Int64
    thread: Int64
    kind: Int64
    call: Int64

    def take(self, at: Int64 | Bool) -> Events:
        """Return the given events, in that order."""
        return Events(self.start[at], self.end[at], self.thread[at], self.kind[at], self.call[at])
