"""Columns to a :class:`~traceanalyzer.trace.tables.Trace`: check times, tell devices apart, link, sort."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceanalyzer.trace import sound_times
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.kineto.columns import Columns, parse_dims, to_int
from traceanalyzer.trace.kineto.flavours import LaneRule, device_lane
from traceanalyzer.trace.launch_names import API_CLASSES
from traceanalyzer.trace.link import DeviceSide, HostSide, link
from traceanalyzer.trace.tables import (
    NO_ID,
    NO_ROW,
    Activities,
    Calls,
    Config,
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

_Arrays = dict[str, npt.NDArray[Any]]
_DEVICE_COLUMNS = (
    "start_ns",
    "dur_ns",
    "pid",
    "tid",
    "name",
    "device",
    "context",
    "stream",
    "external",
    "moved_bytes",
    "graph_node",
    "corr",
    "config",
    "order",
)
_CALL_COLUMNS = ("start_ns", "dur_ns", "pid", "tid", "name", "corr", "external", "order")
_KIND_WORDS = {RowKind.KERNEL: "kernel", RowKind.MEMCPY: "copy", RowKind.MEMSET: "fill"}
_VERSION_KEYS = {
    "cuda_runtime_version": "cuda_runtime", "cuda_driver_version": "cuda_driver", "cupti_version": "cupti",
    "hip_runtime_version": "hip_runtime", "hip_driver_version": "hip_driver", "roctracer_version": "roctracer",
    "pytorch_version": "pytorch", "triton_version": "triton",
}  # fmt: skip
_FLAG_KEYS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")


def build(columns: Columns, top: dict[str, msgspec.Raw], name: str, file_format: str) -> Trace:
    """Return the tables of everything collected; what cannot be used is counted in the salvage."""
    columns.pair_halves()
    device, calls, flavour = _categorised(columns)
    middle = _middle(device, calls)
    device = _sound_device_rows(columns, device, middle)
    calls = _sound_calls(columns, calls, middle)
    fields = _top_fields(top)

    thread_keys, thread_of_call = _pair_codes(calls["pid"], calls["tid"])
    processes = columns.pids.values_in_order
    threads = [Thread(processes[p], columns.tids.values_in_order[t]) for p, t in thread_keys]
    api_class = columns.api_classes()[calls["name"]] if len(calls["name"]) else np.empty(0, dtype=np.int8)

    numbers = _device_numbers(device, processes)
    group_keys, group = _pair_codes(device["pid"], numbers)
    linked, link_notes = link(
        DeviceSide(device["corr"], device["external"], group, device["order"], device["start_ns"]),
        HostSide(
            calls["corr"], calls["external"], calls["pid"], thread_of_call, api_class, calls["order"],
            calls["start_ns"], calls["start_ns"] + calls["dur_ns"],
        ),
    )  # fmt: skip
    devices, device_of_row = _devices(group_keys, group, linked, calls, processes, fields["device_names"])
    streams = _streams(device, columns.tids.values_in_order)
    lane_keys, lane_of_row = _pair_codes(device_of_row, streams)
    order_of_lane = sorted(range(len(lane_keys)), key=lambda i: lane_keys[i])
    rank_of_lane = np.empty(len(lane_keys), dtype=np.int32)
    rank_of_lane[order_of_lane] = np.arange(len(lane_keys), dtype=np.int32)
    lanes = [Lane(int(lane_keys[i][0]), int(lane_keys[i][1])) for i in order_of_lane]
    lane_of_row = rank_of_lane[lane_of_row] if len(lane_of_row) else lane_of_row.astype(np.int32)

    call_order = np.lexsort((calls["start_ns"], thread_of_call))
    new_place = np.empty(len(call_order), dtype=np.int64)
    new_place[call_order] = np.arange(len(call_order))
    end_ns = device["start_ns"] + device["dur_ns"]
    row_order = np.lexsort((end_ns, device["start_ns"], lane_of_row))
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
    host_ops, ranges, threads = _host_tables(columns, middle, threads)
    overheads, syncs = _other_tables(columns, middle)
    starts = [t.start_ns for t in (activities, call_table, host_ops, ranges, overheads) if len(t)]
    starts += [s for s in (_profiler_spans(columns, middle),) if len(s) and starts]
    meta = TraceMeta(
        name=name,
        format=file_format,
        events=columns.events,
        annotations=columns.own_events,
        salvage=columns.salvage,
        origin_ns=min((int(s.min()) for s in starts), default=0),
        base_ns=fields["base_ns"],
        step_ns=columns.step_ns,
        skipped=dict(columns.skipped),
        unknown_categories=dict(columns.unknown),
        flags=fields["flags"],
        versions=fields["versions"],
        python_rows=columns.python_rows,
        flavour=flavour,
        simulated=fields["simulated"],
        rank=fields["rank"],
        world_size=fields["world_size"],
    )
    return Trace(
        meta=meta,
        names=list(columns.names.values_in_order),
        apis=list(columns.apis.values_in_order),
        configs=[
            Config(parse_dims(grid), parse_dims(block), registers, shared)
            for grid, block, registers, shared in columns.configs.values_in_order
        ],
        devices=devices,
        lanes=lanes,
        threads=threads,
        activities=activities,
        calls=call_table,
        host_ops=host_ops,
        ranges=ranges,
        overheads=overheads,
        device_syncs=syncs,
        link_notes=dict(link_notes),
    )


# -- which row is what --------------------------------------------------------------------------------


def _categorised(columns: Columns) -> tuple[_Arrays, _Arrays, str]:
    """Return device rows and host calls, those known by category and those known by their lane."""
    parts: list[_Arrays] = []
    for kind in DEVICE_KINDS:
        part = {c: columns.column(kind, c) for c in _DEVICE_COLUMNS}
        part["kind"] = np.full(len(part["start_ns"]), int(kind), dtype=np.int8)
        parts.append(part)
    calls = {c: columns.column(RowKind.CALL, c) for c in _CALL_COLUMNS}
    flavour = "kineto"
    by_lane, by_name, found = _by_lane(columns)
    if found:
        flavour = found
        parts.append(by_lane)
    if len(by_name["start_ns"]):
        calls = {c: np.concatenate([calls[c], by_name[c]]) for c in _CALL_COLUMNS}
    device = {c: np.concatenate([p[c] for p in parts]) for c in (*_DEVICE_COLUMNS, "kind")}
    for part in (device, calls):
        for column in ("pid", "tid", "name", "config"):
            if column in part:
                part[column] = part[column].astype(np.int32)
    return device, calls, flavour


def _by_lane(columns: Columns) -> tuple[_Arrays, _Arrays, str]:
    """Return rows without a category that lie on a device lane, and those that are named like an API call."""
    columns_of_unknown = ("start_ns", "dur_ns", "pid", "tid", "name")
    rows = {c: columns.column(RowKind.UNKNOWN, c) for c in columns_of_unknown}
    n = len(rows["start_ns"])
    rules: dict[tuple[int, int], LaneRule | None] = {}
    pids, tids, names = (t.values_in_order for t in (columns.pids, columns.tids, columns.names))
    kinds = np.zeros(n, dtype=np.int8)
    streams = np.zeros(n, dtype=np.int64)
    numbers = np.zeros(n, dtype=np.int64)
    is_call = np.zeros(n, dtype=bool)
    flavour = ""
    for i in range(n):
        key = (int(rows["pid"][i]), int(rows["tid"][i]))
        if key not in rules:
            rules[key] = device_lane(
                pids[key[0]], tids[key[1]], columns.process_names, columns.process_labels, columns.thread_names
            )
        rule = rules[key]
        if rule is not None:
            flavour = rule.flavour
            kinds[i] = rule.kind_of(names[rows["name"][i]])
            streams[i], numbers[i] = rule.stream, rule.device
        elif names[rows["name"][i]] in API_CLASSES:
            is_call[i] = True
    on_device = kinds > 0
    other = n - int(np.count_nonzero(on_device | is_call))
    if other:
        columns.skipped["no category"] += other
    m = int(np.count_nonzero(on_device))
    absent = np.full(m, NO_ID, dtype=np.int64)
    lane_rows: _Arrays = {c: rows[c][on_device] for c in columns_of_unknown}
    lane_rows |= {"device": numbers[on_device], "stream": streams[on_device], "kind": kinds[on_device]}
    lane_rows |= dict.fromkeys(("context", "external", "moved_bytes", "graph_node", "corr"), absent)
    lane_rows["config"] = np.full(m, columns.configs[b"", b"", None, None], dtype=np.int32)
    lane_rows["order"] = np.zeros(m, dtype=np.int64)
    if m:
        columns.step_ns = 1  # not known per row here; nothing is claimed from it
    c = int(np.count_nonzero(is_call))
    call_rows: _Arrays = {k: rows[k][is_call] for k in columns_of_unknown}
    call_rows["name"] = np.fromiter((columns.apis[names[i]] for i in call_rows["name"]), dtype=np.int32, count=c)
    call_rows |= {k: np.full(c, NO_ID, dtype=np.int64) for k in ("corr", "external")}
    call_rows["order"] = np.zeros(c, dtype=np.int64)
    return lane_rows, call_rows, flavour


# -- times --------------------------------------------------------------------------------------------


def _middle(device: _Arrays, calls: _Arrays) -> int | None:
    set_rows = ~sound_times.unset(device["start_ns"], device["dur_ns"])
    return sound_times.middle_of(device["start_ns"][set_rows], calls["start_ns"])


def _sound_device_rows(columns: Columns, device: _Arrays, middle: int | None) -> _Arrays:
    keep = np.ones(len(device["start_ns"]), dtype=bool)
    for reason, mask in sound_times.faults(device["start_ns"], device["dur_ns"], middle, check_unset=True):
        keep &= ~mask
        for kind, count in Counter(device["kind"][mask].tolist()).items():
            columns.salvage.excluded[f"{_KIND_WORDS[RowKind(kind)]}: {reason}"] += count
    return {c: v[keep] for c, v in device.items()}


def _sound_calls(columns: Columns, calls: _Arrays, middle: int | None) -> _Arrays:
    """Leave out calls without a start; a call without a usable length keeps its start, which dispatch needs."""
    start, dur = calls["start_ns"], calls["dur_ns"].copy()
    keep = np.ones(len(start), dtype=bool)
    for reason, mask in sound_times.faults(start, dur, middle, check_unset=False):
        if "duration" in reason:
            dur[mask] = 0
            columns.salvage.repaired[f"host call: {reason}, its start is used"] += int(np.count_nonzero(mask))
        else:
            keep &= ~mask
            columns.salvage.excluded[f"host call: {reason}"] += int(np.count_nonzero(mask))
    return {c: (dur if c == "dur_ns" else v)[keep] for c, v in calls.items()}


def _sound_others(columns: Columns, kind: RowKind, word: str, middle: int | None) -> npt.NDArray[np.bool_]:
    start, dur = columns.column(kind, "start_ns"), columns.column(kind, "dur_ns")
    keep = np.ones(len(start), dtype=bool)
    if middle is None:
        middle = sound_times.middle_of(start)
    for reason, mask in sound_times.faults(start, dur, middle, check_unset=False):
        keep &= ~mask
        columns.salvage.excluded[f"{word}: {reason}"] += int(np.count_nonzero(mask))
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


def _device_numbers(device: _Arrays, pids: list[str]) -> Int64:
    """Return the device number of each row: its argument, else the pid column, which Kineto sets to it."""
    numbers = device["device"].copy()
    for i in np.flatnonzero(numbers == NO_ID).tolist():
        numbers[i] = to_int(pids[device["pid"][i]]) or 0
    return numbers


def _streams(device: _Arrays, tids: list[str]) -> Int64:
    """Return the stream of each row: its argument, else the tid column (``stream 7`` in old files)."""
    streams = device["stream"].copy()
    for i in np.flatnonzero(streams == NO_ID).tolist():
        streams[i] = to_int(tids[device["tid"][i]]) or 0
    return streams


def _devices(
    group_keys: list[tuple[int, int]], group: Int32, linked: Int64, calls: _Arrays, pids: list[str],
    device_names: dict[int, str],
) -> tuple[list[Device], Int32]:  # fmt: skip
    """Return the devices and the device of each row; rows of several processes on one device are kept apart."""
    devices: list[Device] = []
    device_of_row = np.zeros(len(group), dtype=np.int32)
    owner = np.full(len(group), -1, dtype=np.int64)
    owner[linked != NO_ROW] = calls["pid"][linked[linked != NO_ROW]]
    crowded = len({number for _, number in group_keys}) < len(group_keys)
    for code, (pid, number) in enumerate(group_keys):
        rows = group == code
        owners = np.unique(owner[rows & (owner >= 0)]).tolist()
        split = owners if len(owners) > 1 else [None]
        for own in split:
            label = f"process {pids[own]}" if own is not None else f"pid {pids[pid]}" if crowded else ""
            mine = rows if own is None else rows & (owner == own)
            device_of_row[mine] = len(devices)
            devices.append(Device(pids[pid], number, device_names.get(number, ""), label))
        if len(owners) > 1 and (rest := rows & (owner < 0)).any():
            device_of_row[rest] = len(devices)
            devices.append(Device(pids[pid], number, device_names.get(number, ""), "process unknown"))
    return devices, device_of_row


# -- the other tables ---------------------------------------------------------------------------------


def _host_tables(columns: Columns, middle: int | None, threads: list[Thread]) -> tuple[HostOps, Ranges, list[Thread]]:
    number = {t: i for i, t in enumerate(threads)}
    pids, tids = columns.pids.values_in_order, columns.tids.values_in_order

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
        return columns.column(kind, column)[keep]

    keep = _sound_others(columns, RowKind.HOST_OP, "operator", middle)
    start = get(RowKind.HOST_OP, keep, "start_ns")
    host_ops = HostOps(
        name=get(RowKind.HOST_OP, keep, "name").astype(np.int32),
        start_ns=start,
        end_ns=start + get(RowKind.HOST_OP, keep, "dur_ns"),
        thread=thread_codes(get(RowKind.HOST_OP, keep, "pid"), get(RowKind.HOST_OP, keep, "tid")),
    )
    parts = []
    for kind, word in ((RowKind.RANGE, "annotation"), (RowKind.DEVICE_RANGE, "device annotation")):
        keep = _sound_others(columns, kind, word, middle)
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
    return host_ops, ranges.take(np.argsort(ranges.start_ns, kind="stable")), threads


def _other_tables(columns: Columns, middle: int | None) -> tuple[Overheads, DeviceSyncs]:
    keep = _sound_others(columns, RowKind.OVERHEAD, "profiler overhead", middle)
    start = columns.column(RowKind.OVERHEAD, "start_ns")[keep]
    overheads = Overheads(
        name=columns.column(RowKind.OVERHEAD, "name")[keep].astype(np.int32),
        start_ns=start,
        end_ns=start + columns.column(RowKind.OVERHEAD, "dur_ns")[keep],
    )
    keep = _sound_others(columns, RowKind.DEVICE_SYNC, "device sync record", middle)
    start = columns.column(RowKind.DEVICE_SYNC, "start_ns")[keep]
    syncs = DeviceSyncs(
        name=columns.column(RowKind.DEVICE_SYNC, "name")[keep].astype(np.int32),
        start_ns=start,
        end_ns=start + columns.column(RowKind.DEVICE_SYNC, "dur_ns")[keep],
        device=columns.column(RowKind.DEVICE_SYNC, "device")[keep],
        stream=columns.column(RowKind.DEVICE_SYNC, "stream")[keep],
    )
    return overheads, syncs


def _profiler_spans(columns: Columns, middle: int | None) -> Int64:
    """Return the starts of the profiler's own spans: drawn by viewers, so their clock begins with the first of them."""
    start, dur = columns.column(RowKind.SPAN, "start_ns"), columns.column(RowKind.SPAN, "dur_ns")
    sound = np.ones(len(start), dtype=bool)
    for _, mask in sound_times.faults(start, dur, middle, check_unset=True):
        sound &= ~mask
    return np.asarray(start[sound], dtype=np.int64)


