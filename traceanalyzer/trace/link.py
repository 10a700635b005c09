"""Which host call launched which device row: the correlation join, scoped by process.

A link is never guessed from times. An id that several calls of one process carry links nothing. An id that
several processes carry (merged ranks) is settled by evidence in the rows, in this order: the external id, the process
all other rows of the same device belong to, and causality (a kernel cannot start before its launch, and a launch starts
one kernel); where none settles it the row stays unlinked and is counted. The order of events in the file is no evidence.
A launch that rows of several devices claim is that of the device whose other rows are of its process.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from traceanalyzer.record import record
from traceanalyzer.trace.launch_names import LAUNCHES, ApiClass
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ID, NO_ROW, Int8, Int32, Int64

_EARLY_NS = 1000
_MOST_GROUPS = 512
_MOST_SHARED = 64
"""Processes that may share an id for it to be looked into; no job of one file has as many."""


_Open = list[tuple[int, dict[int, int]]]


@record(frozen=True)
class DeviceSide:
    """What linking needs of device rows; ``group`` numbers the (pid, device) each row belongs to."""

    corr: Int64
    external: Int64
    group: Int32
    start_ns: Int64


@record(frozen=True)
class HostSide:
    """What linking needs of host calls; ``process`` numbers their processes."""

    corr: Int64
    external: Int64
    process: Int32
    thread: Int32
    api_class: Int8
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
    known = np.sort(call_corr[usable], kind="stable")  # mostly sorted already, which np.unique does not use
    known = known[np.append(True, known[1:] != known[:-1])] if len(known) else known
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
    _of_own_process(rows, calls, linked, notes)
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
        if len(candidates) > _MOST_SHARED:
            notes["device rows whose correlation id several processes share"] += 1
        elif not candidates:
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
    groups: dict[int, _Open] = {}
    for item in still_open:
        groups.setdefault(int(rows.group[item[0]]), []).append(item)
    process_of = _processes_of_groups(groups, _owners(rows, calls, linked), rows, calls)
    for group, items in groups.items():
        process = process_of.get(group)
        for i, candidates in items:
            if process is not None and process in candidates:
                linked[i] = candidates[process]
            else:
                notes["device rows whose correlation id several processes share"] += 1


def _owners(rows: DeviceSide, calls: HostSide, linked: Int64) -> dict[int, set[int]]:
    """Return the processes that launched the linked rows of each group."""
    at = np.flatnonzero(linked != NO_ROW)
    found: dict[int, set[int]] = {}
    pairs = np.unique(np.stack([rows.group[at].astype(np.int64), calls.process[linked[at]].astype(np.int64)]), axis=1)
    for group, process in pairs.T.tolist():
        found.setdefault(group, set()).add(process)
    return found


def _of_own_process(rows: DeviceSide, calls: HostSide, linked: Int64, notes: Counter[str]) -> None:
    """Take links back that lead into another process: one launch, no graph, with rows on several devices has one too many.

    Rows that no other device claims tell which processes a device works for.
    """
    at = np.flatnonzero(linked != NO_ROW)
    if not len(at) or (calls.process[linked[at]] == calls.process[linked[at[0]]]).all():
        return
    at = at[calls.api_class[linked[at]] == ApiClass.KERNEL_LAUNCH]
    if not len(at):
        return
    order = at[np.lexsort((rows.group[at], linked[at]))]
    call, group = linked[order], rows.group[order]
    begins = np.concatenate([[True], call[1:] != call[:-1]])
    differs = np.zeros(len(order), dtype=bool)
    differs[1:] = (call[1:] == call[:-1]) & (group[1:] != group[:-1])
    number = np.cumsum(begins) - 1
    contested = np.bincount(number, weights=differs) > 0
    doubtful = order[contested[number]]
    if not len(doubtful):
        return
    sure = linked.copy()
    sure[doubtful] = NO_ROW
    owners = _owners(rows, calls, sure)
    for i in doubtful.tolist():
        if int(calls.process[linked[i]]) not in owners.get(int(rows.group[i]), set()):
            linked[i] = NO_ROW
            notes["device rows whose correlation id only another process has"] += 1


def _plausible(found: list[int], calls: HostSide) -> bool:
    """Return whether every call but graph launches gets one row at most: a launch starts one kernel."""
    single = [c for c in found if calls.api_class[c] != ApiClass.GRAPH_LAUNCH]
    return len(set(single)) == len(single)


def _one_per_process(candidates: Int64, calls: HostSide) -> dict[int, int]:
    """Return the one call of each process among calls with the same id; processes without one are left out."""
    result: dict[int, int] = {}
    processes = calls.process[candidates]
    for process in distinct(processes).tolist():
        own = candidates[processes == process]
        if len(own) > 1:
            launching = own[np.isin(calls.api_class[own], list(LAUNCHES))]
            own = launching if len(launching) else own
        if len(own) > 1:
            # a driver call inside the runtime call that made it: the outer one is the launch
            outer = own[np.lexsort((-calls.end_ns[own], calls.start_ns[own]))[0]]
            inside = (calls.end_ns[own] <= calls.end_ns[outer]) & (calls.thread[own] == calls.thread[outer])
            own = np.array([outer]) if inside.all() and len(own) <= 3 else own
        if len(own) == 1:
            result[process] = int(own[0])
    return result


def _processes_of_groups(
    groups: dict[int, _Open], owners: dict[int, set[int]], rows: DeviceSide, calls: HostSide
) -> dict[int, int]:
    """Return the process that the open rows of each group belong to, where there is evidence.

    ``owners``: the processes of the groups' other rows. A group that only one process can have launched takes its calls
    from the others. Where all pairings of groups and processes give the same times, so that no number depends on it,
    they are paired in the order of their numbers.
    """
    if len(groups) > _MOST_GROUPS:
        return {}
    possible = {
        g: _possible(items, rows, calls) if len(owners.get(g, ())) != 1 else set(owners[g])
        for g, items in groups.items()
    }
    found: dict[int, int] = {}
    while single := sorted(g for g, able in possible.items() if len(able) == 1):
        group = single[0]
        found[group] = process = possible.pop(group).pop()
        taken = {c[process] for _, c in groups[group] if process in c}
        for other, able in possible.items():
            if process in able and not taken.isdisjoint(c.get(process) for _, c in groups[other]):
                able.discard(process)
    left = sorted(g for g, able in possible.items() if able)
    processes = sorted(set().union(*(possible[g] for g in left))) if left else []
    if len(left) == len(processes) and all(
        possible[g] == set(processes) and _same_times(groups[g], processes, rows, calls) for g in left
    ):
        found |= dict(zip(left, processes, strict=True))
    return found


def _possible(items: _Open, rows: DeviceSide, calls: HostSide) -> set[int]:
    """Return the processes that can have launched all of the rows: a kernel cannot start before its launch."""
    able = set(items[0][1]).intersection(*(c for _, c in items))
    return {
        p
        for p in able
        if all(rows.start_ns[i] >= calls.start_ns[c[p]] - _EARLY_NS for i, c in items)
        and _plausible([c[p] for _, c in items], calls)
    }


def _same_times(items: _Open, processes: list[int], rows: DeviceSide, calls: HostSide) -> bool:
    def latencies(process: int) -> list[int]:
        return sorted(int(rows.start_ns[i] - calls.start_ns[c[process]]) for i, c in items)

    first = latencies(processes[0])
    return all(latencies(p) == first for p in processes[1:])
