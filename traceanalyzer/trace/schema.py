"""What every column of every trace table means: name, type, unit, meaning, whether it may be missing.

The single source: frames are made and checked from it (:func:`frame`), and docs/schema.md is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ID, NO_ROW, Trace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Column:
    """One column: pandas dtype, unit (empty for none) and meaning; ``optional`` ones may be missing (NA)."""

    name: str
    dtype: str
    unit: str
    meaning: str
    optional: bool = False


_ID = "Int64"
SCHEMAS: dict[str, tuple[Column, ...]] = {
    "activities": (
        Column("kind", "string", "", "kernel, memcpy or memset"),
        Column("name", "string", "", "name as the trace has it"),
        Column("start_ns", "int64", "ns", "start, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "self-time"),
        Column("device", "int64", "", "device number"),
        Column("owner", "string", "", "process of the device's rows where ranks are merged, else empty"),
        Column("stream", "int64", "", "stream number on that device"),
        Column("corr", _ID, "", "correlation id", optional=True),
        Column("launch", _ID, "", "row of `launches` that launched it", optional=True),
        Column("graph_node", "bool", "", "the row says that it is a node of a graph"),
        Column("config", "string", "", "grid, block, registers, shared memory"),
        Column("bytes_moved", _ID, "bytes", "size of a copy or fill", optional=True),
    ),
    "launches": (
        Column("api", "string", "", "name of the host call"),
        Column("api_class", "string", "", "kernel_launch, graph_launch, memcpy, memset or other"),
        Column("start_ns", "int64", "ns", "start of the call, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "length of the call; 0 where it was not usable"),
        Column("thread", "string", "", "process/thread"),
        Column("corr", _ID, "", "correlation id", optional=True),
        Column("n_activities", "int64", "", "device rows it owns"),
    ),
    "syncs": (
        Column("api", "string", "", "name of the host call"),
        Column("kind", "string", "", "sync_device, sync_stream or sync_event"),
        Column("start_ns", "int64", "ns", "start of the call, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "how long the host waited"),
        Column("thread", "string", "", "process/thread"),
    ),
    "host_ops": (
        Column("name", "string", "", "operator, e.g. aten::add"),
        Column("start_ns", "int64", "ns", "start, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "length on the host"),
        Column("thread", "string", "", "process/thread"),
    ),
    "ranges": (
        Column("name", "string", "", "record_function or NVTX name"),
        Column("start_ns", "int64", "ns", "start, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "length"),
        Column("thread", "string", "", "process/thread"),
        Column("on_device", "bool", "", "the projection of the range on the device"),
    ),
    "overheads": (
        Column("name", "string", "", "what the profiler did"),
        Column("start_ns", "int64", "ns", "start, from the trace's origin"),
        Column("dur_ns", "int64", "ns", "length"),
    ),
}
"""Columns of each table of :func:`frame`."""


def frame(trace: Trace, table: str) -> pd.DataFrame:
    """Return one table of a trace as a pandas frame with the documented columns; the index is the row number.

    ``table`` is a key of :data:`SCHEMAS`. Missing ids are NA. Raises KeyError for an unknown table.
    """
    columns = SCHEMAS[table]
    values = _BUILDERS[table](trace)
    return checked_frame(table, columns, values)


def checked_frame(table: str, columns: tuple[Column, ...], values: dict[str, Any]) -> pd.DataFrame:
    """Return a frame of exactly the given columns in their dtypes.

    Raises ValueError when a column is missing or unknown, or a value is missing where none may be.
    """
    import pandas as pd

    wanted = [c.name for c in columns]
    if set(wanted) != set(values):
        raise ValueError(f"{table}: columns {sorted(values)} where {sorted(wanted)} are documented")
    result = pd.DataFrame({c.name: pd.array(values[c.name], dtype=_dtype(c)) for c in columns}, columns=wanted)
    for column in columns:
        if not column.optional and bool(result[column.name].isna().any()):
            raise ValueError(f"{table}.{column.name}: a value is missing where none may be")
    return result


def _dtype(column: Column) -> Any:
    return "object" if column.dtype == "object" else column.dtype


def _optional(values: Any, absent: int) -> list[int | None]:
    return [None if v == absent else v for v in np.asarray(values).tolist()]


def _activities(trace: Trace) -> dict[str, Any]:
    rows = trace.activities
    lanes = [trace.lanes[i] for i in rows.lane.tolist()]
    launches = np.flatnonzero(trace.calls.n_activities > 0)
    place = np.full(len(trace.calls) + 1, NO_ROW)
    place[launches] = np.arange(len(launches))
    return {
        "kind": [RowKind(k).name.lower() for k in rows.kind.tolist()],
        "name": [trace.names[i] for i in rows.name.tolist()],
        "start_ns": rows.start_ns - trace.meta.origin_ns,
        "dur_ns": rows.dur_ns,
        "device": [trace.devices[lane.device].number for lane in lanes],
        "owner": [trace.devices[lane.device].owner for lane in lanes],
        "stream": [lane.stream for lane in lanes],
        "corr": _optional(rows.corr, NO_ID),
        "launch": _optional(place[rows.call], NO_ROW),
        "graph_node": rows.graph_node,
        "config": [trace.configs[i].describe() for i in rows.config.tolist()],
        "bytes_moved": _optional(rows.bytes_moved, NO_ID),
    }


def _launches(trace: Trace) -> dict[str, Any]:
    calls = trace.calls.take(trace.calls.n_activities > 0)
    names = {
        c: c.name.lower() for c in (ApiClass.KERNEL_LAUNCH, ApiClass.GRAPH_LAUNCH, ApiClass.MEMCPY, ApiClass.MEMSET)
    }
    return {
        "api": [trace.apis[i] for i in calls.api.tolist()],
        "api_class": [names.get(ApiClass(c), "other") for c in calls.api_class.tolist()],
        "start_ns": calls.start_ns - trace.meta.origin_ns,
        "dur_ns": calls.end_ns - calls.start_ns,
        "thread": [trace.threads[i].label for i in calls.thread.tolist()],
        "corr": _optional(calls.corr, NO_ID),
        "n_activities": calls.n_activities,
    }


def _syncs(trace: Trace) -> dict[str, Any]:
    waiting = (ApiClass.SYNC_DEVICE, ApiClass.SYNC_STREAM, ApiClass.SYNC_EVENT)
    calls = trace.calls.take(np.isin(trace.calls.api_class, waiting))
    return {
        "api": [trace.apis[i] for i in calls.api.tolist()],
        "kind": [ApiClass(c).name.lower() for c in calls.api_class.tolist()],
        "start_ns": calls.start_ns - trace.meta.origin_ns,
        "dur_ns": calls.end_ns - calls.start_ns,
        "thread": [trace.threads[i].label for i in calls.thread.tolist()],
    }


def _named(trace: Trace, table: Any) -> dict[str, Any]:
    return {
        "name": [trace.names[i] for i in table.name.tolist()],
        "start_ns": table.start_ns - trace.meta.origin_ns,
        "dur_ns": table.end_ns - table.start_ns,
    }


def _threaded(trace: Trace, table: Any) -> dict[str, Any]:
    return _named(trace, table) | {"thread": [trace.threads[i].label for i in table.thread.tolist()]}


_BUILDERS: dict[str, Any] = {
    "activities": _activities,
    "launches": _launches,
    "syncs": _syncs,
    "host_ops": lambda t: _threaded(t, t.host_ops),
    "ranges": lambda t: _threaded(t, t.ranges) | {"on_device": t.ranges.on_device},
    "overheads": lambda t: _named(t, t.overheads),
}