# -- fields beside the events -------------------------------------------------------------------------


def _top_fields(top: dict[str, msgspec.Raw]) -> dict[str, Any]:
    """Return the few known fields beside the events. Others may name machines or users: they are not kept."""

    def value(key: str) -> Any:
        try:
            return msgspec.json.decode(top[key]) if key in top else None
        except (msgspec.DecodeError, RecursionError):
            return None

    names: dict[int, str] = {}
    properties = value("deviceProperties")
    for entry in properties if isinstance(properties, list) else []:
        if isinstance(entry, dict) and (number := to_int(entry.get("id"))) is not None:
            names[number] = str(entry.get("name") or "")[:100]
    base = value("baseTimeNanoseconds")
    flags = {k: int(v) for k in _FLAG_KEYS if isinstance(v := value(k), int)}
    versions = {
        short: str(v)[:40] for k, short in _VERSION_KEYS.items() if isinstance(v := value(k), int | float | str)
    }
    found = value("distributedInfo")
    distributed = found if isinstance(found, dict) else {}
    return {
        "device_names": names,
        "base_ns": base if isinstance(base, int) else 0,
        "flags": flags,
        "versions": versions,
        "simulated": value("simulated") is True,
        "rank": _count(distributed.get("rank")),
        "world_size": _count(distributed.get("world_size")),
    }


def _count(value: object) -> int | None:
    """Return a rank or a number of ranks; None for what cannot be one."""
    found = to_int(value)
    return found if found is not None and 0 <= found < 1 << 24 else None
