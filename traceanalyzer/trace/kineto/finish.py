"""What is known of Kineto's rows only once all of them are read: rows without a category, device and stream numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.kineto.columns import NO_CONFIG, Columns
from traceanalyzer.trace.kineto.flavours import device_lane
from traceanalyzer.trace.kineto.ids import to_int
from traceanalyzer.trace.launch_names import API_CLASSES
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import NO_ID

Array = npt.NDArray[Any]


def finish(columns: Columns) -> None:
    """Pair begin and end events, give rows without a category a kind, and device rows their device and stream."""
    columns.pair_halves()
    _sort_by_lane(columns)
    for kind in DEVICE_KINDS:
        # Kineto sets the pid column to the device and the tid column to the stream ("stream 7" in old files)
        _fill_from_text(columns.store, kind, "device", "pid", columns.store.pids.values_in_order)
        _fill_from_text(columns.store, kind, "stream", "tid", columns.store.tids.values_in_order)


def _fill_from_text(store: Store, kind: RowKind, column: str, place: str, texts: list[str]) -> None:
    values = store.column(kind, column)
    absent = values == NO_ID
    if absent.any():
        codes = store.column(kind, place)[absent]
        table = np.zeros(len(texts), dtype=np.int64)
        for code in np.unique(codes).tolist():
            table[code] = to_int(texts[code]) or 0
        values = values.copy()
        values[absent] = table[codes]
        store.replace(kind, column, values)


def _sort_by_lane(columns: Columns) -> None:
    """Give rows without a category that lie on a device lane, or are named like an API call, their kind."""
    store = columns.store
    rows = store.take_out(RowKind.UNKNOWN)
    n = len(rows["start_ns"])
    if not n:
        return
    pids, tids, names = (t.values_in_order for t in (store.pids, store.tids, store.names))
    kinds = np.zeros(n, dtype=np.int8)
    numbers, streams = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    lanes, lane_of_row = np.unique(rows["pid"].astype(np.int64) * max(len(tids), 1) + rows["tid"], return_inverse=True)
    by_lane = np.argsort(lane_of_row, kind="stable")
    ends = np.cumsum(np.bincount(lane_of_row, minlength=len(lanes)))
    for lane, mine in zip(lanes.tolist(), np.split(by_lane, ends[:-1]), strict=True):
        pid, tid = divmod(lane, max(len(tids), 1))
        rule = device_lane(pids[pid], tids[tid], columns.process_names, columns.process_labels, columns.thread_names)
        if rule is None:
            continue
        store.flavour = rule.flavour
        used, name_of_row = np.unique(rows["name"][mine], return_inverse=True)
        kinds[mine] = np.array([rule.kind_of(names[i]) for i in used.tolist()], dtype=np.int8)[name_of_row]
        numbers[mine], streams[mine] = rule.device, rule.stream
    used, name_of_row = np.unique(rows["name"], return_inverse=True)
    is_api = np.array([names[i] in API_CLASSES for i in used.tolist()], dtype=bool)[name_of_row]
    for kind in DEVICE_KINDS:
        mask = kinds == kind
        if mask.any():
            found: dict[str, Array] = {c: v[mask] for c, v in rows.items()}
            config = np.full(int(np.count_nonzero(mask)), store.configs[NO_CONFIG], dtype=np.int32)
            store.put(kind, found | {"device": numbers[mask], "stream": streams[mask], "config": config})
            store.step_ns = 1  # not known per row here; nothing is claimed from it
    calls = (kinds == 0) & is_api
    found = {c: v[calls] for c, v in rows.items()}
    store.put(RowKind.CALL, found | {"name": store.apis.codes([names[i] for i in found["name"].tolist()])})
    other = int(np.count_nonzero((kinds == 0) & ~is_api))
    if other:
        store.skipped["no category"] += other
