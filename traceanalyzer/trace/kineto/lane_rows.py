"""Rows of Chrome JSON without Kineto's categories: to which device, stream, call or range each belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace import flows
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.intel.lanes import GPU_OP
from traceanalyzer.trace.kineto.lane_readers import READERS
from traceanalyzer.trace.lanes import DERIVED, HostRow, LaneReader, NamedLane, NamedRow
from traceanalyzer.trace.launch_names import API_CLASSES, LAUNCHES, classify_api
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.tables import NO_ID

if TYPE_CHECKING:
    from traceanalyzer.trace.kineto.columns import Columns

Array = npt.NDArray[Any]


class LaneRows:
    """The rows of one file, sorted by lane."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._store = store = columns.store
        rows = store.take_out(RowKind.UNKNOWN)
        if columns.gpu_op_pids:  # unitrace writes its calls as cpu_op, which are PyTorch's operators elsewhere
            operators = store.take_out(RowKind.HOST_OP)
            n = len(operators["start_ns"])
            operators |= {"corr": np.full(n, NO_ID), "note": np.zeros(n, np.int32), "order": np.zeros(n, np.int64)}
            rows = {c: np.concatenate([v, operators[c]]) for c, v in rows.items()}
        self._rows = rows
        self._n = len(rows["start_ns"])
        self._siblings = columns.lanes_of()
        self._width = max(len(store.tids.values_in_order), 1)
        keys, place = np.unique(rows["pid"].astype(np.int64) * self._width + rows["tid"], return_inverse=True)
        self._lane_keys = keys.tolist()
        place = place.reshape(-1)
        ends = np.cumsum(np.bincount(place, minlength=len(keys)))
        self._of_lane = np.split(np.argsort(place, kind="stable"), ends[:-1])

    def settle(self) -> None:
        """Put the rows into the store by what the flavour of the file says they are."""
        readers = [reader() for reader in READERS]
        lanes = [self._lane(key) for key in self._lane_keys]
        devices: dict[int, tuple[LaneReader, int, int | None]] = {}
        for number, lane in enumerate(lanes):
            for reader in readers:
                if (device := reader.device_of(lane)) is not None:
                    devices[number] = reader, device, reader.stream_of(lane)
                    break
        flavour = next((reader for reader, _, _ in devices.values()), None)
        if flavour is None:
            names = set(self._columns.process_names.values())
            flavour = next((reader for reader in readers if any(map(reader.knows, names))), None)
        if flavour is not None:
            self._store.flavour = flavour.flavour
            self._store.doubtful |= flavour.doubtful
        rows = self._device_rows(devices, lanes)
        if len(rows["start_ns"]):
            self._store.step_ns = min(self._store.step_ns, _finest_step(rows["start_ns"], rows["dur_ns"]))
        calls = self._host_rows(flavour, devices, lanes)
        if flavour is not None and flavour.flow_categories:
            self._join(rows, calls)
        for kind in DEVICE_KINDS:
            mask = rows["kind"] == kind
            self._store.put(kind, {c: v[mask] for c, v in rows.items() if c != "kind"})
        self._store.put(RowKind.CALL, calls)

    def _lane(self, key: int) -> NamedLane:
        pid, tid = (
            t.values_in_order[i]
            for t, i in zip((self._store.pids, self._store.tids), divmod(key, self._width), strict=True)
        )
        columns = self._columns
        siblings = self._siblings.get(pid, ())
        label = GPU_OP if pid in columns.gpu_op_pids else columns.process_labels.get(pid, "")
        return NamedLane(
            pid, tid, columns.process_names.get(pid, ""), label, columns.thread_names.get((pid, tid), ""), siblings
        )

    def _told_apart(self, mine: Array) -> tuple[list[tuple[str, str]], Array]:
        """Return the distinct (name, note) of rows and the number of each row's."""
        names, notes = self._store.names.values_in_order, self._columns.notes.values_in_order
        width = max(len(notes), 1)
        keys, place = np.unique(
            self._rows["name"][mine].astype(np.int64) * width + self._rows["note"][mine], return_inverse=True
        )
        return [(names[k // width], notes[k % width]) for k in keys.tolist()], place.reshape(-1)

    def _device_rows(
        self, devices: dict[int, tuple[LaneReader, int, int | None]], lanes: list[NamedLane]
    ) -> dict[str, Array]:
        store = self._store
        found: dict[str, list[Array]] = {}
        for number, (reader, device, stream) in devices.items():
            mine = self._of_lane[number]
            if stream is None:
                store.skipped["row of a lane that shows others' work again"] += len(mine)
                continue
            told, place = self._told_apart(mine)
            rows = [reader.device_row(NamedRow(lanes[number], name, note)) for name, note in told]
            kept = np.array([r.kind is not RowKind.SKIP for r in rows], dtype=bool)[place]
            for row, count in zip(rows, np.bincount(place, minlength=len(rows)).tolist(), strict=True):
                if row.kind is RowKind.SKIP:
                    store.skipped[row.why_skipped] += count
            columns: dict[str, Array] = {
                c: self._rows[c][mine] for c in ("start_ns", "dur_ns", "pid", "tid", "corr", "order")
            }
            columns["kind"] = np.array([int(r.kind) for r in rows], dtype=np.int8)[place]
            columns["name"] = store.names.codes([r.name for r in rows])[place]
            columns["config"] = store.configs.codes([_config_key(r.config) for r in rows])[place]
            columns["moved_bytes"] = np.array([r.moved_bytes for r in rows], dtype=np.int64)[place]
            columns["device"] = np.full(len(mine), device, dtype=np.int64)
            columns["stream"] = np.full(len(mine), stream, dtype=np.int64)
            for column, values in columns.items():
                found.setdefault(column, []).append(values[kept])
        empty = {"kind": np.int8, "pid": np.int32, "tid": np.int32, "name": np.int32, "config": np.int32}
        every = (
            "start_ns",
            "dur_ns",
            "pid",
            "tid",
            "corr",
            "order",
            "kind",
            "name",
            "config",
            "moved_bytes",
            "device",
            "stream",
        )
        return {c: np.concatenate(found[c]) if c in found else np.empty(0, dtype=empty.get(c, np.int64)) for c in every}

    def _host_rows(
        self, flavour: LaneReader | None, devices: dict[int, tuple[LaneReader, int, int | None]], lanes: list[NamedLane]
    ) -> dict[str, Array]:
        """Put ranges and operators into the store; return the calls."""
        store = self._store
        kinds = np.full(self._n, int(RowKind.SKIP), dtype=np.int8)
        names = np.zeros(self._n, dtype=np.int32)
        derived = 0
        for number, lane in enumerate(lanes):
            if number in devices:
                continue
            mine = self._of_lane[number]
            told, place = self._told_apart(mine)
            with_id = self._rows["corr"][mine] != NO_ID
            for part in (True, False):
                chosen = with_id == part
                counts = np.bincount(place[chosen], minlength=len(told)).tolist()
                kind_of, name_of = np.zeros(len(told), dtype=np.int8), np.zeros(len(told), dtype=np.int32)
                for code, count in enumerate(counts):
                    if not count:
                        continue
                    name, note = told[code]
                    row = flavour.host_row(NamedRow(lane, name, note, part)) if flavour else _unknown_host_row(name)
                    if row.kind is RowKind.SKIP:
                        store.skipped[row.name] += count
                        derived += count if row.name == DERIVED else 0
                    else:
                        kind_of[code] = int(row.kind)
                        name_of[code] = (store.apis if row.kind is RowKind.CALL else store.names)[row.name]
                kinds[mine[chosen]], names[mine[chosen]] = kind_of[place[chosen]], name_of[place[chosen]]
        if derived:
            store.remarks.append(Remark(RemarkCode.DERIVED_LANES, {"rows": derived}))
        if flavour is not None and flavour.inner_range_repeats:
            kinds[self._repeats(np.flatnonzero(kinds == RowKind.RANGE), names)] = int(RowKind.SKIP)
        common = ("start_ns", "dur_ns", "pid", "tid", "order")
        for kind in (RowKind.RANGE, RowKind.HOST_OP, RowKind.OVERHEAD):
            mask = kinds == kind
            store.put(kind, {c: self._rows[c][mask] for c in common[:4]} | {"name": names[mask]})
        mask = kinds == RowKind.CALL
        return {c: self._rows[c][mask] for c in (*common, "corr")} | {"name": names[mask]}

    def _repeats(self, ranges: Array, names: Array) -> Array:
        """Return the ranges that lie in a range of the same name and thread."""
        rows = self._rows
        start, dur = rows["start_ns"][ranges], np.maximum(rows["dur_ns"][ranges], 0)
        group = (rows["pid"][ranges].astype(np.int64) * self._width + rows["tid"][ranges]) * (
            len(self._store.names) + 1
        ) + names[ranges]
        order = np.lexsort((-dur, start, group))
        inside = np.zeros(len(ranges), dtype=bool)
        reached, of = 0, -1
        for place, row, begin, length in zip(
            order.tolist(), group[order].tolist(), start[order].tolist(), dur[order].tolist(), strict=True
        ):
            inside[place] = row == of and begin + length <= reached
            if not inside[place]:
                reached, of = begin + length, row
        return ranges[inside]

    def _join(self, device: dict[str, Array], calls: dict[str, Array]) -> None:
        """Give calls and device rows the ids that flow events join them by."""
        ends = self._columns.flow_ends(self._width)
        if not len(ends.key):
            return
        row_lane, call_lane = (t["pid"].astype(np.int64) * self._width + t["tid"] for t in (device, calls))
        on_device = np.isin(ends.lane // self._width, distinct(device["pid"]))
        host, target = ends.take(~on_device), ends.take(on_device)
        classes = [classify_api(a) in LAUNCHES for a in self._store.apis.values_in_order]
        launches = np.array(classes or [False], dtype=bool)[calls["name"]]
        dur = np.where(calls["dur_ns"] < 0, 0, calls["dur_ns"])
        found_calls = flows.calls_of(host, call_lane, calls["start_ns"], calls["start_ns"] + dur, launches)
        found_rows = flows.rows_of(target, row_lane, device["start_ns"])
        calls["corr"], device["corr"] = flows.joined(
            host, found_calls, target, found_rows, len(calls["start_ns"]), len(device["start_ns"])
        )


def _unknown_host_row(name: str) -> HostRow:
    """Return what a row without a category is where nothing tells the flavour: a call, if it is named like one."""
    return HostRow(RowKind.CALL, name) if name in API_CLASSES else HostRow(RowKind.SKIP, "no category")


def _finest_step(*times: Array) -> int:
    """Return the finest step of times of which the texts are gone: the largest power of ten, to 1000 ns, that divides all."""
    for step in (1000, 100, 10):
        if all(not (column[column >= 0] % step).any() for column in times):
            return step
    return 1


def _config_key(config: Any) -> tuple[bytes, bytes, int | None, int | None]:
    def text(dims: tuple[int, ...] | None) -> bytes:
        return b"" if dims is None else f"[{','.join(map(str, dims))}]".encode()

    return text(config.grid), text(config.block), config.registers, config.shared_bytes
