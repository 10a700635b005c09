"""Flow events that join a host call with a device row: two arrows' ends with one id."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceanalyzer.record import record
from traceanalyzer.trace.tables import NO_ID, NO_ROW

Int64 = npt.NDArray[np.int64]

_DEEPEST = 64


@record(frozen=True)
class Ends:
    """Ends of arrows: ``key`` is the id they share, ``lane`` numbers process and thread, ``at_ns`` is where the end lies."""

    key: Int64
    lane: Int64
    at_ns: Int64

    def take(self, rows: npt.NDArray[np.bool_]) -> Ends:
        """Return the chosen ends."""
        return Ends(self.key[rows], self.lane[rows], self.at_ns[rows])


def calls_of(ends: Ends, lane: Int64, start_ns: Int64, end_ns: Int64, launches: npt.NDArray[np.bool_]) -> Int64:
    """Return the host call in which each end lies: of nested calls the innermost, of those that start together a launch.

    :data:`NO_ROW` where no call of the lane covers the end. Exporters draw the end at the start of the call, or anywhere in it.
    """
    found = np.full(len(ends.key), NO_ROW, dtype=np.int64)
    order = np.lexsort((launches, start_ns, lane))
    by_lane = np.argsort(ends.lane, kind="stable")
    lanes, first = np.unique(ends.lane[by_lane], return_index=True)
    low, high = (np.searchsorted(lane[order], lanes, side=side) for side in ("left", "right"))
    for of_lane, begin, end in zip(np.split(by_lane, first[1:]), low.tolist(), high.tolist(), strict=True):
        mine = order[begin:end]
        if not len(mine):
            continue
        wanted = of_lane
        at = np.searchsorted(start_ns[mine], ends.at_ns[wanted], side="right") - 1
        for _ in range(_DEEPEST):
            covers = (at >= 0) & (end_ns[mine[np.maximum(at, 0)]] >= ends.at_ns[wanted])
            found[wanted[covers]] = mine[at[covers]]
            still = ~covers & (at > 0)
            wanted, at = wanted[still], at[still] - 1
            if not len(wanted):
                break
    return found


def rows_of(ends: Ends, lane: Int64, start_ns: Int64) -> Int64:
    """Return the device row that starts where each end lies; rows that start together take the ends in file order."""
    found = np.full(len(ends.key), NO_ROW, dtype=np.int64)
    rows = np.lexsort((start_ns, lane))
    order = np.lexsort((ends.at_ns, ends.lane))
    places: dict[tuple[int, int], list[int]] = {}
    for row in rows.tolist():
        places.setdefault((int(lane[row]), int(start_ns[row])), []).append(row)
    taken: dict[tuple[int, int], int] = {}
    for end in order.tolist():
        place = int(ends.lane[end]), int(ends.at_ns[end])
        number = taken.get(place, 0)
        if number < len(there := places.get(place, ())):
            found[end] = there[number]
            taken[place] = number + 1
    return found


def joined(host: Ends, calls: Int64, device: Ends, rows: Int64, n_calls: int, n_rows: int) -> tuple[Int64, Int64]:
    """Return correlation ids of calls and of device rows: an arrow from a call to a row gives both the call's id."""
    call_ids, row_ids = np.full(n_calls, NO_ID, dtype=np.int64), np.full(n_rows, NO_ID, dtype=np.int64)
    call_of_key = {k: c for k, c in zip(host.key.tolist(), calls.tolist(), strict=True) if c != NO_ROW}
    for key, row in zip(device.key.tolist(), rows.tolist(), strict=True):
        if row != NO_ROW and (call := call_of_key.get(key)) is not None:
            call_ids[call], row_ids[row] = call, call
    return call_ids, row_ids
