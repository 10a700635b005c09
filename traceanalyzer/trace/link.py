"""Which host call launched which device row: the correlation join, scoped by process.

A link is never guessed from times. An id that several calls of one process carry links nothing. An id that
several processes carry (merged ranks) is settled by evidence in the file, in this order: the external id,
the place in the file (rows of one rank lie together), the process all other rows of the same device belong
to, and causality (a kernel cannot start before its launch, and a launch starts one kernel); where none
settles it the row stays unlinked and is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceanalyzer.trace.launch_names import LAUNCHES, ApiClass
from traceanalyzer.trace.tables import NO_ID, NO_ROW, Int8, Int32, Int64

_EARLY_NS = 1000
_BLOCK_SLACK = 4


@dataclass(frozen=True)
class DeviceSide:
    """What linking needs of device rows; ``group`` numbers the (pid, device) each row belongs to."""

    corr: Int64
    external: Int64
    group: Int32
    order: Int64
    start_ns: Int64


@dataclass(frozen=True)
class HostSide:
    """What linking needs of host calls; ``process`` numbers their processes."""

    corr: Int64
    external: Int64
    process: Int32
    thread: Int32
    api_class: Int8
    order: Int64
    start_ns: Int64
    end_ns: Int64


def ids_within_processes(
    row_corr: Int64, row_owner: Int32, call_corr: Int64, call_process: Int32
) -> tuple[Int64, Int64]:
    """Return ids for :func:`link` that meet within one process only, where each device row names its owner.

    Rows without a known owner (below 0) keep their correlation, and so do the calls: then all are returned as they are.
    """
    if not len(row_owner) or (row_owner < 0).any():
        return row_corr, call_corr
    usable = call_corr != NO_ID
    known = np.unique(call_corr[usable])
    width = int(max(row_owner.max(), call_process.max(initial=0))) + 1

    def joined(corr: Int64, process: Int32) -> Int64:
        place = np.searchsorted(known, corr)
        place[place == len(known)] = 0
        hit = (known[place] == corr) & (corr != NO_ID) if len(known) else np.zeros(len(corr), dtype=bool)
        # an id that no call has still is an id: it links nothing, as it does today
        return np.where(hit, place * width + process, np.where(corr == NO_ID, NO_ID, len(known) * width))

    return joined(row_corr, row_owner), joined(call_corr, call_process)


def link(rows: DeviceSide, calls: HostSide) -> tuple[Int64, Counter[str]]:
    """Return the call row of each device row (:data:`NO_ROW` where there is none) and why some have none."""
    n = len(rows.corr)
    linked = np.full(n, NO_ROW, dtype=np.int64)
    notes: Counter[str] = Counter()
    usable = np.flatnonzero((calls.corr != NO_ID) & (calls.corr >= 0))
    by_corr = usable[np.argsort(calls.corr[usable], kind="stable")]
    corr_sorted = calls.corr[by_corr]
    has_id = (rows.corr != NO_ID) & (rows.corr >= 0)
    low = np.searchsorted(corr_sorted, rows.corr, side="left")
    count = np.searchsorted(corr_sorted, rows.corr, side="right") - low
    count[~has_id] = 0
    single = count == 1
    linked[single] = by_corr[low[single]]
    several = np.flatnonzero(count > 1)
    if len(several):
        _settle(rows, calls, several, linked, by_corr, low, count, notes)
    without = int(np.count_nonzero(~has_id))
    if without:
        notes["device rows without a usable correlation id"] = without
    return linked, notes


def _settle(
    rows: DeviceSide,
    calls: HostSide,
    several: Int64,
    linked: Int64,
    by_corr: Int64,
    low: Int64,
    count: Int64,
    notes: Counter[str],
) -> None:
    """Settle ids that more than one call carries; each id's calls are looked at once, so work stays linear."""
    known: dict[int, dict[int, int]] = {}
    open_rows: list[tuple[int, dict[int, int]]] = []
    for i in several.tolist():
        corr = int(rows.corr[i])
        if corr not in known:
            known[corr] = _one_per_process(by_corr[low[i] : low[i] + count[i]], calls)
        candidates = known[corr]
        if not candidates:
            notes["device rows whose correlation id several calls of one process share"] += 1
        elif len(candidates) == 1:
            linked[i] = next(iter(candidates.values()))
        else:
            open_rows.append((i, candidates))
    still_open = []
    for i, candidates in open_rows:
        same = [c for c in candidates.values() if rows.external[i] != NO_ID and calls.external[c] == rows.external[i]]
        if len(same) == 1:
            linked[i] = same[0]
        else:
            still_open.append((i, candidates))
    groups: dict[int, list[tuple[int, dict[int, int]]]] = {}
    for item in _by_place(still_open, rows, calls, linked):
        groups.setdefault(int(rows.group[item[0]]), []).append(item)
    for group, items in groups.items():
        process = _process_of_group(group, items, rows, calls, linked)
        for i, candidates in items:
            if process is not None and process in candidates:
                linked[i] = candidates[process]
            else:
                notes["device rows whose correlation id several processes share"] += 1


