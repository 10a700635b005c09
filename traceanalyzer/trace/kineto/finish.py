"""What is known of Kineto's rows only once all of them are read: rows without a category, device and stream numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.kineto.columns import Columns
from traceanalyzer.trace.kineto.ids import lane_id
from traceanalyzer.trace.kineto.lane_rows import LaneRows
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import NO_ID

Array = npt.NDArray[Any]


def finish(columns: Columns) -> None:
    """Pair begin and end events, give rows without a category a kind, and device rows their device and stream."""
    columns.pair_halves()
    LaneRows(columns).settle()
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
        for code in distinct(codes).tolist():
            table[code] = lane_id(texts[code]) or 0
        values = values.copy()
        values[absent] = table[codes]
        store.replace(kind, column, values)
