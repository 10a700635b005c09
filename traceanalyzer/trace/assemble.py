"""From a filled store to a :class:`~traceanalyzer.trace.tables.Trace`: check times, tell devices apart, link, sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace import sound_times
from traceanalyzer.trace.canonical import make_canonical
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.cut import id_windows, rows_outside
from traceanalyzer.trace.duplicates import repeated
from traceanalyzer.trace.frames import PythonFrames
from traceanalyzer.trace.in_order import outlasting
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.link import DeviceSide, HostSide, ids_within_processes, link
from traceanalyzer.trace.ordering import sorted_order
from traceanalyzer.trace.recorded import unrecorded
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.row_faults import DURATION_FAULTS, Damage, FaultyRow, RowFault
from traceanalyzer.trace.store import CALL_COLUMNS, DEVICE_COLUMNS, NO_PROCESS, Store
from traceanalyzer.trace.tables import (
    NO_ID,
    NO_ROW,
    Activities,
    Calls,
    Device,
    DeviceSyncs,
    HostOps,
    Int32,
    Int64,
    Lane,
    Overheads,
    Ranges,
    Thread,
    Trace,
    TraceMeta,
)
from traceanalyzer.trace.whole_numbers import BAD_ID

_Arrays = dict[str, npt.NDArray[Any]]
MOST_DEVICES = 256
"""Devices told apart; of a file with more, those with most rows. No job of one file has as many, and each takes a millisecond."""
_FAULTY = {
    RowKind.KERNEL: FaultyRow.KERNEL, RowKind.MEMCPY: FaultyRow.COPY, RowKind.MEMSET: FaultyRow.FILL, RowKind.GRAPH: FaultyRow.GRAPH,
    RowKind.CALL: FaultyRow.CALL, RowKind.HOST_OP: FaultyRow.OPERATOR, RowKind.RANGE: FaultyRow.ANNOTATION,
    RowKind.DEVICE_RANGE: FaultyRow.DEVICE_ANNOTATION, RowKind.OVERHEAD: FaultyRow.OVERHEAD, RowKind.DEVICE_SYNC: FaultyRow.DEVICE_SYNC,
}  # fmt: skip


def assemble(store: Store) -> Trace:
    """Return the tables of everything collected; what cannot be used is counted in the salvage."""
    make_canonical(store)
    parts = [{c: store.column(kind, c) for c in DEVICE_COLUMNS} for kind in DEVICE_KINDS]
    device = {c: np.concatenate([p[c] for p in parts]) for c in DEVICE_COLUMNS}
    kinds = [np.full(len(p["start_ns"]), int(k), dtype=np.int8) for k, p in zip(DEVICE_KINDS, parts, strict=True)]
    device["kind"] = np.concatenate(kinds)
    calls = {c: store.column(RowKind.CALL, c) for c in CALL_COLUMNS}
    columns = ("start_ns", "dur_ns", "corr", "name", "tid", "pid", "device", "stream", "config", "kind")
    device = _once(store, device, columns, FaultyRow.DEVICE, device["dur_ns"] > 0)
    calls = _once(
        store, calls, ("start_ns", "corr", "dur_ns", "name", "tid", "pid"), FaultyRow.CALL, calls["corr"] != NO_ID
    )
    middle = _middle(device, calls)
    device = _sound_device_rows(store, device, middle)
    calls = _sound_calls(store, calls, middle)

    thread_keys, thread_of_call = _pair_codes(calls["pid"], calls["tid"])
    processes = store.pids.values_in_order
    threads = [Thread(processes[p], store.tids.values_in_order[t]) for p, t in thread_keys]
    api_class = store.api_classes()[calls["name"]] if len(calls["name"]) else np.empty(0, dtype=np.int8)

    group_keys, group = _pair_codes(device["pid"], device["device"])
    row_ids, call_ids = ids_within_processes(device["corr"], device["owner"], calls["corr"], calls["pid"])
    linked, link_notes = link(
        DeviceSide(row_ids, device["external"], group, device["start_ns"]),
        HostSide(
            call_ids, calls["external"], calls["pid"], thread_of_call, api_class,
            calls["start_ns"], calls["start_ns"] + calls["dur_ns"],
        ),
    )  # fmt: skip
    devices, device_of_row = _devices(group_keys, group, linked, calls, processes, store.device_names)
    devices, device_of_row, kept = _most_used(devices, device_of_row)
    if not kept.all():
        _leave_out(store, device, ~kept, RowFault.MANY_DEVICES, MOST_DEVICES)
        device = {c: v[kept] for c, v in device.items()}
        linked, device_of_row = linked[kept], device_of_row[kept]
    lanes, lane_of_row = _lanes(device_of_row, device["stream"], device["context"], store.streams_per_context)

    keep = _in_order(store, device, lane_of_row, linked, api_class)
    device = {c: v[keep] for c, v in device.items()}
    linked, lane_of_row = linked[keep], lane_of_row[keep]

    call_order = sorted_order(
        (thread_of_call, calls["start_ns"]), (-calls["dur_ns"], calls["name"], calls["corr"], calls["external"])
    )
    new_place = np.empty(len(call_order), dtype=np.int64)
    new_place[call_order] = np.arange(len(call_order))
    end_ns = device["start_ns"] + device["dur_ns"]
    row_order = sorted_order(
        (lane_of_row, device["start_ns"], end_ns), (device["kind"], device["name"], device["corr"], device["config"])
    )
    call_of_row = np.where(linked == NO_ROW, NO_ROW, new_place[linked] if len(new_place) else NO_ROW)
    n_activities = np.bincount(call_of_row[call_of_row >= 0], minlength=len(call_order)).astype(np.int64)

    activities = Activities(
        kind=device["kind"][row_order].astype(np.int8),
        name=device["name"][row_order],
        start_ns=device["start_ns"][row_order],
        end_ns=end_ns[row_order],
        lane=lane_of_row[row_order],
        config=device["config"][row_order],
        corr=device["corr"][row_order],
        bytes_moved=device["moved_bytes"][row_order],
        graph_node=device["graph_node"][row_order] != NO_ID,
        call=call_of_row[row_order],
    )
    call_table = Calls(
        api=calls["name"][call_order],
        api_class=api_class[call_order],
        start_ns=calls["start_ns"][call_order],
        end_ns=(calls["start_ns"] + calls["dur_ns"])[call_order],
        thread=thread_of_call[call_order].astype(np.int32),
        corr=calls["corr"][call_order],
        n_activities=n_activities,
    )
    windows = id_windows(device, calls, processes) if store.ids_ascend else {}
    if outside := rows_outside(device, linked, windows, processes):
        store.remarks.append(Remark(RemarkCode.TRIMMED, {"rows": outside}))
    host_ops, ranges, python, threads = _host_tables(store, middle, threads)
    overheads, syncs = _other_tables(store, middle)
    starts = [t.start_ns for t in (activities, call_table, host_ops, ranges, overheads) if len(t)]
    starts += [s for s in (_profiler_spans(store, middle),) if len(s) and starts]
    meta = TraceMeta(
        name=store.name,
        format=store.format,
        events=store.events,
        annotations=store.own_events,
        salvage=store.salvage,
        origin_ns=min((int(s.min()) for s in starts), default=0),
        base_ns=store.base_ns,
        step_ns=store.step_ns,
        skipped=dict(store.skipped),
        unknown_categories=dict(store.unknown),
        flags=store.flags,
        versions=store.versions,
        python_rows=store.python_rows,
        flavour=store.flavour,
        simulated=store.simulated,
        rank=store.rank,
        world_size=store.world_size,
        remarks=tuple(store.remarks),
        unrecorded=unrecorded(store.doubtful, call_table, host_ops, overheads),
        chrome_json=store.chrome_json,
        id_windows=windows,
    )
    return Trace(
        meta=meta,
        names=list(store.names.values_in_order),
        apis=list(store.apis.values_in_order),
        configs=list(store.configs.values_in_order),
        devices=devices,
        lanes=lanes,
        threads=threads,
        activities=activities,
        calls=call_table,
        host_ops=host_ops,
        ranges=ranges,
        overheads=overheads,
        device_syncs=syncs,
        python=python,
        link_notes=dict(link_notes),
    )


# -- times --------------------------------------------------------------------------------------------


def _middle(device: _Arrays, calls: _Arrays) -> int | None:
    set_rows = ~sound_times.unset(device["start_ns"], device["dur_ns"])
    return sound_times.middle_of(device["start_ns"][set_rows], calls["start_ns"])


def _sound_device_rows(store: Store, device: _Arrays, middle: int | None) -> _Arrays:
    keep = np.ones(len(device["start_ns"]), dtype=bool)
    for fault, mask in sound_times.faults(device["start_ns"], device["dur_ns"], middle, check_unset=True):
        keep &= ~mask
        _leave_out(store, device, mask, fault)
    placeless = keep & ((device["device"] == BAD_ID) | (device["stream"] == BAD_ID))
    if placeless.any():
        keep &= ~placeless
        _leave_out(store, device, placeless, RowFault.PLACE)
    return {c: v[keep] for c, v in device.items()}


def _in_order(
    store: Store, device: _Arrays, lane: Int32, linked: Int64, api_class: npt.NDArray[np.int8]
) -> npt.NDArray[np.bool_]:
    """Return which device rows can be where they are; kernels that outlast their successors on a stream are counted."""
    keep = np.ones(len(lane), dtype=bool)
    if store.flavour != "kineto":
        return keep
    usable = (device["kind"] == RowKind.KERNEL) & (device["graph_node"] == NO_ID)
    if len(api_class):
        usable &= (linked == NO_ROW) | (api_class[linked] != ApiClass.GRAPH_LAUNCH)
    ends = device["start_ns"] + device["dur_ns"]
    bad = outlasting(lane, device["name"], device["start_ns"], ends, usable)
    if bad.any():
        _leave_out(store, device, bad, RowFault.OUTLASTS)
    return ~bad


def _leave_out(store: Store, device: _Arrays, rows: npt.NDArray[np.bool_], why: RowFault, limit: int = 0) -> None:
    for kind, count in Counter(device["kind"][rows].tolist()).items():
        store.salvage.excluded[Damage(why, _FAULTY[RowKind(kind)], limit=limit)] += count
        store.salvage.device_rows_left_out += count if kind != RowKind.GRAPH else 0


def _once(
    store: Store, rows: _Arrays, columns: tuple[str, ...], what: FaultyRow, wanted: npt.NDArray[np.bool_]
) -> _Arrays:
    """Return the rows without those that are there a second time."""
    again = repeated([rows[c] for c in columns]) & wanted
    if not again.any():
        return rows
    store.salvage.repaired[Damage(RowFault.TWICE, what)] += int(np.count_nonzero(again))
    return {c: v[~again] for c, v in rows.items()}


def _sound_calls(store: Store, calls: _Arrays, middle: int | None) -> _Arrays:
    """Leave out calls without a start; a call without a usable length keeps its start, which dispatch needs."""
    start, dur = calls["start_ns"], calls["dur_ns"].copy()
    keep = np.ones(len(start), dtype=bool)
    for fault, mask in sound_times.faults(start, dur, middle, check_unset=False):
        if fault in DURATION_FAULTS:
            dur[mask] = 0
            store.salvage.repaired[Damage(fault, FaultyRow.CALL, start_used=True)] += int(np.count_nonzero(mask))
        else:
            keep &= ~mask
            store.salvage.excluded[Damage(fault, FaultyRow.CALL)] += int(np.count_nonzero(mask))
    return {c: (dur if c == "dur_ns" else v)[keep] for c, v in calls.items()}


def _sound_others(store: Store, kind: RowKind, middle: int | None) -> npt.NDArray[np.bool_]:
    start, dur = store.column(kind, "start_ns"), store.column(kind, "dur_ns")
    keep = np.ones(len(start), dtype=bool)
    if middle is None:
        middle = sound_times.middle_of(start)
    for fault, mask in sound_times.faults(start, dur, middle, check_unset=False):
        keep &= ~mask
        store.salvage.excluded[Damage(fault, _FAULTY[kind])] += int(np.count_nonzero(mask))
    return keep


# -- devices, streams, threads ------------------------------------------------------------------------


def _pair_codes(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[list[tuple[int, int]], Int32]:
    """Return the distinct pairs of two columns, sorted, and the number of each row's pair."""
    if not len(a):
        return [], np.empty(0, dtype=np.int32)
    seconds, b_code = np.unique(b, return_inverse=True)
    key = a.astype(np.int64) * len(seconds) + b_code.reshape(-1)
    keys, code = np.unique(key, return_inverse=True)
    pairs = [(int(k) // len(seconds), int(seconds[int(k) % len(seconds)])) for k in keys.tolist()]
    return pairs, code.reshape(-1).astype(np.int32)


def _devices(
    group_keys: list[tuple[int, int]], group: Int32, linked: Int64, calls: _Arrays, pids: list[str],
    device_names: dict[tuple[str, int], str],
) -> tuple[list[Device], Int32]:  # fmt: skip
    """Return the devices and the device of each row; rows of several processes on one device are kept apart."""
    unknown = len(pids)
    owner = np.full(len(group), unknown, dtype=np.int64)
    owner[linked != NO_ROW] = calls["pid"][linked[linked != NO_ROW]]
    known = owner != unknown
    of_owners, _ = _pair_codes(group[known], owner[known])
    several = np.bincount([g for g, _ in of_owners], minlength=len(group_keys) + 1) > 1
    pairs, device_of_row = _pair_codes(group, np.where(several[group], owner, NO_PROCESS))
    crowded = len({number for _, number in group_keys}) < len(group_keys)
    devices = []
    for code, own in pairs:
        pid, number = group_keys[code]
        name = device_names.get((pids[pid], number)) or device_names.get(("", number), "")
        if own == unknown:
            label = "process unknown"
        else:
            label = f"process {pids[own]}" if own != NO_PROCESS else f"pid {pids[pid]}" if crowded else ""
        devices.append(Device(pids[pid], number, name, label))
    return devices, device_of_row


def _most_used(devices: list[Device], of_row: Int32) -> tuple[list[Device], Int32, npt.NDArray[np.bool_]]:
    """Return the devices with most rows, the new device of each row, and which rows are theirs."""
    everything = np.ones(len(of_row), dtype=bool)
    if len(devices) <= MOST_DEVICES:
        return devices, of_row, everything
    counts = np.bincount(of_row, minlength=len(devices))
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_DEVICES])
    place = np.full(len(devices), -1, dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return [devices[i] for i in kept.tolist()], place[of_row], place[of_row] >= 0


def _lanes(device: Int32, stream: Int64, context: Int64, per_context: bool) -> tuple[list[Lane], Int32]:
    """Return the lanes, sorted by device and stream, and the lane of each row."""
    keys, code = _pair_codes(device, stream)
    lanes = [Lane(d, s) for d, s in keys]
    if per_context:
        parts, part = _pair_codes(code, context)
        crowded = Counter(of for of, _ in parts)
        place = Counter[int]()
        lanes = []
        for of, _ in parts:
            place[of] += 1
            lanes.append(Lane(*keys[of], place[of] if crowded[of] > 1 else 0))
        code = part
    return lanes, code


# -- the other tables ---------------------------------------------------------------------------------


def _host_tables(
    store: Store, middle: int | None, threads: list[Thread]
) -> tuple[HostOps, Ranges, PythonFrames, list[Thread]]:
    number = {t: i for i, t in enumerate(threads)}
    pids, tids = store.pids.values_in_order, store.tids.values_in_order

    def thread_codes(pid: npt.NDArray[Any], tid: npt.NDArray[Any]) -> Int32:
        keys, codes = _pair_codes(pid, tid)
        table = np.empty(max(len(keys), 1), dtype=np.int32)
        for i, (p, t) in enumerate(keys):
            thread = Thread(pids[p], tids[t])
            if thread not in number:
                number[thread] = len(threads)
                threads.append(thread)
            table[i] = number[thread]
        return table[codes]

    def get(kind: RowKind, keep: npt.NDArray[np.bool_], column: str) -> npt.NDArray[Any]:
        return store.column(kind, column)[keep]

    keep = _sound_others(store, RowKind.HOST_OP, middle)
    start = get(RowKind.HOST_OP, keep, "start_ns")
    host_ops = HostOps(
        name=get(RowKind.HOST_OP, keep, "name").astype(np.int32),
        start_ns=start,
        end_ns=start + get(RowKind.HOST_OP, keep, "dur_ns"),
        thread=thread_codes(get(RowKind.HOST_OP, keep, "pid"), get(RowKind.HOST_OP, keep, "tid")),
    )
    parts = []
    for kind in (RowKind.RANGE, RowKind.DEVICE_RANGE):
        keep = _sound_others(store, kind, middle)
        start = get(kind, keep, "start_ns")
        parts.append(
            Ranges(
                name=get(kind, keep, "name").astype(np.int32),
                start_ns=start,
                end_ns=start + get(kind, keep, "dur_ns"),
                thread=thread_codes(get(kind, keep, "pid"), get(kind, keep, "tid")),
                on_device=np.full(len(start), kind is RowKind.DEVICE_RANGE),
            )
        )
    both = {
        f: np.concatenate([getattr(p, f) for p in parts]) for f in ("name", "start_ns", "end_ns", "thread", "on_device")
    }
    ranges = Ranges(**both)
    python = _frames(store, middle, thread_codes)
    host_ops = host_ops.take(_by_start(host_ops.start_ns, host_ops.end_ns, host_ops.thread, host_ops.name))
    ranges = ranges.take(_by_start(ranges.start_ns, ranges.end_ns, ranges.thread, ranges.name, ranges.on_device))
    return host_ops, ranges, python, threads


def _frames(store: Store, middle: int | None, thread_codes: Callable[[Int32, Int32], Int32]) -> PythonFrames:
    """Return the Python frames with usable times; the store's are gone afterwards."""
    if middle is None:
        middle = sound_times.middle_of(*(b.start.values() for b in store.frames))
    batches = []
    for batch in store.frames:
        sound = np.ones(len(batch), dtype=bool)
        for fault, mask in sound_times.faults(batch.start.values(), batch.dur.values(), middle, check_unset=False):
            sound &= ~mask
            store.salvage.excluded[Damage(fault, FaultyRow.FRAME)] += int(np.count_nonzero(mask))
        batches.append(batch if sound.all() else batch.take(sound))
    batches = [b for b in batches if len(b)]
    store.frames = []
    lanes = np.concatenate([b.lanes for b in batches] or [np.empty((0, 2), dtype=np.int32)])
    ends = np.cumsum([len(b.lanes) for b in batches])
    codes = thread_codes(lanes[:, 0], lanes[:, 1])
    threads = np.split(codes, ends[:-1]) if batches else []
    return PythonFrames(batches, threads, list(store.frame_names.values_in_order))


def _by_start(start: Int64, end: Int64, *others: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the order by start, longer rows first, then by the other columns."""
    return sorted_order((start,), (-end, *others))


def _other_tables(store: Store, middle: int | None) -> tuple[Overheads, DeviceSyncs]:
    keep = _sound_others(store, RowKind.OVERHEAD, middle)
    start = store.column(RowKind.OVERHEAD, "start_ns")[keep]
    overheads = Overheads(
        name=store.column(RowKind.OVERHEAD, "name")[keep].astype(np.int32),
        start_ns=start,
        end_ns=start + store.column(RowKind.OVERHEAD, "dur_ns")[keep],
    )
    keep = _sound_others(store, RowKind.DEVICE_SYNC, middle)
    start = store.column(RowKind.DEVICE_SYNC, "start_ns")[keep]
    syncs = DeviceSyncs(
        name=store.column(RowKind.DEVICE_SYNC, "name")[keep].astype(np.int32),
        start_ns=start,
        end_ns=start + store.column(RowKind.DEVICE_SYNC, "dur_ns")[keep],
        device=store.column(RowKind.DEVICE_SYNC, "device")[keep],
        stream=store.column(RowKind.DEVICE_SYNC, "stream")[keep],
    )
    overheads = overheads.take(_by_start(overheads.start_ns, overheads.end_ns, overheads.name))
    return overheads, syncs.take(_by_start(syncs.start_ns, syncs.end_ns, syncs.device, syncs.stream, syncs.name))


def _profiler_spans(store: Store, middle: int | None) -> Int64:
    """Return the starts of the profiler's own spans: drawn by viewers, so their clock begins with the first of them."""
    start, dur = store.column(RowKind.SPAN, "start_ns"), store.column(RowKind.SPAN, "dur_ns")
    sound = np.ones(len(start), dtype=bool)
    for _, mask in sound_times.faults(start, dur, middle, check_unset=True):
        sound &= ~mask
    return np.asarray(start[sound], dtype=np.int64)
