"""The queue model run over a program of host events and device rows: one pass in the order in which the host did them.

A host event starts its own time after the event before it on its thread (or, where one thread hands over to another,
after the other thread's). A device row starts when it has arrived, when its stream is free, and when a row of another
stream that it waits for has ended. A wait returns its own time after what it waits for.
"""

from __future__ import annotations

from enum import IntEnum

from traceanalyzer.record import record


class ProgramWait(IntEnum):
    """What the end of a host event waits for."""

    NONE = 0
    ALL = 1
    LANE = 2
    ROW_END = 3
    ROW_START = 4
    INSTANT = 5


NEVER = -(1 << 62)
"""Earlier than any instant: what is not waited for."""


@record()
class ReplayProgram:
    """Host events in order of start, and their device rows; times are integer nanoseconds, lists are of one length each.

    Events: ``thread``; ``start`` is the recorded start; ``gap`` the host's time since the event before (NEVER: starts as recorded);
    ``after`` the event of another thread it follows, or -1 for the one before on its own; ``cost`` its own length; ``wait``
    (codes of Wait) with ``target`` (lane, row or instant) and ``lag`` behind it; ``first_row`` and the next one's bound its rows.
    Rows: ``lane``; ``length``; ``latency`` behind the call's start or (``from_end``) end, NEVER for rows that arrive with an
    earlier one; ``spacing`` behind its stream's last end; ``needs`` a row (or -1) that ends ``offset`` before.
    ``free`` is when each lane was free before the first event, ``ended`` when each thread's last event before had ended.
    """

    thread: list[int]
    start: list[int]
    gap: list[int]
    after: list[int]
    cost: list[int]
    wait: list[int]
    target: list[int]
    lag: list[int]
    first_row: list[int]
    lane: list[int]
    length: list[int]
    latency: list[int]
    from_end: list[bool]
    spacing: list[int]
    needs: list[int]
    offset: list[int]
    free: list[int]
    ended: list[int]


def run(p: ReplayProgram) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return (start, end) of each event and (start, end) of each row."""
    free, ended = list(p.free), list(p.ended)
    event_start: list[int] = []
    event_end: list[int] = []
    row_start: list[int] = []
    row_end: list[int] = []
    bounds = p.first_row
    rows = list(zip(p.lane, p.length, p.latency, p.from_end, p.spacing, p.needs, p.offset, strict=True))
    events = zip(
        p.thread, p.start, p.gap, p.after, p.cost, p.wait, p.target, p.lag, bounds[:-1], bounds[1:], strict=True
    )
    for thread, recorded, gap, after, cost, wait, target, lag, low, high in events:
        start = recorded if gap == NEVER else (event_end[after] if after >= 0 else ended[thread]) + gap
        end = start + cost
        for i in range(low, high):
            lane, length, latency, from_end, spacing, needs, offset = rows[i]
            begin = (end if from_end else start) + latency
            ready = free[lane] + spacing
            if ready > begin:  # noqa: PLR1730 - the innermost loop
                begin = ready
            if needs >= 0 and (ready := row_end[needs] + offset) > begin:
                begin = ready
            row_start.append(begin)
            begin += length
            row_end.append(begin)
            if begin > free[lane]:  # noqa: PLR1730
                free[lane] = begin
        if wait:
            if wait == 1:
                done = max(free)
            elif wait == 2:
                done = free[target]
            elif wait == 3:
                done = row_end[target]
            elif wait == 4:
                done = row_start[target]
            else:
                done = target
            end = max(end, done + lag)
        ended[thread] = end
        event_start.append(start)
        event_end.append(end)
    return event_start, event_end, row_start, row_end