_Open = list[tuple[int, dict[int, int]]]


def _by_place(open_rows: _Open, rows: DeviceSide, calls: HostSide, linked: Int64) -> _Open:
    """Link rows that lie in the stretch of the file that one process has to itself; return the others.

    Files of merged ranks are written one rank after the other. Where the stretches overlap, or a row lies in
    none, the place says nothing.
    """
    processes = sorted({p for _, candidates in open_rows for p in candidates})
    blocks = {p: _block(calls, p) for p in processes}
    ordered = sorted(blocks.values())
    if any(a[1] >= b[0] for a, b in pairwise(ordered)):
        return open_rows
    chosen: dict[int, int] = {}
    for i, candidates in open_rows:
        at = int(rows.order[i])
        inside = [p for p in candidates if blocks[p][0] - _BLOCK_SLACK <= at <= blocks[p][1] + _BLOCK_SLACK]
        exact = [p for p in inside if blocks[p][0] <= at <= blocks[p][1]] or inside
        if len(exact) == 1:
            chosen[i] = candidates[exact[0]]
    if not _plausible(list(chosen.values()), calls):
        return open_rows
    for i, call in chosen.items():
        linked[i] = call
    return [item for item in open_rows if item[0] not in chosen]


def _plausible(found: list[int], calls: HostSide) -> bool:
    """Return whether every call but graph launches gets one row at most: a launch starts one kernel."""
    single = [c for c in found if calls.api_class[c] != ApiClass.GRAPH_LAUNCH]
    return len(set(single)) == len(single)


def _one_per_process(candidates: Int64, calls: HostSide) -> dict[int, int]:
    """Return the one call of each process among calls with the same id; processes without one are left out."""
    result: dict[int, int] = {}
    processes = calls.process[candidates]
    for process in np.unique(processes).tolist():
        own = candidates[processes == process]
        if len(own) > 1:
            launching = own[np.isin(calls.api_class[own], list(LAUNCHES))]
            own = launching if len(launching) else own
        if len(own) > 1:
            # a driver call inside the runtime call that made it: the outer one is the launch
            outer = own[np.argmin(calls.start_ns[own])]
            inside = (calls.end_ns[own] <= calls.end_ns[outer]) & (calls.thread[own] == calls.thread[outer])
            own = np.array([outer]) if inside.all() and len(own) <= 3 else own
        if len(own) == 1:
            result[process] = int(own[0])
    return result


def _process_of_group(
    group: int, items: list[tuple[int, dict[int, int]]], rows: DeviceSide, calls: HostSide, linked: Int64
) -> int | None:
    """Return the process that the open rows of one device belong to, or None without evidence."""
    settled = linked[(rows.group == group) & (linked != NO_ROW)]
    owners = np.unique(calls.process[settled])
    if len(owners) == 1:
        return int(owners[0])
    processes = sorted({p for _, candidates in items for p in candidates})
    possible = [
        p
        for p in processes
        if all(p in c and rows.start_ns[i] >= calls.start_ns[c[p]] - _EARLY_NS for i, c in items)
        and _plausible([c[p] for _, c in items], calls)
    ]
    return possible[0] if len(possible) == 1 else None


def _block(calls: HostSide, process: int) -> tuple[int, int]:
    order = calls.order[calls.process == process]
    return int(order.min()), int(order.max())
